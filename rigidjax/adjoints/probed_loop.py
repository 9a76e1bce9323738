"""The loop of a run whose steps are as accurate for its derivatives as for itself."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..solvers.explicit.unrolled import set_stage_loop
from ..solvers.wrappers.probe import find_probe_state, with_probe
from ..solvers.wrappers.switched import with_switching_times
from .boundaries import Tree


def probed_loop(
    adjoint: diffrax.AbstractAdjoint, kwargs: Tree, wanted: Tree | None, prepare: Any = None,
    probes: bool = True,
) -> tuple[PyTree, dict[str, PyTree]]:  # fmt: skip
    """Return what `adjoint.loop(**kwargs)` returns, by steps that a probe has chosen as well.

    `stats["derivative_error"]` is the probe's own error, NaN without one. The final state has the
    solver's state of the start, which no caller may ask for.

    **Arguments:** `adjoint`, one of diffrax; `kwargs`, of `AbstractAdjoint.loop`; `wanted`, alike,
    `True` for the arrays by which the run is differentiated, `None` for none; `prepare`, a function
    of the arguments that changes the solver; `probes=False` for steps that no probe chooses.
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
    # Of arrays, as a loop leaves it behind.
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
        """The main loop of `diffrax.diffeqsolve`."""
        wanted = jax.tree.map(eqx.is_inexact_array, kwargs)
        return probed_loop(
            diffrax.ForwardMode(), kwargs, wanted, lambda kwargs: set_stage_loop(kwargs["solver"])
        )
