"""One rule for each primitive, by families."""

from . import (  # noqa: F401
    arithmetic,
    control,
    factorisations,
    indexing,
    orthogonal,
    products,
    programs,
    structure,
)
