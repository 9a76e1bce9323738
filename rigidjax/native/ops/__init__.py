"""Array functions with an efficient form in kernels; see each module for the reason.

Start with `sums.py`.
May import `native/primitives`.
"""

from .cross_product import cross as cross
from .division import divide_by_invariant as divide_by_invariant
from .gather_scatter import (
    segment_sum as segment_sum,
    stack_rows as stack_rows,
    take as take,
    vmap_rows as vmap_rows,
)
from .householder import householder_qr as householder_qr
from .linalg import (
    block_diagonal as block_diagonal,
    inverse as inverse,
    lapack_primitive as lapack_primitive,
    sequential_vmap_on_cpu as sequential_vmap_on_cpu,
)
from .sums import short_sum as short_sum
