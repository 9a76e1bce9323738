"""What a run saved, and how it ended: results by name, singularities, failures."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..annotations import Flag
from ..checks import checked_with_derivatives
from ..formulations.charts import split_chart
from ..native import opaque_call, variants
from ..results import RESULTS, SimulationError
from ..signals.signal import signals_of
from ..solvers import Projected
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.wrappers.knots import SIGNAL_NOT_FROZEN
from .solution import Solution

# A run without re-charting ends this close to a singularity, in rad.
_SINGULAR_ANGLE = 1e-3


def is_okay(result):
    """Whether a run reached its end or an event."""
    return (result == RESULTS.successful) | (result == RESULTS.event_occurred)


def project_saved(solver, ts, ys, t0, y0):
    """What was saved between steps is interpolated: project it like the steps themselves.

    Kernels take one time after the other: all at once would be written out for each.
    """

    def project(t, y):
        reached = jnp.isfinite(t)

        def chosen(new, old):
            return jax.tree.map(lambda new, old: jnp.where(reached, new, old), new, old)

        # What was not reached is infinite, and so would be derivatives of its projection.
        projected, _, _ = solver.after(chosen(t, t0), chosen(y, y0))
        return chosen(projected, y)

    def one_by_one():
        return jax.lax.map(lambda one: project(*one), (ts, ys))

    return variants(kernel=one_by_one, xla=lambda: jax.vmap(project)(ts, ys))


class OfProjected(eqx.Module):
    """A function of what is saved that gets projected unknowns, as those of steps are."""

    function: Callable[..., PyTree]
    solver: Projected

    def __call__(self, t, y, args):
        projected, _, _ = self.solver.after(t, y)
        return self.function(t, projected, args)


def with_singularity(model, event):
    """`event` together with the events that a minimal parametrization becomes singular."""

    def near(t, y, args, **kwargs):
        return ~(model.singularity(t, y) > _SINGULAR_ANGLE)

    def crossing(i):
        def function(t, y, args, **kwargs):
            values, _ = split_chart(y)
            return model.rotation.singularity_function(model.layout.rotations(values)[i])

        return function

    crossings = [crossing(i) for i in range(model.layout.num_rotations)]
    none = [None] * len(crossings)
    conditions: dict[str, PyTree] = {"singular": {"near": near, "crossings": crossings}}
    directions: dict[str, PyTree] = {"singular": {"near": None, "crossings": none}}
    if event is None:
        return diffrax.Event(conditions)
    conditions["user"], directions["user"] = event.cond_fn, event.direction
    return diffrax.Event(conditions, event.root_finder, directions)


def cut_at_crossing(model, y0, ts, ys):
    """What was saved, without what lies behind a singularity that the last step went across."""

    def sides(y):
        return jnp.sign(jax.vmap(model.rotation.singularity_function)(model.layout.rotations(y)))

    start = sides(y0)
    crossed = jnp.cumsum(jax.vmap(lambda y: jnp.any(sides(y) != start))(ys)) > 0
    return jnp.where(crossed, jnp.inf, ts), jnp.where(crossed[:, None], jnp.inf, ys)


def named_result(result, solver, model, t0, t1):
    """How a run ended, by the package's names."""
    result = RESULTS.promote(result)
    if isinstance(solver, AbstractStructureSolver):
        failure = getattr(RESULTS, solver.failure)
        result = RESULTS.where(result == RESULTS.nonlinear_divergence, failure, result)
    left = [jnp.asarray(signal.run_exceeds_table(t0, t1)) for signal in signals_of(model)]
    if left:
        ended = jnp.any(jnp.stack(left))
        name = RESULTS.where(ended, RESULTS.signal_ended, RESULTS.jump_within_step)
        result = RESULTS.where(result == RESULTS.promote(SIGNAL_NOT_FROZEN), name, result)
    # In a run, as `JOINTS_OPEN`.
    return RESULTS.where(result == RESULTS.stagnation, RESULTS.joints_open, result)


def singular_result(result, mask):
    """The result of a run that watches singularities, and the mask of the user's events."""
    singular = jnp.any(jnp.stack(jax.tree.leaves(mask["singular"])))
    result = RESULTS.where(singular, RESULTS.singular_parametrization, result)
    return result, mask.get("user")


def nonfinite_result(result, ts, ys):
    """The result of a run that says it is fine, if all that it saved is finite."""
    values, _ = split_chart(ys)  # What was not reached is padded.
    finite = jnp.all(jnp.isfinite(values) | ~jnp.isfinite(ts)[:, None])
    return RESULTS.where(finite | ~is_okay(result), result, RESULTS.nonfinite_state)


def at_event_or_nan(result, mask, ts, ys):
    """Time and unknowns of the event that ended a run; NaN where the run did not end so.

    **Arguments:** `result`; `mask` of the user's events; `ts` (1,) and `ys`, what was saved last.
    """
    occurred = jnp.any(jnp.stack(jax.tree.leaves(mask))) & (result == RESULTS.event_occurred)
    return jax.tree.map(
        lambda x: jnp.where(occurred, x[0], jnp.asarray(jnp.nan, x.dtype)), (ts, ys)
    )


def of_invalid(invalid, result, ts, ys):
    """Result, times and what was saved; of a run that got what is not admissible, no numbers."""
    ts, ys = jax.tree.map(
        lambda x: jnp.where(invalid, jnp.asarray(jnp.inf, x.dtype), x)
        if eqx.is_inexact_array(x) else x,
        (ts, ys),
    )  # fmt: skip
    return RESULTS.where(invalid, RESULTS.invalid_input, result), ts, ys


def nan_if_failed(solution: Solution, okay: Flag) -> Solution:
    """NaN in the place of what a failed run saved, and of its derivatives; its times stay."""
    factor = jnp.where(okay, 1.0, jnp.nan)
    parts = lambda s: (s.ys, s.interpolation, s.event_y)  # noqa: E731
    return eqx.tree_at(
        parts,
        solution,
        jax.tree.map(
            lambda x: x * factor.astype(x.dtype) if eqx.is_inexact_array(x) else x, parts(solution)
        ),
        is_leaf=lambda x: x is None,
    )


def thrown(solution: Solution, okay: Flag, traced: bool) -> Solution:
    """The solution; `SimulationError` for one that failed, when it is computed if it is traced."""
    result = solution.result
    if traced:

        def parts(s):
            return s.ts, s.ys, s.interpolation, s.event_time, s.event_y

        def check(one):
            return opaque_call(
                lambda one, result, bad: result.error_if(one, bad), one, result, ~okay
            )

        checked = checked_with_derivatives(parts(solution), check)
        return eqx.tree_at(parts, solution, checked, is_leaf=lambda x: x is None)
    if not np.asarray(okay).all():
        raise SimulationError(RESULTS[result])
    return solution
