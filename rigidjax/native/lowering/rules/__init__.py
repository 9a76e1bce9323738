"""One rule for each primitive, by families.

Start with `arithmetic.py`.
May import `native/lowering`, `native/ops` and lower layers.
"""

from . import (  # noqa: F401
    arithmetic,
    bits,
    branches,
    calls,
    complex_functions,
    definite,
    elimination,
    factorisations,
    indexing,
    loops,
    orthogonal,
    products,
    programs,
    scans,
    sorting,
    structure,
    symmetric,
    triangular,
    windows,
)
