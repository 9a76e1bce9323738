"""Post-processing of a run: projection of saved values, named results, failures."""

from collections.abc import Callable, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..annotations import Args, Flag, Scalar, Time
from ..checks import checked_with_derivatives, raise_or_collect
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns, split_chart
from ..formulations.joint_checks import StartFaults
from ..native import opaque_call, variants
from ..results import RESULTS, promote
from ..signals.shared_tables import table_signals
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.wrappers.after_step import ProjectedEnd
from ..solvers.wrappers.knots import SIGNAL_NOT_FROZEN
from .solution import Solution

# Distance to a singularity at which a run without re-charting ends, rad.
_SINGULAR_ANGLE = 1e-3


def is_okay(result: diffrax.RESULTS) -> Flag:
    """Return whether a run reached its end or an event."""
    return (result == RESULTS.successful) | (result == RESULTS.event_occurred)


def project_saved(
    hook: ProjectedEnd, ts: Float[Array, " T"], ys: PyTree[Array], t0: Scalar, y0: Unknowns
) -> PyTree[Array]:
    """Project the unknowns that were interpolated between steps, as the steps themselves are.

    Kernels project one time after the other, because `vmap` would unroll the projections.
    """

    def project(t, y):
        reached = jnp.isfinite(t)

        def where_reached(new, old):
            return jax.tree.map(lambda new, old: jnp.where(reached, new, old), new, old)

        # Times that were not reached are infinite: derivatives of the projection would be NaN.
        projected, _, _ = hook.replace(where_reached(t, t0), where_reached(y, y0))
        return where_reached(projected, y)

    def map_over_times():
        return jax.lax.map(lambda sample: project(*sample), (ts, ys))

    return variants(sequential=map_over_times, batched=lambda: jax.vmap(project)(ts, ys))


class ProjectedFunction(eqx.Module):
    """The user's function of saved unknowns, evaluated at the projected unknowns."""

    function: Callable[..., PyTree]
    hook: ProjectedEnd

    def __call__(self, t: Scalar, y: Unknowns, args: Args) -> PyTree:
        projected, _, _ = self.hook.replace(t, y)
        return self.function(t, projected, args)


def add_singularity_event(model: AbstractFormulation, event: diffrax.Event | None) -> diffrax.Event:
    """Combine `event` with the events at singularities of a minimal parametrization."""

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


def cut_at_crossing(
    model: AbstractFormulation, y0: Unknowns, ts: Float[Array, " T"], ys: PyTree[Array]
) -> tuple[Float[Array, " T"], PyTree[Array]]:
    """Mark samples as not reached that lie beyond a singularity which the last step crossed."""

    def signs(y):
        return jnp.sign(jax.vmap(model.rotation.singularity_function)(model.layout.rotations(y)))

    start = signs(y0)
    crossed = jnp.cumsum(jax.vmap(lambda y: jnp.any(signs(y) != start))(ys)) > 0
    return jnp.where(crossed, jnp.inf, ts), jnp.where(crossed[:, None], jnp.inf, ys)


def name_result(
    result: Any, solver: diffrax.AbstractSolver, model: AbstractFormulation, t0: Time, t1: Time
) -> Any:
    """Translate a result of diffrax to the `RESULTS` of this package."""
    result = promote(result)
    if isinstance(solver, AbstractStructureSolver):
        failure = getattr(RESULTS, solver.failure)
        result = RESULTS.where(result == RESULTS.nonlinear_divergence, failure, result)
    exceeds = [jnp.asarray(signal.run_exceeds_table(t0, t1)) for signal in table_signals(model)]
    if exceeds or model.multibody.num_states:
        ended = jnp.any(jnp.stack([jnp.array(False), *exceeds]))
        name = RESULTS.where(ended, RESULTS.signal_ended, RESULTS.jump_within_step)
        result = RESULTS.where(result == RESULTS.promote(SIGNAL_NOT_FROZEN), name, result)
    # Inside a run `JOINTS_OPEN` represents it.
    return RESULTS.where(result == RESULTS.stagnation, RESULTS.joints_open, result)


def mark_singularity(result: Any, mask: Any) -> tuple[Any, PyTree]:
    """Return the result with `singular_parametrization`, and the mask of the user's events.

    **Arguments:** `mask`, of the events of `add_singularity_event`.
    """
    singular = jnp.any(jnp.stack(jax.tree.leaves(mask["singular"])))
    result = RESULTS.where(singular, RESULTS.singular_parametrization, result)
    return result, mask.get("user")


def mark_nonfinite(result: Any, ts: Float[Array, " T"], ys: PyTree[Array]) -> Any:
    """Downgrade a successful result to `nonfinite_state` if any saved value is not finite."""
    values, _ = split_chart(ys)  # padded where a time was not reached
    finite = jnp.all(jnp.isfinite(values) | ~jnp.isfinite(ts)[:, None])
    return RESULTS.where(finite | ~is_okay(result), result, RESULTS.nonfinite_state)


def nan_unless_event(
    result: Any, mask: PyTree, ts: Float[Array, "1"], ys: PyTree[Array]
) -> tuple[Scalar, Unknowns]:
    """Return time and unknowns of the event that ended a run, NaN if no event did.

    **Arguments:** `result`; `mask` of the user's events; `ts` (1,) and `ys`, the last sample.
    """
    occurred = jnp.any(jnp.stack(jax.tree.leaves(mask))) & (result == RESULTS.event_occurred)
    return jax.tree.map(
        lambda x: jnp.where(occurred, x[0], jnp.asarray(jnp.nan, x.dtype)), (ts, ys)
    )


def mark_invalid(
    invalid: Flag, result: Any, ts: PyTree[Array], ys: PyTree[Array]
) -> tuple[Any, PyTree[Array], PyTree[Array]]:
    """Return result, times and samples; `invalid_input` and infinite samples if `invalid`."""
    ts, ys = jax.tree.map(
        lambda x: jnp.where(invalid, jnp.asarray(jnp.inf, x.dtype), x)
        if eqx.is_inexact_array(x) else x,
        (ts, ys),
    )  # fmt: skip
    return RESULTS.where(invalid, RESULTS.invalid_input, result), ts, ys


def nan_if_failed(solution: Solution, okay: Flag) -> Solution:
    """Replace the samples and transitions of a failed run, but not the times of its samples, and
    their derivatives by NaN."""
    factor = jnp.where(okay, 1.0, jnp.nan)
    parts = lambda s: (s.ys, s.interpolation, s.event_y, s.transitions)  # noqa: E731
    return eqx.tree_at(
        parts,
        solution,
        jax.tree.map(
            lambda x: x * factor.astype(x.dtype) if eqx.is_inexact_array(x) else x, parts(solution)
        ),
        is_leaf=lambda x: x is None,
    )


def raise_if_traced(
    solution: Solution, okay: Flag, faults: StartFaults | None, messages: Sequence[str]
) -> Solution:
    """Return the solution; at run time raise the first message of the faults of its start that
    applies, or that of its result if it failed."""
    result = solution.result

    def parts(s):
        return s.ts, s.ys, s.interpolation, s.event_time, s.event_y, s.transitions

    def check(x):
        if faults is not None:
            x = raise_or_collect(x, faults.flags, messages)
        return opaque_call(lambda x, result, bad: result.error_if(x, bad), x, result, ~okay)

    checked = checked_with_derivatives(parts(solution), check)
    return eqx.tree_at(parts, solution, checked, is_leaf=lambda x: x is None)
