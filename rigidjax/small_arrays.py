"""Array functions with an efficient form in kernels, for small arrays of physics."""

from .native.ops import (
    block_diagonal as block_diagonal,
    cross as cross,
    divide_by_invariant as divide_by_invariant,
    householder_qr as householder_qr,
    inverse as inverse,
    lapack_primitive as lapack_primitive,
    segment_sum as segment_sum,
    sequential_vmap_on_cpu as sequential_vmap_on_cpu,
    short_sum as short_sum,
    stack_rows as stack_rows,
    take as take,
    vmap_rows as vmap_rows,
)
