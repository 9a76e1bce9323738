"""The same motion in every formulation, side by side."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from ..bodies import FixedPointBody
from ..formulations import (
    Absolute,
    AbstractFormulation,
    EulerParameters,
    Hamiltonian,
    NullSpace,
    Relative,
)
from ..formulations.charts import split_chart
from ..mechanics import System, has_joints
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
from ..simulate.simulate import simulate
from ..state import State
from .problem import Problem

# Tolerances of the fit of work against error, in units of the tolerance asked for.
_LADDER = (1.0, 10.0, 100.0, 1000.0)

# A run that is off by more than this is no measure of work.
_LARGEST_ERROR = 0.1


class Row(NamedTuple):
    """One formulation in a comparison.

    - `label`, `num_unknowns`, `num_steps` (accepted and rejected), `num_rhs` (evaluations of the
      right-hand side, Jacobian columns apart).
    - `error_rotation`: largest error of an entry of $R$; `error_rate`: largest error of a component
      of the angular velocity in body components, rad/s; both at the end.
    - `position_drift`, `velocity_drift` (1/s): violations of the internal constraints at the end.
    - `energy_drift`: relative change of the energy at the end. (Between the steps of a solver all
      three are those of its interpolation.)
    - `work`: evaluations, relative to what the first row needs for the same error; NaN if unknown.
    - `failure`: why the run ended early, or an empty text. Then the errors are NaN.
    - `evaluations`, `errors`: evaluations and errors at a ladder of tolerances, the one asked for
      first, shape (K,); an error is the largest one of `error_rotation`, of `error_rate` divided
      by the largest rate, and of `error_position` divided by the largest coordinate.
    - `error_position`: largest error of a coordinate of a centre of mass at the end, m; zero for a
      body with a fixed point.
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
    error_position: float = 0.0


class Comparison(NamedTuple):
    """Rows, and what they were compared with.

    `reference`: in words, what the errors are against; `t1`: the time at which, s; `left_out`:
    formulations that cannot be used for this system, by their labels, and why.
    """

    rows: list[Row]
    reference: str
    t1: float
    left_out: Mapping[str, str] = MappingProxyType({})


def formulations(system: System | FixedPointBody) -> dict[str, AbstractFormulation]:
    """Every formulation of a system by a label for people, null space first.

    Those for single bodies are left out if there are joints.
    """
    rotations = {
        "directors": Directors(),
        "Euler angles ZXZ": EulerAngles("ZXZ"),
        "Bryant angles ZYX": EulerAngles("ZYX"),
        "rotation vector": RotationVector(),
        "Rodrigues parameters": RodriguesParameters(),
        "conformal rotation vector": ConformalRotationVector(),
        "linear parameters": LinearParameters(),
    }
    models: dict[str, AbstractFormulation] = {"null space, quaternion": NullSpace(system)}
    jointed = has_joints(system)
    if not jointed:
        models["null space, quaternion, space rates"] = NullSpace(system, rates="space")
    models |= {f"null space, {name}": NullSpace(system, r) for name, r in rotations.items()}
    if jointed:
        models["relative, quaternion"] = Relative(system)
    models["absolute, quaternion"] = Absolute(system)
    models["absolute, directors"] = Absolute(system, Directors())
    if not jointed:
        models["absolute, Euler parameters"] = EulerParameters(system)
        models["Hamiltonian, quaternion"] = Hamiltonian(system)
    return models


def usable(
    problem: Problem, models: Mapping[str, AbstractFormulation]
) -> tuple[dict[str, AbstractFormulation], dict[str, str]]:
    """Those of `models` that have room for the problem, and why the others have not.

    Absolute coordinates need mass in every direction, which point masses and thin rods lack.
    """
    good, left_out = {}, {}
    for label, model in models.items():
        try:
            model.check_state(problem.state0)
        except ValueError as error:
            left_out[label] = str(error)
        else:
            good[label] = model
    return good, left_out


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
    models, left_out = usable(problem, models)
    if not models:
        raise ValueError(f"No formulation can be used. {'; '.join(left_out.values())}")
    rows = []
    for label, model in models.items():
        if report is not None:
            report(label)
        rows.append(measure(problem, label, model, truth, solver, rtol, projection))
    return Comparison(rank(rows), truth.text, truth.t1, left_out)


class Truth(NamedTuple):
    """What runs are compared with: in words, the end time, s, the states at this one time."""

    text: str
    t1: float
    states: State


def find_truth(problem: Problem, t1: float) -> Truth:
    """The reference of a problem at `t1`: closed form, stored end state, or a sharper run."""
    if problem.has_reference:
        return Truth("the closed form", t1, problem.reference([t1]))
    if t1 == problem.t1 and problem.end_state is not None:
        return Truth("an integration with 40 digits", t1, problem.reference([t1]))
    dtype = problem.state0.orientation.dtype
    tolerance = max(1e-13, 10 * float(jnp.finfo(dtype).eps))
    sharp = simulate(NullSpace(problem.system), problem.state0, t1, rtol=tolerance, atol=tolerance)
    text = f"a run in null-space coordinates with Dopri8 at a tolerance of {tolerance:.0e}"
    return Truth(text, t1, sharp.states)


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
    smallest = 10 * float(jnp.finfo(truth.states.orientation.dtype).eps)
    if not rtol >= smallest:
        raise ValueError(
            f"`compare(rtol=...)` must be at least {smallest:.1e}, which is what the precision in "
            f"use reaches; got {rtol!r}."
        )
    # What does not turn, or does not move, is measured in rad/s and m.
    largest_rate = float(jnp.max(jnp.abs(truth.states.angular_velocity))) or 1.0
    largest_coordinate = float(jnp.max(jnp.abs(truth.states.position))) or 1.0
    evaluations, errors, first = [], [], None
    for factor in _LADDER:
        # An array, so that one compilation serves every tolerance.
        tolerance = jnp.asarray(factor * rtol)
        solution = simulate(
            model,
            problem.state0,
            truth.t1,
            solver=solver,
            stepsize_controller=diffrax.PIDController(
                rtol=tolerance, atol=tolerance, norm=_unknowns_norm
            ),
            projection=projection,
            throw=False,
        )
        failure = RESULTS[solution.result]
        numbers = [float(x) for x in _summary(solution, problem.state0, truth.states)]
        if failure:
            numbers = [float("nan")] * len(numbers)
        evaluations.append(int(solution.stats["num_rhs"]))
        errors.append(max(numbers[0], numbers[1] / largest_rate, numbers[-1] / largest_coordinate))
        if first is None:
            first = int(solution.stats["num_steps"]), numbers, failure
    assert first is not None
    num_steps, numbers, failure = first
    return Row(
        label,
        model.num_unknowns,
        num_steps,
        evaluations[0],
        *numbers[:-1],
        work=float("nan"),
        failure=failure,
        evaluations=np.array(evaluations),
        errors=np.array(errors),
        error_position=numbers[-1],
    )


def _unknowns_norm(y: Any) -> Float[Array, ""]:
    """Root mean square over the unknowns proper; the references of charts have no error."""
    return optx.rms_norm(split_chart(y)[0])


@eqx.filter_jit
def _summary(solution: Any, state0: State, true: State):
    """Errors in R and in the body rates; at the end: drifts, relative change of the energy; error
    of the positions."""
    model = solution.model
    states = jax.vmap(model.decode)(solution.ts, solution.ys)
    rotation, rate = errors_against(states, true)
    t, y = solution.ts[-1], jax.tree.map(lambda leaf: leaf[-1], solution.ys)
    position, velocity = model.drift(t, y)
    # The energy is physical: any parametrization that has room for the state gives it.
    plain = NullSpace(model.system)
    start = plain.energy(jnp.zeros_like(t), plain.encode(state0))
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    return (
        rotation,
        rate,
        position,
        velocity,
        jnp.abs(model.energy(t, y) - start) / size,
        jnp.max(jnp.abs(states.position - true.position)),
    )


def errors_against(states: State, true: State) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Largest error of an entry of R, and of a component of the body rates (rad/s).

    **Arguments:** states with a leading axis of times.
    """
    matrices = jax.vmap(jax.vmap(euler_map))
    return (
        jnp.max(jnp.abs(matrices(states.orientation) - matrices(true.orientation))),
        jnp.max(jnp.abs(states.angular_velocity - true.angular_velocity)),
    )


def rank(rows: Sequence[Row]) -> list[Row]:
    """The rows, with the work of each relative to what the first needs for the same error.

    Evaluations against error are a straight line in logarithms for a method of fixed order. The
    line of the first row is fitted to its ladder of tolerances; every run of another row is
    compared with the line at its own error, and the ratios are averaged (geometric mean).
    """
    first = _meaningful(rows[0])
    if first.sum() < 2 or np.ptp(rows[0].errors[first]) == 0:
        return list(rows)
    logarithms = np.log(rows[0].errors[first]), np.log(rows[0].evaluations[first])
    slope, start = np.polyfit(*logarithms, 1)

    def work(row: Row) -> float:
        good = _meaningful(row)
        if not good.any():
            return float("nan")
        line = start + slope * np.log(row.errors[good])
        return float(np.exp(np.mean(np.log(row.evaluations[good]) - line)))

    return [row._replace(work=work(row)) for row in rows]


def _meaningful(row: Row) -> np.ndarray:
    """Where a run of the ladder came close enough to the reference to measure work, (K,)."""
    return np.isfinite(row.errors) & (row.errors > 0) & (row.errors < _LARGEST_ERROR)
