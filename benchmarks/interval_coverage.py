"""Coverage of 95 % intervals by kind of noise: a free body, a double pendulum, a four-bar linkage.

Data with known errors are fitted from the truth on, with the matching option of the fit. Intervals
should cover the truth in 92 to 98 % of the fits, for every parameter.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import _common as common
import _studies as studies
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.signal
from _studies import STUDIES, Study

import rigidjax as rj
from rigidjax.identification import Bounded, Huber, identify_batch

# Moments or torques of the noise of a process, N m, constant between two samples.
TORQUES = {"free body": 0.05, "double pendulum": 0.02, "four-bar": 0.2}
# Step of an encoder in units of its noise, and part of the samples that are outliers.
STEP, OUTLIERS = 3.0, 0.01


def autoregressive_noise(coefficients: Any, shape: tuple[int, ...], rng: Any) -> np.ndarray:
    """Return stationary noise (T, ...) of unit variance with these coefficients."""
    white = rng.normal(size=(shape[0] + 500, *shape[1:]))
    filtered = scipy.signal.lfilter([1.0], [1.0, *(-np.asarray(coefficients))], white, axis=0)
    return filtered[500:] / np.std(filtered)


def walk(shape: tuple[int, ...], rng: Any, step: float = 0.1) -> np.ndarray:
    """Return white noise of unit variance on a random walk whose steps are a tenth as large."""
    return rng.normal(size=shape) + np.cumsum(step * rng.normal(size=shape), axis=0)


def outliers(shape: tuple[int, ...], rng: Any) -> np.ndarray:
    """Return white noise of which some samples are twenty times as large."""
    wild = rng.random(shape) < OUTLIERS
    return rng.normal(size=shape) + np.where(wild, rng.normal(0.0, 20.0, shape), 0.0)


# Errors in units of the noise of the sensor, and options of the fit.
ERRORS: dict[str, tuple[Callable[..., np.ndarray], dict[str, Any]]] = {
    "white": (lambda shape, rng: rng.normal(size=shape), {}),
    "AR(1)": (functools.partial(autoregressive_noise, [0.9]), {"noise": "ar1"}),
    "AR(2)": (functools.partial(autoregressive_noise, [1.6, -0.9]), {"noise": "ar2"}),
    "random walk": (walk, {"noise": "random-walk"}),
    "outliers, Huber": (outliers, {"loss": Huber()}),
}
KINDS = (*ERRORS, "quantised", "active bound", "process")
PATH = common.RESULTS / "interval_coverage.json"


def _quantise(study: Study, exact: Any, rng: Any) -> rj.Measurements:
    """Return readings in steps, whose places are random; an error of its own moves them."""
    values = {}
    for sensor, x in exact.items():
        step, zero = STEP * study.noise[sensor], rng.uniform(size=x.shape[1:])
        fine = x / step + zero + 0.3 * rng.normal(size=x.shape)
        values[sensor] = step * (np.round(fine) - zero)
    noise = {s: STEP * std * np.hypot(0.3, 12**-0.5) for s, std in study.noise.items()}
    return rj.Measurements(study.ts, values, noise)


def _with_bias(study: Study) -> Study:
    """Return the study with a bias of its first sensor that cannot be negative, and is zero."""
    sensor = next(iter(study.noise))
    which = (0,) if sensor.value_shape else None
    bias = rj.Parameter("bias", _bias_of, Bounded(0.0, np.inf, which=which))
    return study._replace(parameters=(*study.parameters, bias), true=np.append(study.true, 0.0))


def _bias_of(experiment: Any) -> Any:
    return experiment.sensors[0].bias


class _Noisy(eqx.Module):
    """The known moment of the free body and an error that is held between samples."""

    error: rj.Signal

    def __call__(self, t, R, omega):
        return studies.torque(t, R, omega) + self.error(t)


def _disturbed_readings(name: str, study: Study, count: int) -> tuple[np.ndarray, ...]:
    """Return readings (N, T, ...) of all sensors, with errors of torques and of the sensors."""
    ts, size = jnp.asarray(study.ts), TORQUES[name]
    joints = [] if name == "free body" else [s.joint for s in study.noise]

    def readings(key):
        torques, *own = jax.random.split(key, 1 + len(study.noise))
        errors = size * jax.random.normal(torques, (len(ts), len(joints) or 3))

        def hold(values):
            return rj.Signal(ts, values, "hold", extrapolation="constant")

        system = study.model.system
        if joints:
            motors = [rj.Motor(j, hold(errors[:, k])) for k, j in enumerate(joints)]
            model = rj.NullSpace(rj.System(system, motors))
        else:
            model = rj.NullSpace(rj.FixedPointBody(system.inertia, moment=_Noisy(hold(errors))))
        step = {"solver": diffrax.Dopri5(), "dt": study.ts[1]}
        run = rj.simulate(model, study.state0, ts[-1], ts=ts, **step)
        found = []
        for (sensor, noise), own_key in zip(study.noise.items(), own, strict=True):
            x = jax.vmap(functools.partial(sensor.predict, model))(run.ts, run.ys)
            found.append(x + noise * jax.random.normal(own_key, x.shape))
        return tuple(found)

    keys = jax.random.split(jax.random.key(7), count)
    return jax.tree.map(np.asarray, eqx.filter_jit(jax.vmap(readings))(keys))


def _fit_process(name: str, study: Study, count: int) -> Any:
    """Fit prediction errors under noise of the torques, whose intensity is given."""
    runs = _disturbed_readings(name, study, count)
    data = [
        rj.Measurements(
            study.ts, {s: x[n] for s, x in zip(study.noise, runs, strict=True)}, study.noise
        )
        for n in range(count)
    ]
    # White noise has this intensity at the period of the samples.
    intensity = TORQUES[name] * np.sqrt(study.ts[1])
    names = ["moment"] if name == "free body" else [s.joint for s in study.noise]
    return identify_batch(
        study.model, data, study.parameters, state0=study.state0, method="prediction-error",
        process_noise=dict.fromkeys(names, intensity), dt=study.ts[1],
    )  # fmt: skip


def find_covered(kind: str, name: str, count: int) -> tuple[np.ndarray, Any]:
    """Return which intervals cover the truth, (count, k), and the fits."""
    study, rng, options = STUDIES[name](), np.random.default_rng(11), {}
    if kind == "process":
        fits = _fit_process(name, study, count)
    else:
        study = _with_bias(study) if kind == "active bound" else study
        exact = study.readings()
        errors, options = ERRORS.get(kind, ERRORS["white"])

        def measure():
            if kind == "quantised":
                return _quantise(study, exact, rng)
            return study.measure(exact, lambda sensor, shape: errors(shape, rng))

        data = [measure() for _ in range(count)]
        fits = identify_batch(
            study.model, data, study.parameters, state0=study.state0, horizons=(1.0,), **options
        )
    width = np.where(fits.at_bound, 1.645, 1.96) * fits.std
    return np.abs(fits.values - study.true) < width, fits


def measure(kind: str, name: str, count: int) -> dict[str, Any]:
    """Return the row of a kind of noise and a system."""
    begin = time.perf_counter()
    covered, fits = find_covered(kind, name, count)
    return {
        "noise": kind, "case": name, "fits": count, "converged": int(fits.converged.sum()),
        "coverage": [round(float(c), 4) for c in covered.mean(axis=0)],
        "parameters": list(fits.labels), "seconds_with_compilation": time.perf_counter() - begin,
    }  # fmt: skip


def main() -> None:
    """Measure and write `results/interval_coverage.json`; rows of other kinds are kept."""
    args = common.arguments(__doc__, _arguments)
    common.double_precision()
    if args.smoke:
        common.write("interval_coverage", [measure("white", "free body", 4)], smoke=True)
        return
    for kind in args.kinds:
        kept = common.read("interval_coverage") if PATH.exists() else []
        rows = [row for row in kept if row["noise"] != kind]
        for name in STUDIES:
            row = {"benchmark": "interval_coverage", **measure(kind, name, 1000)}
            rows.append(row | common.environment())
            print(rows[-1], flush=True)
        rows.sort(key=lambda row: KINDS.index(row["noise"]))
        common.write_rows("interval_coverage", rows)


def _arguments(parser: Any) -> None:
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)


if __name__ == "__main__":
    main()
