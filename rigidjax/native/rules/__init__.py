"""One rule for each primitive, by families."""

from . import (  # noqa: F401
    arithmetic,
    branches,
    definite,
    elimination,
    factorisations,
    indexing,
    loops,
    orthogonal,
    products,
    programs,
    scans,
    structure,
    triangular,
    windows,
)
