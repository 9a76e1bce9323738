"""Outcomes of a simulation."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

import diffrax
import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from .annotations import Count, Flag, Scalar

# Inside a run diffrax accepts only its own results. This one belongs to iterative linear solvers,
# which are not used here; it represents `RESULTS.joints_open`.
JOINTS_OPEN: Any = diffrax.RESULTS.stagnation


class RESULTS(diffrax.RESULTS):  # pyright: ignore[reportGeneralTypeIssues]
    """Outcomes of a simulation, in addition to those of diffrax, optimistix and lineax."""

    singular_parametrization = (
        "The rotation reached a singularity of its parametrization. Let the formulation move its "
        "reference on (`recharting=True`), or use `rj.Quaternion()`, which has no singularity."
    )
    chart_left = (
        "A body turned by 2 pi or more within one step: it left the chart of the rotation group in "
        "which a Lie-group method makes its steps. Use shorter steps or an adaptive step size."
    )
    signal_ended = (
        "The run goes beyond the table of a `Signal`: before its first sample or after its last "
        'sample, delay included. Add samples, or set `extrapolation="constant"` or "zero".'
    )
    jump_within_step = (
        "A `Signal` jumps within a step of fixed length, or a `SampledController` samples there. "
        "Choose `dt` so that steps end at its samples, or use an adaptive step size, whose steps "
        "end there automatically."
    )
    invalid_input = (
        "The run did not start: its model, state, times or step are not admissible (a mass, an "
        "inertia, an axis, a quaternion, a state that violates the joints, a value that is not "
        "finite). Build this model outside `jax.vmap`, or pass throw=True: the error names the "
        "argument."
    )
    nonfinite_state = (
        "The state is no longer finite. Use smaller steps or an adaptive step size, or check the "
        "forces for values that are not finite."
    )
    joints_open = (
        "The joints can no longer be closed: the mechanism reached the end of its range, or a "
        "prescribed motion contradicts other joints."
    )
    transition_at_start = (
        "A transition is due at the start of the run: its function `when` is zero there and moves "
        "on in its direction, or a contact is penetrated. Start before the transition, or apply "
        "its `change` to the start."
    )
    transition_without_effect = (
        "The `change` of a transition returned the state unchanged, so that the motion would go "
        "on through it. Return another state, or values of inputs; for an event that only ends a "
        "run use `simulate(event=...)`."
    )
    transitions_accumulate = (
        "Transitions follow one another in ever shorter intervals, like the impacts of a ball that "
        "comes to rest. Use `rj.PlaneContact` or `rj.JointStop` with `rj.Restitution` and without "
        "friction, which close; or continue from the last one with a contact force or a joint."
    )
    contact_persists = (
        "The function `when` of a transition stays at zero after its `change`, or the motion would "
        "pass through its zero from rest: the bodies stay in contact. Use `rj.PlaneContact` or "
        "`rj.JointStop` with `rj.Restitution` and without friction in `rj.NullSpace` or "
        "`rj.Relative`, which close; or continue with a contact force, a joint, or another mode."
    )
    max_transitions_reached = (
        "More transitions occurred than `max_transitions`. If that is intended, raise it."
    )
    inadmissible_change = (
        "The `change` of a transition returned a state that the model does not admit: quaternions "
        "that are not of unit length, poses that violate joints, or values that are not finite."
    )


# The message of diffrax names no cause. Redefining the entry would warn at every import.
_ENTRIES: Any = RESULTS
_ENTRIES._index_to_message[int(_ENTRIES.max_steps_reached._value)] = (
    "The maximum number of solver steps was reached. If steps became short, the equations may be "
    "stiff (springs, dampers, bushings): use `rj.solvers.Radau5()` or `rj.solvers.BDF()`. Or a "
    "law jumps, such as friction with `sign(rate)`, and the run chatters between its sides: smooth "
    "it, as in `tanh(rate / v)` with a small rate `v`. Or every step has to resolve the "
    "orientation of a fast rotor: use `rj.Relative`, where it is one angle. If the steps are "
    "reasonable, raise `max_steps`."
)


def promote(result: Any) -> Any:
    """Return a result of diffrax as one of this package.

    It is what equinox's `promote` does, but that compiles functions even inside a trace.
    """
    table = _ENTRIES._base_offsets[diffrax.RESULTS]
    table = jnp.asarray(table) if result.is_traced() else table
    return type(result)(table[result._value], RESULTS)


def first_failure(result: Any, then: Any) -> Any:
    """Return `result` of diffrax if it is a failure, else `then`."""
    okay = is_successful(result)
    return then if okay is True else diffrax.RESULTS.where(okay, then, result)


def is_successful(result: Any) -> bool | Flag:
    """Return whether a result of diffrax is that of success, without a trace if it is concrete."""
    if result.is_traced():
        return diffrax.is_successful(result)
    return bool(np.all(result._value == diffrax.RESULTS.successful._value))


class SimulationError(RuntimeError):
    """Failure of a simulation to reach its end, with the reason; see `Solution.result`."""


# Whether a failed run returns NaN instead of raising: an error in an ensemble would end all
# members. As a user context it is part of the cache key of `jax.jit`.
failures_as_nan = jax.make_user_context(False)


class RunOutcome(NamedTuple):
    """Outcome of a run: its failure or `successful`, its steps, and the last time it reached, s."""

    failure: RESULTS
    num_steps: Count
    reached: Scalar

    @classmethod
    def from_solution(cls, solution: Any) -> "RunOutcome":
        """Return the outcome of a `Solution`; an event counts as success."""
        successful: Any = RESULTS.successful
        result = RESULTS.where(
            solution.result == RESULTS.event_occurred, successful, solution.result
        )
        times = jnp.where(jnp.isfinite(solution.ts), solution.ts, -jnp.inf)
        last = jnp.max(times, initial=-jnp.inf)
        return cls(result, solution.stats["num_steps"], jnp.where(last == -jnp.inf, jnp.nan, last))


_recorded: contextvars.ContextVar[tuple[list[RunOutcome], Any] | None] = contextvars.ContextVar(
    "recorded", default=None
)


@contextlib.contextmanager
def record_runs() -> Iterator[list[RunOutcome]]:
    """Collect the outcomes of the runs inside this context in the list that it returns.

    Runs inside a further JAX transformation are left out.
    """
    outcomes: list[RunOutcome] = []
    token = _recorded.set((outcomes, jax.extend.core.get_opaque_trace_state()))
    try:
        yield outcomes
    finally:
        _recorded.reset(token)


def record_run(solution: Any) -> None:
    """Append the outcome of a run to the list of the surrounding `record_runs`."""
    recorded = _recorded.get()
    if recorded is not None and recorded[1] == jax.extend.core.get_opaque_trace_state():
        recorded[0].append(RunOutcome.from_solution(solution))
