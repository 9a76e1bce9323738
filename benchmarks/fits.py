"""Speed of fits: six parameters from 60 s of a gyroscope at 100 Hz.

Against SciPy's `least_squares` over `solve_ivp` with finite differences, in the same run.
"""

import time
from typing import Any

import _common as common
import _studies as studies
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.optimize
from _studies import Study

import rigidjax as rj
from rigidjax.identification import Measurements, Parameter, Simulation, identify
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.evaluation import evaluate
from rigidjax.identification.search.least_squares import minimise
from rigidjax.identification.search.options import make_search, prepare_runs, trial_simulation
from rigidjax.identification.search.problem import make_problem
from rigidjax.identification.starts.first_samples import start_states


def _rates(e: Any) -> Any:
    return e.state0.angular_velocity


def free_body(duration: float) -> Study:
    """Return the free body with a gyroscope at 100 Hz: three moments and three initial rates."""
    study = studies.free_body()
    rates = Parameter("omega", _rates, per_run=True, unit="rad/s")
    ts = np.arange(round(100 * duration) + 1) / 100
    return study._replace(ts=ts, parameters=(*study.parameters, rates))


def gentle_body(name: str, duration: float) -> tuple[Study, float]:
    """Return the free body under a scaled torque, and the factor of the torque."""
    factor, start, noise = GENTLE[name]
    fast = free_body(duration)
    body = rj.FixedPointBody(fast.true, moment=lambda t, R, w: factor * studies.torque(t, R, w))
    state0, noise = rj.State(angular_velocity=start), dict.fromkeys(fast.noise, noise)
    return fast._replace(model=rj.NullSpace(body), state0=state0, noise=noise), factor


# Scale of the torque, initial rates (rad/s) and noise (rad/s) of the comparison with SciPy.
GENTLE = {
    "tumbling satellite": (0.3, (0.4, -0.6, 0.5), 0.01),
    "slow satellite": (0.05, (0.04, -0.06, 0.05), 0.001),
}


def noisy(study: Study) -> Measurements:
    """Return a data set of the study."""
    rng = np.random.default_rng(1)
    return study.measure(study.readings(), lambda sensor, shape: rng.normal(size=shape))


def speed_row(name: str, duration: float, repeats: int) -> dict[str, Any]:
    """Return the times for six parameters of a satellite from a long run, against SciPy.

    Both start from moments up to 3 % off and the first measured rates, and minimise over the whole
    run at once.
    """
    study, factor = gentle_body(name, duration)
    data = noisy(study)
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
    study = free_body(duration)
    data = noisy(study)
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


def speed_rows(duration: float, repeats: int) -> list[dict[str, Any]]:
    """Return rows of single fits."""
    rows = [speed_row(name, duration, repeats) for name in GENTLE]
    rows.append(hard_row(duration, repeats))
    return rows


def main() -> None:
    """Measure and write `results/fits.json`."""
    smoke = common.arguments(__doc__).smoke
    common.double_precision()
    rows = [hard_row(2.0, 1)] if smoke else speed_rows(60.0, 9)
    common.write("fits", rows, smoke)


if __name__ == "__main__":
    main()
