"""Comparison of formulations: work, errors and drifts of one motion."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from ..annotations import Scalar
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

# Tolerances of the fit of work against error, relative to the requested tolerance.
_TOLERANCE_FACTORS = (1.0, 10.0, 100.0, 1000.0)

# Runs with a larger relative error are not used to measure work.
_LARGEST_ERROR = 0.1


class Row(NamedTuple):
    """Results of one formulation in a comparison.

    - `label`, `num_unknowns`, `num_steps` (accepted and rejected), `num_rhs` (evaluations of the
      right-hand side, without Jacobian columns).
    - `error_rotation`: largest error of an entry of $R$; `error_rate`: largest error of a component
      of the angular velocity in body components, rad/s; both at the end.
    - `position_drift`, `velocity_drift` (1/s): violations of the internal constraints at the end.
    - `energy_drift`: relative change of the energy at the end.
    - `work`: evaluations, relative to those of the first row at the same error; NaN if unknown.
    - `failure`: why the run ended early, or an empty string. A failed run has NaN errors.
    - `evaluations`, `errors`: evaluations and errors at increasing tolerances, the requested one
      first, shape (K,). An error is the maximum of `error_rotation`, of `error_rate` divided by the
      largest rate, and of `error_position` divided by the largest coordinate.
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
    """Rows of a comparison and its reference.

    `reference`: description of the reference solution; `t1`: time of the comparison, s;
    `left_out`: reasons why formulations cannot be used for this system, by their labels.
    """

    rows: list[Row]
    reference: str
    t1: float
    left_out: Mapping[str, str] = MappingProxyType({})


def formulations(system: System | FixedPointBody) -> dict[str, AbstractFormulation]:
    """Return every formulation of a system by a readable label, null space first.

    Formulations for single bodies are omitted if there are joints.
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


def select_usable(
    problem: Problem, models: Mapping[str, AbstractFormulation]
) -> tuple[dict[str, AbstractFormulation], dict[str, str]]:
    """Return the `models` that can represent the problem, and the reasons against the others.

    Absolute coordinates, for example, need a regular inertia, which point masses and thin rods do
    not have.
    """
    usable, left_out = {}, {}
    for label, model in models.items():
        try:
            model.check_state(problem.state0)
        except ValueError as error:
            left_out[label] = str(error)
        else:
            usable[label] = model
    return usable, left_out


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

    **Arguments:** `problem`, to solve; `models`, by their labels, `None` for
    `formulations(problem.system)`; `t1`, end time, s, by default that of the problem; `solver`, by
    default `diffrax.Dopri5()`; `rtol`, also used as the absolute tolerance (as in Lang, section 7);
    `projection`, after every step; `report`, called with the label of each formulation before its
    run.
    **Returns:** a `Comparison`.
    **Raises:** `ValueError` if no formulation can be used, or for a tolerance below the precision.
    """
    reference = find_reference(problem, problem.t1 if t1 is None else t1)
    models = formulations(problem.system) if models is None else models
    models, left_out = select_usable(problem, models)
    if not models:
        raise ValueError(f"No formulation can be used. {'; '.join(left_out.values())}")
    rows = []
    for label, model in models.items():
        if report is not None:
            report(label)
        rows.append(measure(problem, label, model, reference, solver, rtol, projection))
    return Comparison(compare_work(rows), reference.text, reference.t1, left_out)


class Reference(NamedTuple):
    """Reference solution: its description, the end time, s, and the states at this time."""

    text: str
    t1: float
    states: State


def find_reference(problem: Problem, t1: float) -> Reference:
    """Return the solution at `t1`: a closed form, a stored end state, or a more accurate run."""
    if problem.has_reference:
        return Reference("the closed form", t1, problem.reference([t1]))
    if t1 == problem.t1 and problem.end_state is not None:
        return Reference("an integration with 40 digits", t1, problem.reference([t1]))
    dtype = problem.state0.orientation.dtype
    tolerance = max(1e-13, 10 * float(jnp.finfo(dtype).eps))
    model = NullSpace(problem.system)
    solution = simulate(model, problem.state0, t1, rtol=tolerance, atol=tolerance)
    text = f"a run in null-space coordinates with Dopri8 at a tolerance of {tolerance:.0e}"
    return Reference(text, t1, solution.states)


def measure(
    problem: Problem,
    label: str,
    model: AbstractFormulation,
    reference: Reference,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-9,
    projection: bool = True,
) -> Row:
    """Run one formulation at `rtol` and at larger tolerances; return the row for `rtol`.

    **Raises:** `ValueError` for a tolerance that the precision cannot reach.
    """
    solver = diffrax.Dopri5() if solver is None else solver
    smallest = 10 * float(jnp.finfo(reference.states.orientation.dtype).eps)
    if not rtol >= smallest:
        raise ValueError(
            f"`compare(rtol=...)` must be at least {smallest:.1e}, which is what the precision in "
            f"use reaches; got {rtol!r}."
        )
    # Errors are absolute, in rad/s and m, if nothing rotates or moves.
    largest_rate = float(jnp.max(jnp.abs(reference.states.angular_velocity))) or 1.0
    largest_coordinate = float(jnp.max(jnp.abs(reference.states.position))) or 1.0
    evaluations, errors, first = [], [], None
    for factor in _TOLERANCE_FACTORS:
        # An array, so that the run is compiled once for all tolerances.
        tolerance = jnp.asarray(factor * rtol)
        solution = simulate(
            model,
            problem.state0,
            reference.t1,
            solver=solver,
            stepsize_controller=diffrax.PIDController(
                rtol=tolerance, atol=tolerance, norm=_unknowns_norm
            ),
            projection=projection,
            throw=False,
        )
        failure = RESULTS[solution.result]
        values = [float(x) for x in _errors_and_drifts(solution, problem.state0, reference.states)]
        if failure:
            values = [float("nan")] * len(values)
        evaluations.append(int(solution.stats["num_rhs"]))
        errors.append(max(values[0], values[1] / largest_rate, values[-1] / largest_coordinate))
        if first is None:
            first = int(solution.stats["num_steps"]), values, failure
    assert first is not None
    num_steps, values, failure = first
    return Row(
        label,
        model.num_unknowns,
        num_steps,
        evaluations[0],
        *values[:-1],
        work=float("nan"),
        failure=failure,
        evaluations=np.array(evaluations),
        errors=np.array(errors),
        error_position=values[-1],
    )


def _unknowns_norm(y: Any) -> Scalar:
    """Return the root mean square of the unknowns; the references of charts have no error."""
    return optx.rms_norm(split_chart(y)[0])


@eqx.filter_jit
def _errors_and_drifts(solution: Any, state0: State, expected: State) -> tuple[Scalar, ...]:
    """Return six quantities at the end of a run.

    They are the errors of R and of body rates, the drifts of position and velocity, the relative
    change of the energy, and the error of positions.
    """
    model = solution.model
    states = jax.vmap(model.decode)(solution.ts, solution.ys)
    rotation, rate = errors_against(states, expected)
    t, y = solution.ts[-1], jax.tree.map(lambda leaf: leaf[-1], solution.ys)
    position, velocity = model.drift(t, y)
    # The energy does not depend on the parametrization.
    plain = NullSpace(model.system)
    start = plain.energy(jnp.zeros_like(t), plain.encode(state0))
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    return (
        rotation,
        rate,
        position,
        velocity,
        jnp.abs(model.energy(t, y) - start) / size,
        jnp.max(jnp.abs(states.position - expected.position)),
    )


def errors_against(states: State, expected: State) -> tuple[Scalar, Scalar]:
    """Return the largest error of an entry of R, and of a component of the body rates (rad/s).

    **Arguments:** `states` and `expected`, with a leading axis of times.
    """
    matrices = jax.vmap(jax.vmap(euler_map))
    return (
        jnp.max(jnp.abs(matrices(states.orientation) - matrices(expected.orientation))),
        jnp.max(jnp.abs(states.angular_velocity - expected.angular_velocity)),
    )


def compare_work(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their work relative to that of the first row at the same error.

    For a method of fixed order, the logarithm of the evaluations is a linear function of the
    logarithm of the error. This line is fitted to the runs of the first row. The evaluations of
    every run of another row are divided by the value of the line at the error of this run; `work`
    is the geometric mean of these ratios.
    """
    first = _is_accurate(rows[0])
    if first.sum() < 2 or np.ptp(rows[0].errors[first]) == 0:
        return list(rows)
    logarithms = np.log(rows[0].errors[first]), np.log(rows[0].evaluations[first])
    slope, start = np.polyfit(*logarithms, 1)

    def work(row: Row) -> float:
        accurate = _is_accurate(row)
        if not accurate.any():
            return float("nan")
        line = start + slope * np.log(row.errors[accurate])
        return float(np.exp(np.mean(np.log(row.evaluations[accurate]) - line)))

    return [row._replace(work=work(row)) for row in rows]


def _is_accurate(row: Row) -> np.ndarray:
    """Return a mask of the runs that are accurate enough to measure work, (K,)."""
    return np.isfinite(row.errors) & (row.errors > 0) & (row.errors < _LARGEST_ERROR)
