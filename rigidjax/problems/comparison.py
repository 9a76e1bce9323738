"""The same motion in every formulation, side by side."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..bodies import FixedPointBody
from ..formulations import Absolute, AbstractFormulation, EulerParameters, NullSpace
from ..results import RESULTS
from ..rotations import (
    ConformalRotationVector,
    Directors,
    EulerAngles,
    LinearParameters,
    RodriguesParameters,
    RotationVector,
    euler_map,
)
from ..simulate import simulate
from ..state import State
from ..system import System
from .problem import Problem

# Saved times, both ends included.
_SAMPLES = 65

# Tolerances of the fit of work against error, in units of the tolerance asked for.
_LADDER = (1.0, 10.0, 100.0, 1000.0)

# A run that is off by more than this is no measure of work.
_LARGEST_ERROR = 1e-2


class Row(NamedTuple):
    """One formulation in a comparison.

    - `label`, `num_unknowns`, `num_steps` (accepted and rejected), `num_rhs` (evaluations of the
      right-hand side, Jacobian columns apart).
    - `error_rotation`: largest error of an entry of $R$; `error_rate`: largest error of a component
      of the angular velocity in body components, rad/s. At all times that were compared.
    - `position_drift`, `velocity_drift` (1/s): largest violations of the internal constraints.
    - `energy_drift`: largest relative change of the energy.
    - `work`: evaluations at the error that all reach, relative to the first row; NaN if unknown.
    - `failure`: why the run ended early, or an empty text. Then the errors are NaN.
    - `evaluations`, `errors`: evaluations and errors at a ladder of tolerances, the one asked for
      first, shape (K,); an error is the larger one of `error_rotation` and of `error_rate` divided
      by the largest rate.
    """

    label: str
    num_unknowns: int
    num_steps: int
    num_rhs: int
    error_rotation: float
    error_rate: float
    position_drift: float
    velocity_drift: float
    energy_drift: float
    work: float
    failure: str
    evaluations: np.ndarray
    errors: np.ndarray


class Comparison(NamedTuple):
    """Rows, and what they were compared with.

    `reference`: in words, what the errors are against; `ts`: the times of comparison, (T,) s.
    """

    rows: list[Row]
    reference: str
    ts: np.ndarray


def formulations(system: System | FixedPointBody) -> dict[str, AbstractFormulation]:
    """Every formulation of a system by a label for people, null space first."""
    rotations = {
        "directors": Directors(),
        "Euler angles ZXZ": EulerAngles("ZXZ"),
        "Bryant angles ZYX": EulerAngles("ZYX"),
        "rotation vector": RotationVector(),
        "Rodrigues parameters": RodriguesParameters(),
        "conformal rotation vector": ConformalRotationVector(),
        "linear parameters": LinearParameters(),
    }
    models: dict[str, AbstractFormulation] = {
        "null space, quaternion": NullSpace(system),
        "null space, quaternion, space rates": NullSpace(system, rates="space"),
    }
    models |= {f"null space, {name}": NullSpace(system, r) for name, r in rotations.items()}
    models["absolute, quaternion"] = Absolute(system)
    models["absolute, directors"] = Absolute(system, Directors())
    models["absolute, Euler parameters"] = EulerParameters(system)
    return models


def compare(
    problem: Problem,
    models: Mapping[str, AbstractFormulation] | None = None,
    *,
    t1: float | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-9,
    projection: bool = True,
    report: Callable[[str], None] | None = None,
) -> Comparison:
    """Solve a problem in several formulations and measure work, errors and drifts.

    **Arguments:** `problem`; `models` by their labels, `None` for `formulations(problem.system)`;
    `t1`, another end than the problem's, s; `solver`, `None` for `diffrax.Dopri5()`; `rtol`, also
    taken as the absolute tolerance (as in Lang, section 7); `projection`, after every step;
    `report`, called with the label of each formulation before it is run.
    **Returns:** a `Comparison`.
    """
    truth = find_truth(problem, problem.t1 if t1 is None else t1)
    models = formulations(problem.system) if models is None else models
    rows = []
    for label, model in models.items():
        if report is not None:
            report(label)
        rows.append(measure(problem, label, model, truth, solver, rtol, projection))
    return Comparison(rank(rows), truth.text, truth.ts)


class Truth(NamedTuple):
    """What runs are compared with: words, end time, times of comparison, states."""

    text: str
    t1: float
    ts: np.ndarray
    states: State


def find_truth(problem: Problem, t1: float) -> Truth:
    """The reference of a problem up to `t1`: closed form, stored end state, or a sharper run."""
    times = np.linspace(0.0, t1, _SAMPLES)
    if problem.has_reference:
        return Truth("the closed form", t1, times, problem.reference(times))
    if t1 == problem.t1 and problem.end_state is not None:
        end = np.array([t1])
        return Truth("an integration with 40 digits, at the end", t1, end, problem.reference(end))
    sharp = simulate(
        NullSpace(problem.system), problem.state0, t1, ts=times, rtol=1e-13, atol=1e-13
    )
    return Truth(
        "a run in null-space coordinates with Dopri8 and tolerance 1e-13", t1, times, sharp.states
    )


def measure(
    problem: Problem,
    label: str,
    model: AbstractFormulation,
    truth: Truth,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-9,
    projection: bool = True,
) -> Row:
    """Run one formulation at a ladder of tolerances, from `rtol` up; the row is that of `rtol`."""
    solver = diffrax.Dopri5() if solver is None else solver
    largest_rate = float(jnp.max(jnp.abs(truth.states.angular_velocity)))
    evaluations, errors, first = [], [], None
    for factor in _LADDER:
        # An array, so that one compilation serves every tolerance.
        tolerance: Any = jnp.asarray(factor * rtol)
        solution = simulate(
            model,
            problem.state0,
            truth.t1,
            ts=truth.ts,
            solver=solver,
            rtol=tolerance,
            atol=tolerance,
            projection=projection,
            throw=False,
        )
        failure = RESULTS[solution.result]
        numbers = [float(x) for x in _summary(solution, problem.state0, truth.states)]
        if failure:
            numbers = [float("nan")] * len(numbers)
        evaluations.append(int(solution.stats["num_rhs"]))
        errors.append(max(numbers[0], numbers[1] / largest_rate))
        if first is None:
            first = int(solution.stats["num_steps"]), numbers, failure
    assert first is not None
    num_steps, numbers, failure = first
    return Row(
        label,
        model.num_unknowns,
        num_steps,
        evaluations[0],
        *numbers,
        work=float("nan"),
        failure=failure,
        evaluations=np.array(evaluations),
        errors=np.array(errors),
    )


@eqx.filter_jit
def _summary(solution: Any, state0: State, true: State):
    """Errors in R and in the body rates, drift in position and velocity, change of the energy."""
    model = solution.model

    def at(t, y):
        return model.decode(t, y), model.energy(t, y), model.drift(t, y)

    states, energy, (position, velocity) = jax.vmap(at)(solution.ts, solution.ys)
    matrices = jax.vmap(jax.vmap(euler_map))
    start = model.energy(solution.ts[0], model.encode(state0))
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    return (
        jnp.max(jnp.abs(matrices(states.orientation) - matrices(true.orientation))),
        jnp.max(jnp.abs(states.angular_velocity - true.angular_velocity)),
        jnp.max(position),
        jnp.max(velocity),
        jnp.max(jnp.abs(energy - start)) / size,
    )


def rank(rows: Sequence[Row]) -> list[Row]:
    """The rows, with the work of each at the error that all of them reach.

    Evaluations against error are a straight line in logarithms for a method of fixed order; the
    line is fitted to the ladder of tolerances. The common error is the largest at the tolerance
    asked for, so that nothing is extrapolated to errors smaller than measured.
    """
    reached = [row.errors[0] for row in rows if _measures_work(row)]
    if not reached:
        return list(rows)
    level = max(reached)
    work = [evaluations_at(row, level) if _measures_work(row) else float("nan") for row in rows]
    return [row._replace(work=w / work[0]) for row, w in zip(rows, work, strict=True)]


def evaluations_at(row: Row, error: float) -> float:
    """Evaluations at an error, from the line through the ladder of a row; NaN without a line."""
    good = np.isfinite(row.errors) & (row.errors > 0) & (row.errors < _LARGEST_ERROR)
    if good.sum() < 2 or np.ptp(row.errors[good]) == 0:
        return float("nan")
    slope, start = np.polyfit(np.log(row.errors[good]), np.log(row.evaluations[good]), 1)
    return float(np.exp(start + slope * np.log(error)))


def _measures_work(row: Row) -> bool:
    return bool(0 < row.errors[0] < _LARGEST_ERROR and row.evaluations[0] > 0)
