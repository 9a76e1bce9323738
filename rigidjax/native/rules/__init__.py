"""One rule for each primitive, by families."""

from . import arithmetic, control, factorisations, indexing, products, programs, structure  # noqa: F401
