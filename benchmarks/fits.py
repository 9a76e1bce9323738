"""Accuracy and speed of fits: coverage of intervals over 1,000 fits, and time against SciPy.

Statistics: data are simulated with known noise, and each set is fitted from starts within 30 % of
the truth. 95 % intervals should cover the truth in 95 % of the fits, and errors should equal the
Cramer-Rao bound. Speed: six parameters from 60 s of 100 Hz gyroscope data, against SciPy's
`least_squares` over `solve_ivp` with finite differences, in the same run.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import _common as common
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.optimize

import rigidjax as rj
from rigidjax import problems
from rigidjax.identification import (
    Measurements,
    Parameter,
    Positive,
    PrincipalInertia,
    Simulation,
    excitation,
    identify,
    identify_batch,
)
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.evaluation import evaluate
from rigidjax.identification.search.least_squares import minimise
from rigidjax.identification.search.options import make_search, prepare_runs, trial_simulation
from rigidjax.identification.search.problem import make_problem
from rigidjax.identification.starts.first_samples import start_states

SPREAD = 0.3


class Study(NamedTuple):
    """A model with the true parameters, its sensors, and the fitted parameters."""

    model: Any
    state0: rj.State
    ts: np.ndarray
    noise: dict[Any, float]
    parameters: tuple[Parameter, ...]


# Named functions: fits share compiled code only if these are identical objects.


def _inertia(e: Any) -> Any:
    return e.model.system.inertia


def _rates(e: Any) -> Any:
    return e.state0.angular_velocity


def _mass_1(e: Any) -> Any:
    return e.model.system.bodies[1].mass


def _mass_2(e: Any) -> Any:
    return e.model.system.bodies[2].mass


def _inertia_0(e: Any) -> Any:
    return e.model.system.bodies[0].inertia


def _inertia_1(e: Any) -> Any:
    return e.model.system.bodies[1].inertia


def _damping(e: Any) -> Any:
    return e.model.system.forces[1].damping


def torque(t: Any, R: Any, omega: Any) -> Any:
    """Return a known moment about all axes, body components."""
    return jnp.stack([jnp.sin(t), 0.7 * jnp.cos(1.7 * t), 0.5 * jnp.sin(0.6 * t + 1.0)])


def free_body(duration: float = 4.0, rate: float = 25.0) -> Study:
    """Return a body under a known torque: three moments and three initial rates from a
    gyroscope.
    """
    model = rj.NullSpace(rj.FixedPointBody((0.9, 1.2, 1.6), moment=torque))
    return Study(
        model,
        rj.State(angular_velocity=(0.4, -0.6, 0.5)),
        np.arange(round(duration * rate) + 1) / rate,
        dict.fromkeys([rj.Gyroscope()], 0.01),
        (
            Parameter("I", _inertia, PrincipalInertia(), unit="kg m^2"),
            Parameter("omega", _rates, per_run=True, unit="rad/s"),
        ),
    )


def gentle_body(name: str, duration: float, rate: float) -> tuple[Study, float]:
    """Return the free body under a scaled torque, and this torque."""
    factor, start, noise = GENTLE[name]
    model = rj.NullSpace(
        rj.FixedPointBody((0.9, 1.2, 1.6), moment=lambda t, R, w: factor * torque(t, R, w))
    )
    fast = free_body(duration, rate)
    state0 = rj.State(angular_velocity=start)
    return fast._replace(
        model=model, state0=state0, noise=dict.fromkeys([rj.Gyroscope()], noise)
    ), factor


# Scale of the torque, initial rates (rad/s) and noise (rad/s) of the comparison with SciPy.
GENTLE = {
    "tumbling satellite": (0.3, (0.4, -0.6, 0.5), 0.01),
    "slow satellite": (0.05, (0.04, -0.06, 0.05), 0.001),
}


def double_pendulum() -> Study:
    """Return the fit of the mass of the second arm, both moments about the joint axis and a damper;
    one mass is known.
    """
    bodies = [
        rj.Body("upper", 1.0, (0.03, 0.03, 0.04), (0.3, 0.0, 0.0)),
        rj.Body("lower", 0.7, (0.02, 0.02, 0.03), (0.8, 0.0, 0.0)),
    ]
    axis = (0.0, 0.0, 1.0)
    joints = [
        rj.Revolute("ground", "upper", (0.0, 0.0, 0.0), axis, name="shoulder"),
        rj.Revolute("upper", "lower", (0.5, 0.0, 0.0), axis, name="elbow"),
    ]
    forces = [rj.Gravity((0.0, -9.81, 0.0)), rj.TorsionSpring("elbow", 0.0, 0.1)]
    system = rj.System(bodies, joints, forces)
    sensors = (rj.JointCoordinate("shoulder"), rj.JointCoordinate("elbow"))
    moment = PrincipalInertia(fixed=("I1", "I2"))
    return Study(
        rj.NullSpace(system),
        system.reference_state(),
        np.linspace(0.0, 1.5, 61),
        dict.fromkeys(sensors, 0.01),
        (
            Parameter("m2", _mass_1, Positive(), unit="kg"),
            Parameter("upper", _inertia_0, moment, unit="kg m^2"),
            Parameter("lower", _inertia_1, moment, unit="kg m^2"),
            Parameter("damping", _damping, Positive(), unit="N m s"),
        ),
    )


def four_bar() -> Study:
    """Return the fit of the masses of coupler and rocker from the crank angle; the mass of the
    crank is known.
    """
    problem = problems.four_bar(3.0)
    assert isinstance(problem.system, rj.System)
    crank = problem.system.joints[0].name
    return Study(
        rj.NullSpace(problem.system),
        problem.state0,
        np.linspace(0.0, 1.0, 41),
        dict.fromkeys([rj.JointCoordinate(crank)], 0.01),
        (
            Parameter("coupler", _mass_1, Positive(), unit="kg"),
            Parameter("rocker", _mass_2, Positive(), unit="kg"),
        ),
    )


def exact(study: Study) -> dict[Any, np.ndarray]:
    """Return readings without noise."""
    model = study.model
    runs = stack_runs(Measurements(study.ts, _zeros(study), study.noise))
    model, (runs,), _ = prepare_runs(model, [runs])
    solution = rj.simulate(
        model, study.state0, study.ts[-1], ts=study.ts, rtol=1e-11, atol=1e-11, max_steps=100_000
    )
    return {
        s: np.asarray(jax.vmap(lambda t, y, s=s: s.predict(model, t, y))(solution.ts, solution.ys))
        for s in study.noise
    }


def _zeros(study):
    return {s: np.zeros((len(study.ts), *s.value_shape)) for s in study.noise}


def noisy(study: Study, clean: dict[Any, np.ndarray], rng: np.random.Generator) -> Measurements:
    """Return one data set."""
    values = {s: v + study.noise[s] * rng.standard_normal(v.shape) for s, v in clean.items()}
    return Measurements(study.ts, values, study.noise)


def make_sets(study: Study, count: int) -> tuple[list[Measurements], dict[str, np.ndarray]]:
    """Return data sets with different noise, and start values within `SPREAD` of the truth."""
    rng = np.random.default_rng(0)
    clean = exact(study)
    data = [noisy(study, clean, rng) for _ in range(count)]
    experiment = eqx.tree_at(lambda e: e.model, _experiment(study), study.model)
    starts = {}
    for p in study.parameters:
        leaf = np.asarray(p.where(experiment))
        shape = (count, 1, *leaf.shape) if p.per_run else (count, *leaf.shape)
        factors = rng.uniform(1 - SPREAD, 1 + SPREAD, size=shape)
        start = factors * leaf
        if isinstance(p.transform, PrincipalInertia):
            start = _physical(start, leaf, p.transform.fixed)
        starts[p.name] = start
    return data, starts


def statistics_row(name: str, study: Study, count: int, batch: int) -> dict[str, Any]:
    """Return coverage, errors against the Cramer-Rao bound, and failures of many fits."""
    data, starts = make_sets(study, count)
    begin = time.perf_counter()
    fit = identify_batch(
        study.model, data, study.parameters, state0=study.state0, starts=starts, batch_size=batch
    )
    seconds = time.perf_counter() - begin
    plan = excitation(study.model, study.state0, study.ts, study.noise, study.parameters)
    bound, true = np.array(list(plan.std.values())), plan.values
    error = fit.values - true
    low, high = fit.values - 1.959964 * fit.std, fit.values + 1.959964 * fit.std
    covered = np.mean((low < true) & (true < high), axis=0)
    ratio = np.sqrt(np.mean(error**2, axis=0)) / bound
    return {
        "case": f"statistics, {name}", "fits": count,
        "parameters": list(fit.labels), "converged": int(fit.converged.sum()),
        "coverage": [round(float(c), 4) for c in covered],
        "error_over_bound": [round(float(r), 4) for r in ratio],
        "bias_over_bound": [round(float(b), 4) for b in error.mean(axis=0) / bound],
        "chi_square": float(fit.chi_square.mean()),
        "iterations_max": int(fit.iterations.max()), "seconds_with_compilation": seconds,
    }  # fmt: skip


def _experiment(study):
    from rigidjax.identification import Experiment

    return Experiment(study.model, study.state0, tuple(study.noise))


def _physical(start, leaf, fixed):
    """Return starts of the moments that are physical; fixed moments keep their value."""
    start = np.array(start)
    for k in range(3):
        if f"I{k + 1}" in fixed:
            start[:, k] = leaf[k]
    euler = 0.5 * start.sum(axis=1, keepdims=True) - start
    euler = np.maximum(euler, 0.02 * start.sum(axis=1, keepdims=True))
    return np.where(np.isin(["I1", "I2", "I3"], fixed), leaf, euler.sum(1, keepdims=True) - euler)


def speed_row(name: str, duration: float, repeats: int) -> dict[str, Any]:
    """Return the times for six parameters of a satellite from a long run, against SciPy.

    Both start from moments up to 3 % off and the first measured rates, and minimise over the whole
    run at once.
    """
    study, factor = gentle_body(name, duration, 100.0)
    data = noisy(study, exact(study), np.random.default_rng(1))
    off = _scale_moments(study.model, jnp.array([1.03, 0.97, 1.015]))
    rates = jnp.reshape(jnp.asarray(data.values[0][0]), study.state0.angular_velocity.shape)
    state0 = eqx.tree_at(lambda s: s.angular_velocity, study.state0, rates)

    def fit_once():
        return identify(off, data, study.parameters, state0=state0, horizons=(1.0,))

    first = common.seconds(lambda: fit_once().values)
    times = [common.seconds(lambda: fit_once().values) for _ in range(repeats)]
    fit = fit_once()
    start = np.concatenate([np.ravel(off.system.inertia), np.ravel(rates)])
    theirs, other = _scipy_fit(data, start, factor, GENTLE[name][2])
    runs = stack_runs(data)
    model, (runs,), _ = prepare_runs(off, [runs])
    states = start_states(model, runs, state0)
    simulation = trial_simulation(Simulation(), runs.ts.dtype)
    problem, *_ = make_problem(model, runs, states, study.parameters, simulation)
    search = make_search(runs.ts.dtype, (1.0,))
    forward = eqx.filter_jit(lambda p: p.residuals(p.run_leaves(*_shared_and_per_run(p)), _run(p)))
    linearise = eqx.filter_jit(lambda p: evaluate(p, *p.start_coordinates()))
    taken = common.time_in_turn(
        {
            "forward": lambda: forward(problem),
            "evaluation": lambda: linearise(problem),
            "fit": lambda: minimise(problem, search).shared,
        },
        repeats,
    )
    median = {name: float(np.median([wall for wall, _ in t])) for name, t in taken.items()}
    iterations = sum(fit.iterations)
    return {
        "case": f"{name}, {duration:g} s at 100 Hz", "parameters": len(fit.labels),
        "samples": fit.num_residuals, "first_seconds": first,
        "run_seconds": float(np.median(times)), "iterations": iterations,
        "scipy_seconds": theirs, "scipy_evaluations": int(other.nfev + 6 * other.njev),
        "scipy_over_run": theirs / float(np.median(times)),
        "largest_difference_in_std": float(
            np.max(np.abs(other.x - fit.values) / np.array(list(fit.std.values())))
        ),
        "forward_seconds": median["forward"],
        "iteration_over_forward": median["fit"] / (iterations + 1) / median["forward"],
        "evaluation_over_forward": median["evaluation"] / median["forward"],
    }  # fmt: skip


def hard_row(duration: float, repeats: int) -> dict[str, Any]:
    """Return the times for six parameters of a fast body, whose initial errors grow by 1e5.

    Horizons grow, from moments 10 % off; over the whole run at once every method ends in a local
    minimum.
    """
    study = free_body(duration, 100.0)
    data = noisy(study, exact(study), np.random.default_rng(1))
    off = _scale_moments(study.model, jnp.array([1.1, 0.95, 1.05]))
    first = common.seconds(lambda: identify(off, data, study.parameters).values)
    times = [
        common.seconds(lambda: identify(off, data, study.parameters).values) for _ in range(repeats)
    ]
    fit = identify(off, data, study.parameters)
    true = np.concatenate(
        [np.ravel(study.model.system.inertia), np.ravel(study.state0.angular_velocity)]
    )
    return {
        "case": f"fast body, {duration:g} s at 100 Hz", "parameters": len(fit.labels),
        "samples": fit.num_residuals, "first_seconds": first,
        "run_seconds": float(np.median(times)), "iterations": sum(fit.iterations),
        "chi_square": float(fit.chi_square),
        "largest_error_in_std": float(
            np.max(np.abs(true - fit.values) / np.array(list(fit.std.values())))
        ),
    }  # fmt: skip


def _scale_moments(model, factors):
    return eqx.tree_at(lambda m: m.system.inertia, model, model.system.inertia * factors)


def _shared_and_per_run(problem):
    shared, own = problem.start_coordinates()
    return shared, own[0], _run(problem)


def _run(problem):
    return jax.tree.map(lambda leaf: leaf[0], problem.runs)


def _scipy_fit(data: Measurements, start: np.ndarray, factor: float, noise: float):
    """Fit by `least_squares` over `solve_ivp` with finite differences; return seconds and
    values.
    """
    ts, values = np.asarray(data.ts), np.asarray(data.values[0])

    def slope(t, w, I):
        M = factor * np.array([np.sin(t), 0.7 * np.cos(1.7 * t), 0.5 * np.sin(0.6 * t + 1.0)])
        L = I * w
        return (M - np.array(
            [w[1] * L[2] - w[2] * L[1], w[2] * L[0] - w[0] * L[2], w[0] * L[1] - w[1] * L[0]]
        )) / I  # fmt: skip

    def residual(x):
        run = scipy.integrate.solve_ivp(
            slope, (ts[0], ts[-1]), x[3:], "RK45", ts, args=(x[:3],),
            rtol=1e-8, atol=1e-8,
        )  # fmt: skip
        return ((run.y.T - values) / noise).ravel()

    begin = time.perf_counter()
    found = scipy.optimize.least_squares(residual, start, x_scale="jac", max_nfev=30)
    return time.perf_counter() - begin, found


# System, number of fits, and batch size.
STUDIES: dict[str, tuple[Callable[[], Study], int, int]] = {
    "free body with torque": (free_body, 1000, 125),
    "double pendulum": (double_pendulum, 1000, 125),
    "four-bar": (four_bar, 1000, 125),
}


def speed_rows(duration: float, repeats: int) -> list[dict[str, Any]]:
    """Return rows of single fits."""
    rows = [speed_row(name, duration, repeats) for name in GENTLE]
    rows.append(hard_row(duration, repeats))
    return rows


def main() -> None:
    """Measure and write `results/fits.json`."""
    smoke = common.arguments(__doc__).smoke
    common.double_precision()
    if smoke:
        rows = [statistics_row("free body with torque", free_body(2.0), 4, 4)]
    else:
        rows = speed_rows(60.0, 9)
        for name, (study, count, batch) in STUDIES.items():
            rows.append(statistics_row(name, study(), count, batch))
            print(rows[-1], flush=True)
    common.write("fits", rows, smoke)


if __name__ == "__main__":
    main()
