"""How a simulation can end."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

import diffrax
import jax
import jax.extend
import jax.numpy as jnp

from .annotations import Count, Scalar

# In a run diffrax knows its own results only. This one, of an iterative linear solver that is of no
# use here, stands for `RESULTS.joints_open` there.
JOINTS_OPEN: Any = diffrax.RESULTS.stagnation


class RESULTS(diffrax.RESULTS):  # pyright: ignore[reportGeneralTypeIssues]
    """Outcomes of a simulation: those of diffrax, optimistix and lineax, and these."""

    singular_parametrization = (
        "The rotation came to a singularity of its parametrization. Let the formulation move its "
        "reference on (`recharting=True`), or use `rj.Quaternion()`, which has no singularity."
    )
    chart_left = (
        "A body turned by 2 pi or more within one step: it left the chart of the rotation group in "
        "which a Lie-group method makes its steps. Take shorter steps or an adaptive step size."
    )
    signal_ended = (
        "The run goes beyond the table of a `Signal`: before its first sample or after its last "
        'one, delay included. Give it more samples, or `extrapolation="constant"` or "zero".'
    )
    jump_within_step = (
        "A `Signal` jumps within a step of fixed length. Choose `dt` so that steps end at its "
        "samples, or take an adaptive step size, which ends there by itself."
    )
    invalid_input = (
        "The run has not begun: its model, state, times or step are not admissible (a mass, an "
        "inertia, an axis, a quaternion, a state that joints do not allow, a number that is not "
        "finite). Build this one outside of `jax.vmap`, or pass throw=True: the error names it."
    )
    nonfinite_state = (
        "The state is no longer finite. Take smaller steps or an adaptive step size, or check the "
        "forces for values that are not finite."
    )
    joints_open = (
        "The joints can no longer be closed: the mechanism came to the end of its reach, or a "
        "prescribed motion asks for what other joints forbid."
    )


# The text of diffrax names no cause. To define the entry again would warn at every import.
_ENTRIES: Any = RESULTS
_ENTRIES._index_to_message[int(_ENTRIES.max_steps_reached._value)] = (
    "The maximum number of solver steps was reached. If steps became short, the equations may be "
    "stiff (springs, dampers, bushings): take `rj.solvers.Radau5()` or `rj.solvers.BDF()`. Or a "
    "law jumps, as friction with `sign(rate)`, and the run chatters between its sides: smooth it, "
    "as `tanh(rate / v)` with a small rate `v`. Or a rotor is fast, whose orientation every step "
    "has to resolve: take `rj.Relative`, where it is one angle. If the steps are as they should "
    "be, raise `max_steps`."
)


class SimulationError(RuntimeError):
    """A simulation that did not reach its end, with the reason; see `Solution.result`."""


# Whether a run that fails is NaN where it would raise: inside of an ensemble, where an error would
# end all members. What `jax.jit` traced for one is not taken for the other.
failures_kept = jax.make_user_context(False)


class Noted(NamedTuple):
    """How a run ended: its failure or `successful`, its steps, the last time that it came to, s."""

    failure: RESULTS
    num_steps: Count
    reached: Scalar

    @classmethod
    def of(cls, solution: Any) -> "Noted":
        """That of a `Solution`."""
        successful: Any = RESULTS.successful
        result = RESULTS.where(
            solution.result == RESULTS.event_occurred, successful, solution.result
        )
        times = jnp.where(jnp.isfinite(solution.ts), solution.ts, -jnp.inf)
        last = jnp.max(times, initial=-jnp.inf)
        return cls(result, solution.stats["num_steps"], jnp.where(last == -jnp.inf, jnp.nan, last))


_noted: contextvars.ContextVar[tuple[list[Noted], Any] | None] = contextvars.ContextVar(
    "noted", default=None
)


@contextlib.contextmanager
def noted_runs() -> Iterator[list[Noted]]:
    """A list of the runs made inside, but for those inside of further transformations."""
    noted: list[Noted] = []
    token = _noted.set((noted, jax.extend.core.get_opaque_trace_state()))
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_run(solution: Any) -> None:
    """Put a run on the list of those around it."""
    at = _noted.get()
    if at is not None and at[1] == jax.extend.core.get_opaque_trace_state():
        at[0].append(Noted.of(solution))
