"""Reverse mode that walks backwards over the recorded steps of a run."""

from jaxtyping import Array, Float

from ..annotations import Y
from . import explicit, steps
from .boundaries import Tree


def is_supported(kwargs: Tree) -> bool:
    """Whether the loop with these arguments is one that `cotangents` can transpose."""
    return explicit.is_supported(kwargs) or steps.is_supported(kwargs)


def cotangents(
    kwargs: Tree, of_record: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y, wanted: Tree,
    batched: bool,
) -> Tree:  # fmt: skip
    """Cotangents of a loop's arguments from those of the saved times and unknowns.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `of_record`, those by which steps are
    chosen, see `rigidjax.solvers.wrappers.probe`; `ct_ts`, `ct_ys`, as `save_state.ts` and
    `save_state.ys`; `wanted`, which of the arguments' cotangents to find; `batched`, whether there
    are many trajectories.
    **Returns:** the inexact arrays of `kwargs` replaced by their cotangents, those that are not
    wanted by anything of their shape, the rest by `None`.
    """
    if explicit.is_supported(kwargs):
        return explicit.cotangents(kwargs, of_record, ct_ts, ct_ys, wanted, batched)
    return steps.cotangents(kwargs, of_record, ct_ts, ct_ys, wanted, batched)
