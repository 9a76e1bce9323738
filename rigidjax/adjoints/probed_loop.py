"""Main loop of a run whose steps are accurate for its derivatives too."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..solvers.explicit.unrolled import set_stage_loop
from ..solvers.wrappers.probe import with_probe
from ..solvers.wrappers.probe_state import find_probe_state
from ..solvers.wrappers.switched import with_switching_times
from .boundaries import Tree


def probed_loop(
    adjoint: diffrax.AbstractAdjoint, kwargs: Tree, wanted: Tree | None, prepare: Any = None,
    probes: bool = True,
) -> tuple[PyTree, dict[str, PyTree]]:  # fmt: skip
    """Return the result of `adjoint.loop(**kwargs)` with steps that are chosen by a probe too.

    `stats["derivative_error"]` is the error of the probe, NaN without one. The final state contains
    the initial state of the solver, so that callers must not use it.

    **Arguments:** `adjoint`, of diffrax; `kwargs`, of `AbstractAdjoint.loop`; `wanted`, a tree like
    `kwargs`, `True` for the arrays by which the run is differentiated, `None` for none; `prepare`,
    a function that returns the solver to be used from the arguments; `probes`, whether a probe
    chooses steps.
    """
    plain = kwargs
    if wanted is not None and not kwargs["saveat"].solver_state:
        is_second = isinstance(adjoint, diffrax.DirectAdjoint)
        kwargs = with_switching_times(kwargs, is_second)
        kwargs = with_probe(kwargs, wanted) if probes else kwargs
    is_plain = kwargs["solver"] is plain["solver"]
    if prepare is not None:
        kwargs = {**kwargs, "solver": prepare(kwargs)}
    state, stats = adjoint.loop(**kwargs)
    probe = find_probe_state(state.solver_state)
    dtype = jnp.result_type(*jax.tree.leaves(state.y))
    error = jnp.full((), jnp.nan, dtype) if probe is None else probe.error
    stats = {**stats, "derivative_error": error}
    if is_plain:
        return state, stats
    # Leaves are arrays, as in the state after a loop.
    before = jax.tree.map(
        lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, plain["init_state"].solver_state
    )
    state = eqx.tree_at(lambda s: s.solver_state, state, before, is_leaf=lambda x: x is None)
    return state, stats


class NestedForwardMode(diffrax.AbstractAdjoint):
    """Forward mode of any order, without a bound on the number of steps.

    Steps are accurate for the derivatives by all unknowns and parameters.
    """

    def loop(self, **kwargs: PyTree) -> tuple[PyTree, dict[str, PyTree]]:
        """Run the main loop of `diffrax.diffeqsolve`."""
        wanted = jax.tree.map(eqx.is_inexact_array, kwargs)
        return probed_loop(
            diffrax.ForwardMode(), kwargs, wanted, lambda kwargs: set_stage_loop(kwargs["solver"])
        )
