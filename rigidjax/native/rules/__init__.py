"""One rule for each primitive, by families."""

from . import arithmetic, control, indexing, products, programs, structure  # noqa: F401
