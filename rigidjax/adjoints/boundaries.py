"""Cotangents of the step boundaries in the backward pass."""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..annotations import Scalar, Vector
from ..solvers.explicit.unrolled import set_stage_loop
from ..solvers.wrappers.knots import knot_parameters
from ..solvers.wrappers.perturbed import find_probe_state
from ..solvers.wrappers.probe import with_probe
from ..solvers.wrappers.switched import with_switching_times

# The arguments of `AbstractAdjoint.loop` by name, or a tree with their structure.
Tree = dict[str, PyTree]


def boundaries_are_wanted(wanted: Tree) -> bool:
    """Return whether cotangents of any time are wanted.

    The times are the start, the end of the first step, the end, the saved times, and the
    parameters of knots.
    """
    state = wanted["init_state"]
    times = [
        state.tprev,
        state.tnext,
        wanted["t1"],
        *knot_parameters(wanted["stepsize_controller"]),
    ]
    return any(times) or wanted["saveat"].subs.ts is True


class Boundaries(NamedTuple):
    """Cotangents of times in the backward pass.

    **Attributes:** `sources`, (3 + D,), of the start of the run, the planned end of its first step,
    its end, and the D parameters of knots, on which all boundaries depend (see
    `record.Record.motions`); `later`, of the end of the current step.
    """

    sources: Vector
    later: Scalar

    def step_back(self, motion: Vector, bar_start: Scalar, bar_end: Scalar) -> "Boundaries":
        """Add the cotangents of the start and the end of a step.

        **Arguments:** `motion`, derivatives of its end in the `sources`; `bar_start`, `bar_end`.
        """
        return Boundaries(self.sources + (bar_end + self.later) * motion, bar_start)

    def add_to(self, out: Tree) -> Tree:
        """Return the cotangents `out` of the arguments with those of times filled in."""
        start, planned, end, *of_knots = self.sources
        if of_knots:
            controller = eqx.tree_at(knot_parameters, out["stepsize_controller"], of_knots)
            out = {**out, "stepsize_controller": controller}
        state = eqx.tree_at(
            lambda s: (s.tprev, s.tnext), out["init_state"], (start + self.later, planned)
        )
        return {**out, "t1": end, "init_state": state}


def after_last_step(end: Scalar, controller: diffrax.AbstractStepSizeController) -> Boundaries:
    """Return the cotangents after the last step from that of its end."""
    return Boundaries(jnp.zeros(3 + len(knot_parameters(controller)), end.dtype), end)


def probed_loop(
    adjoint: diffrax.AbstractAdjoint, kwargs: Tree, wanted: Tree | None, prepare: Any = None,
    probes: bool = True,
) -> tuple[PyTree, dict[str, PyTree]]:  # fmt: skip
    """Return the result of `adjoint.loop(**kwargs)` with steps that are chosen by a probe too.

    `stats["derivative_error"]` is the error of the probe, NaN without one. The final state contains
    the initial state of the solver, so that callers must not use it.

    **Arguments:** `adjoint`, of diffrax; `kwargs`, of `AbstractAdjoint.loop`; `wanted`, a tree like
    `kwargs`, `True` for the arrays with respect to which the run is differentiated, `None` for
    none; `prepare`, a function that returns the solver to be used from the arguments; `probes`,
    whether a probe chooses steps.
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

    Steps are accurate for the derivatives with respect to all unknowns and parameters.
    """

    def loop(self, **kwargs: PyTree) -> tuple[PyTree, dict[str, PyTree]]:
        """Run the main loop of `diffrax.diffeqsolve`."""
        wanted = jax.tree.map(eqx.is_inexact_array, kwargs)
        return probed_loop(
            diffrax.ForwardMode(), kwargs, wanted, lambda kwargs: set_stage_loop(kwargs["solver"])
        )
