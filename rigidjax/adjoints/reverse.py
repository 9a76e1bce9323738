"""Reverse mode by a backward pass over the recorded steps of a run."""

from jaxtyping import Array, Float, PyTree

from ..annotations import Y
from . import explicit, steps
from .boundaries import Tree


def is_supported(kwargs: Tree) -> bool:
    """Return whether `transpose_run` supports the loop with these arguments."""
    return explicit.is_supported(kwargs) or steps.is_supported(kwargs)


def transpose_run(
    kwargs: Tree, recorded_kwargs: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y,
    ct_solver: PyTree, wanted: Tree, batched: bool,
) -> Tree:  # fmt: skip
    """Return the cotangents of a loop's arguments from those of the saved times and unknowns.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `recorded_kwargs`, the arguments with which
    steps are chosen and recorded, see `rigidjax.solvers.wrappers.probe`; `ct_ts`, `ct_ys`,
    cotangents with the structure of `save_state.ts` and `save_state.ys`; `ct_solver`, those of the
    final state of the solver, used if the run saves it; `wanted`, a tree like `kwargs`, `True`
    where cotangents are computed; `batched`, whether there is a batch of trajectories.
    **Returns:** a tree like `kwargs` with cotangents of the inexact arrays (arbitrary values of the
    same shape where they are not wanted) and `None` for other leaves.
    """
    if explicit.is_supported(kwargs):
        return explicit.transpose_run(kwargs, recorded_kwargs, ct_ts, ct_ys, wanted, batched)
    return steps.transpose_run(kwargs, recorded_kwargs, ct_ts, ct_ys, ct_solver, wanted, batched)
