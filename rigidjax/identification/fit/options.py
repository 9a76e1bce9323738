"""Checked arguments of fits, start states, and checks of the start."""

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
from ..component_table import ComponentTable
from ..data.first_samples import first_samples
from ..data.inputs import bind_measured
from ..data.measurements import Runs
from ..data.revolutions import detect_angle_ranges
from ..simulation import Simulation
from ..start_geometry import place_prescribed_joints
from ..statistics.covariance import columns_without_effect
from .evaluation import Evaluation
from .failed_runs import IdentificationError, explain_failed_run
from .first_order import FirstOrder
from .least_squares import Search
from .losses import AbstractLoss, Squares
from .problem import FitProblem

Method: TypeAlias = Literal["levenberg-marquardt", "gauss-newton", "prediction-error"] | FirstOrder
METHODS = ("levenberg-marquardt", "gauss-newton", "prediction-error")


def make_search(
    dtype: Any,
    horizons: Sequence[float] = (0.1, 0.3, 1.0),
    method: Method = "levenberg-marquardt",
    loss: AbstractLoss | None = None,
    max_iterations: int = 200,
    tolerance: float | None = None,
) -> Search:
    """Return the search options for a precision, from arguments of `rj.identify`.

    **Errors:** `ValueError` and `TypeError` for arguments that do not fit.
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
    if not isinstance(method, FirstOrder) and method not in METHODS:
        raise ValueError(
            '`identify(method=...)` must be "levenberg-marquardt", "gauss-newton", '
            f'"prediction-error" or `rj.identification.FirstOrder(...)`; got {method!r}.'
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


def trial_simulation(simulation: Simulation, dtype: jnp.dtype) -> Simulation:
    """Return the simulation settings of trials."""
    return simulation.with_defaults(dtype, solver=diffrax.Dopri5())


def check_starts(starts: Any, start_spread: Any, segments: Any, model: Any) -> None:
    """Raise `ValueError` for invalid numbers of starts or segments."""
    if isinstance(segments, bool) or not isinstance(segments, int) or segments < 1:
        raise ValueError(
            "`identify(segments=...)` must be a number of segments, 1 for undivided runs; got "
            f"{segments!r}."
        )
    if segments > 1 and model.multibody.num_states:
        raise ValueError(
            "`identify(segments=...)` starts segments from states of the bodies; the states of "
            "actuators are not among them. Fit undivided runs, `segments=1`."
        )
    if not isinstance(starts, int) or starts < 1 or not start_spread > 0:
        raise ValueError(
            "`identify(starts=...)` must be a number of starts, at least 1, with a positive "
            f"`start_spread`; got {starts!r} and {start_spread!r}."
        )


def prepare_runs(
    model: AbstractFormulation, all_runs: Sequence[Runs]
) -> tuple[AbstractFormulation, list[Runs], list[str]]:
    """Return a model that tracks the measured angles and has signals for the measured inputs, and
    runs with the angle ranges of sensors.

    **Returns:** also notes on the ranges that were detected.
    """
    check_precision("identify", model, all_runs[0].sensors, (), all_runs[0].ts)
    model = bind_measured(model, all_runs[0].inputs[0])
    for sensor in all_runs[0].sensors:
        sensor.check(model)
    model = unwrap_measured_angles(model, all_runs[0].sensors)
    return model, *detect_angle_ranges(model, all_runs)


def start_states(model: Any, runs: Runs, state0: Any) -> list[State]:
    """Return the start state of every run, from its first readings if none is given."""
    count = len(runs.names)
    if state0 is None:
        state = _reference_state(model, runs.ts[0, 0])
        # All runs at once: outside `jit`, every operation would be compiled separately.
        repeated = jax.tree.map(lambda x: np.broadcast_to(x, (count, *np.shape(x))), state)
        samples = [
            [sample.value for sample in first_samples(runs, k)] for k in range(len(runs.sensors))
        ]
        improved_states = improve_states(
            model, runs.sensors, repeated, [np.stack(values) for values in samples]
        )
        improved_states = jax.tree.map(np.asarray, improved_states)
        states = [
            jax.tree.map(lambda x, b=b: jnp.asarray(x[b]), improved_states) for b in range(count)
        ]
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
    states = [model.check_state(s, t) for s, t in zip(states, first, strict=True)]
    states = [_add_all_angles(model, state) for state in states]
    return [jax.tree.map(lambda x: x.astype(dtype), state) for state in states]


def _add_all_angles(model: AbstractFormulation, state: State) -> State:
    """Return the state with the unwrapped angles of all joints, so that states can be stacked."""
    system = model.multibody
    if state.angle_names == system.angle_names:
        return state
    prepared = PreparedSystem(system)
    return with_joint_angles(
        prepared, state, joint_frames_at(prepared, poses_of_state(prepared, state.normalized()))
    )


def _reference_state(model: AbstractFormulation, t: Any) -> State:
    """Return the reference state, with prescribed joints at their motion at time `t`, s."""
    system, state = model.multibody, model.multibody.reference_state()
    if isinstance(model, JointStart) or not any(joint.is_driven for joint in system.joints):
        return state
    return place_prescribed_joints(model, state, t)


def count_fitted(table: ComponentTable, runs: Runs) -> int:
    """Return the number of fitted components.

    **Errors:** `ValueError` if there are fewer samples.
    """
    count = table.fitted_indices.size
    if runs.num_samples < count:
        raise ValueError(
            f"There are {runs.num_samples} scalar samples for {count} parameters. Fit fewer "
            "parameters, or measure more."
        )
    return count


def check_start(problem: FitProblem, runs: Runs, table: ComponentTable, first: Evaluation) -> None:
    """Raise an error that names the runs or parameters because of which a fit cannot succeed.

    **Errors:** `IdentificationError` for simulations that fail at the start values; `ValueError`
    for parameters without effect.
    """
    failing = np.flatnonzero(~np.asarray(first.okay))
    failed = [runs.names[b] for b in failing]
    if failed:
        raise IdentificationError(
            f"The simulation fails at the start values, in the runs {failed}. In the run "
            f"{failed[0]!r}: {explain_failed_run(problem, runs, int(failing[0]))}"
        )
    table = table.with_values(first.components)
    has_no_effect = columns_without_effect(
        first.component_jacobian_with_prior(), table.magnitudes(table.values)
    )
    idle = [table.labels[k] for k in np.flatnonzero(table.fitted & has_no_effect)]
    if idle:
        raise ValueError(
            f"The parameters {idle} act on nothing that is measured, at the start values. Leave "
            "them out, or start elsewhere."
        )
