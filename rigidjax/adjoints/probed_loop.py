"""The loop of a run whose steps are as accurate for its derivatives as for itself."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..solvers.probe import probe_state, probed
from ..solvers.unrolled import forward_stages
from .boundaries import Tree


def probed_loop(
    adjoint: diffrax.AbstractAdjoint, kwargs: Tree, wanted: Tree | None, prepare: Any = None
) -> tuple[PyTree, dict[str, PyTree]]:
    """Return what `adjoint.loop(**kwargs)` returns, by steps that a probe has chosen as well.

    `stats["derivative_error"]` is the probe's own error, NaN without one. The final state has the
    solver's state of the start, which no caller may ask for.

    **Arguments:** `adjoint`, one of diffrax; `kwargs`, of `AbstractAdjoint.loop`; `wanted`, alike,
    `True` for the arrays by which the run is differentiated, `None` for none; `prepare`, a function
    of the arguments that changes the solver.
    """
    plain = kwargs
    if wanted is not None and not kwargs["saveat"].solver_state:
        kwargs = probed(kwargs, wanted)
    if prepare is not None:
        kwargs = {**kwargs, "solver": prepare(kwargs)}
    state, stats = adjoint.loop(**kwargs)
    probe = probe_state(state.solver_state)
    if probe is None:
        dtype = jnp.result_type(*jax.tree.leaves(state.y))
        return state, {**stats, "derivative_error": jnp.full((), jnp.nan, dtype)}
    # Of arrays, as a loop leaves it behind.
    before = jax.tree.map(
        lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, plain["init_state"].solver_state
    )
    state = eqx.tree_at(lambda s: s.solver_state, state, before, is_leaf=lambda x: x is None)
    return state, {**stats, "derivative_error": probe.error}


class NestedForwardMode(diffrax.AbstractAdjoint):
    """Forward mode of any order, without a bound on the number of steps.

    Steps are accurate for the derivatives by all unknowns and parameters.
    """

    def loop(self, **kwargs: PyTree) -> tuple[PyTree, dict[str, PyTree]]:
        """The main loop of `diffrax.diffeqsolve`."""
        wanted = jax.tree.map(eqx.is_inexact_array, kwargs)
        return probed_loop(
            diffrax.ForwardMode(), kwargs, wanted, lambda kwargs: forward_stages(kwargs["solver"])
        )
