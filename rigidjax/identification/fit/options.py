"""Arguments of fits, checked, and what a fit starts from."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import AbstractFormulation
from ...initial import JointStart
from ...mechanics.kinematics.poses import joint_frames_at, poses_of_state, with_joint_angles
from ...mechanics.stacked.system import PreparedSystem
from ...sensors import improve_states, unwrap_measured_angles
from ...state import State
from ..checked_arguments import check_precision
from ..data.first_samples import first_samples
from ..data.measurements import Runs
from ..data.revolutions import with_ranges
from ..parameters import Components
from ..simulation import Simulation
from ..start_geometry import start_of_prescribed
from ..statistics.covariance import without_effect
from .evaluation import Evaluation
from .failed_runs import failed_run_text
from .first_order import FirstOrder
from .least_squares import Search
from .losses import AbstractLoss, Squares
from .problem import Problem
from .result import IdentificationError

Method: TypeAlias = Literal["levenberg-marquardt", "gauss-newton"] | FirstOrder
_METHODS = ("levenberg-marquardt", "gauss-newton")


def search_of(
    dtype: Any,
    horizons: Sequence[float] = (0.1, 0.3, 1.0),
    method: Method = "levenberg-marquardt",
    loss: AbstractLoss | None = None,
    max_iterations: int = 200,
    tolerance: float | None = None,
) -> Search:
    """How the minimum is searched for, in a precision; from arguments of `rj.identify`.

    **Errors:** `ValueError` and `TypeError`.
    """
    stages = np.asarray(horizons, float)
    if not (
        stages.ndim == 1
        and len(stages) > 0
        and np.all(np.diff(stages) > 0)
        and stages[0] > 0
        and stages[-1] == 1
    ):
        raise ValueError(
            "`identify(horizons=...)` must increase, from above 0, to 1, such as "
            f"(0.1, 0.3, 1.0); got {horizons!r}."
        )
    if not isinstance(method, FirstOrder) and method not in _METHODS:
        raise ValueError(
            '`identify(method=...)` must be "levenberg-marquardt", "gauss-newton" or '
            f"`rj.identification.FirstOrder(...)`; got {method!r}."
        )
    if loss is not None and not isinstance(loss, AbstractLoss):
        raise TypeError(
            "`identify(loss=...)` must be a loss such as `rj.identification.Huber()`; got "
            f"{loss!r}."
        )
    if max_iterations < 4:
        raise ValueError(
            f"`identify(max_iterations=...)` must be at least 4; got {max_iterations}."
        )
    if tolerance is None:
        tolerance = 1e-8 if dtype == jnp.float64 else 1e-4
    return Search(
        np.asarray(stages, dtype),
        np.asarray(tolerance, dtype),
        max_iterations,
        Squares() if loss is None else loss,
        method != "gauss-newton",
    )


def trials(simulation: Simulation, dtype: Any) -> Simulation:
    """How trials are simulated."""
    return simulation.prepared(dtype, solver=diffrax.Dopri5())


def check_starts(starts: Any, start_spread: Any, segments: Any) -> None:
    """Raise `ValueError` for numbers of starts or segments that make no sense."""
    if isinstance(segments, bool) or not isinstance(segments, int) or segments < 1:
        raise ValueError(
            "`identify(segments=...)` must be a number of segments, 1 for undivided runs; got "
            f"{segments!r}."
        )
    if not isinstance(starts, int) or starts < 1 or not start_spread > 0:
        raise ValueError(
            "`identify(starts=...)` must be a number of starts, at least 1, with a positive "
            f"`start_spread`; got {starts!r} and {start_spread!r}."
        )


def prepare(
    model: AbstractFormulation, all_runs: Sequence[Runs]
) -> tuple[AbstractFormulation, list[Runs], list[str]]:
    """Return the model with the angles that sensors need, and runs whose sensors know their range.

    **Returns:** also notes on how sensors of angles are read.
    """
    check_precision("identify", model, all_runs[0].sensors, (), all_runs[0].ts)
    for sensor in all_runs[0].sensors:
        sensor.check(model)
    model = unwrap_measured_angles(model, all_runs[0].sensors)
    return model, *with_ranges(model, all_runs)


def start_states(model: Any, runs: Runs, state0: Any) -> list[State]:
    """The start state of every run, from its first readings if none is given."""
    count = len(runs.names)
    if state0 is None:
        state = _reference_state(model, runs.ts[0, 0])
        # All at once: every operation outside of a program would be compiled by itself.
        given = jax.tree.map(lambda x: np.broadcast_to(x, (count, *np.shape(x))), state)
        samples = [[one.value for one in first_samples(runs, k)] for k in range(len(runs.sensors))]
        found = improve_states(model, runs.sensors, given, [np.stack(values) for values in samples])
        found = jax.tree.map(np.asarray, found)
        states = [jax.tree.map(lambda x, b=b: jnp.asarray(x[b]), found) for b in range(count)]
    elif isinstance(state0, State):
        states = [state0] * count
    else:
        states = list(state0)
        if len(states) != count:
            raise ValueError(
                f"`identify(state0=...)` takes one state, or one for each of the {count} runs; got "
                f"{len(states)}."
            )
    dtype, first = jnp.result_type(runs.ts), np.asarray(runs.ts)[:, 0]
    checked = [model.check_state(s, t) for s, t in zip(states, first, strict=True)]
    checked = [_with_all_angles(model, state) for state in checked]
    return [jax.tree.map(lambda x: x.astype(dtype), state) for state in checked]


def _with_all_angles(model: AbstractFormulation, state: State) -> State:
    """Return the state with the unwrapped angles of all joints: states of all sources stack."""
    system = model.multibody
    if state.angle_names == system.angle_names:
        return state
    prepared = PreparedSystem(system)
    return with_joint_angles(
        prepared, state, joint_frames_at(prepared, poses_of_state(prepared, state.normalized()))
    )


def _reference_state(model: AbstractFormulation, t: Any) -> State:
    """The reference state, with prescribed joints where their motion wants them at `t`, s."""
    system, state = model.multibody, model.multibody.reference_state()
    if isinstance(model, JointStart) or not any(joint.is_driven for joint in system.joints):
        return state
    return start_of_prescribed(model, state, t)


def num_fitted(table: Components, runs: Runs) -> int:
    """Number of fitted components.

    **Errors:** `ValueError` if there are fewer samples.
    """
    count = table.chosen.size
    if runs.num_samples < count:
        raise ValueError(
            f"There are {runs.num_samples} scalar samples for {count} parameters. Fit fewer "
            "parameters, or measure more."
        )
    return count


def check_start(problem: Problem, runs: Runs, table: Components, first: Evaluation) -> None:
    """Say by name why a fit could not succeed."""
    failing = np.flatnonzero(~np.asarray(first.okay))
    failed = [runs.names[b] for b in failing]
    if failed:
        raise IdentificationError(
            f"The simulation fails at the start values, in the runs {failed}. Of the run "
            f"{failed[0]!r}: {failed_run_text(problem, runs, int(failing[0]))}"
        )
    table = table.at(first.components)
    nothing = without_effect(first.with_prior(), table.reach(table.values))
    idle = [table.labels[k] for k in np.flatnonzero(table.fitted & nothing)]
    if idle:
        raise ValueError(
            f"The parameters {idle} act on nothing that is measured, at the start values. Leave "
            "them out, or start elsewhere."
        )
