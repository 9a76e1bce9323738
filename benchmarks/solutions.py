"""Solutions of Examples A and B over time: Lang's Figures 11 and 12.

The paper states that nutation and precession are visible in A, and that the body of B, with a
disturbance of 1e-3 rad/s, flips at about 0.4 s, 1.2 s and so on, almost periodically, with d1
moving to its antipode. Example A is a run of `Dopri8` at 1e-12, B the closed form.
"""

import itertools
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems


def crossings(ts, values) -> np.ndarray:
    """Return the times at which a sampled function changes its sign, by linear interpolation."""
    i = np.flatnonzero(np.diff(np.sign(values)) != 0)
    return ts[i] - values[i] * (ts[i + 1] - ts[i]) / (values[i + 1] - values[i])


def minima(ts, values) -> np.ndarray:
    """Return the times of local minima."""
    return ts[1:-1][(values[1:-1] <= values[:-2]) & (values[1:-1] < values[2:])]


def history(problem: problems.Problem, ts) -> tuple[np.ndarray, np.ndarray]:
    """Return directors (T, 9), column by column, and body rates (T, 3)."""
    if problem.has_reference:
        states = problem.reference(ts)
    else:
        model, at = rj.NullSpace(problem.system), diffrax.SaveAt(ts=ts)
        states = rj.simulate(
            model, problem.state0, float(ts[-1]), saveat=at, rtol=1e-12, atol=1e-12
        ).states
    d = jax.vmap(rj.Directors().from_quaternion)(states.orientation[:, 0])
    return np.asarray(d), np.asarray(states.angular_velocity[:, 0])


def heavy_top(points: int) -> dict[str, Any]:
    """Return Figure 11, with the numbers of nutations and of revolutions of the precession."""
    problem = problems.heavy_top()
    ts = np.linspace(0.0, problem.t1, points)
    d, omega = history(problem, jnp.asarray(ts))
    inclination = np.arccos(np.clip(d[:, 8], -1.0, 1.0))
    azimuth = np.unwrap(np.arctan2(d[:, 7], d[:, 6]))
    return {
        "figure": "Lang 11",
        "case": "A",
        "counts": {
            "nutations": len(minima(ts, -inclination)),
            "turns of the precession": float((azimuth[-1] - azimuth[0]) / (2 * np.pi)),
        },
        "inclination": [float(inclination.min()), float(inclination.max())],
        **_samples(ts, d, omega),
    }


def racket(points: int) -> dict[str, Any]:
    """Return Figure 12, with the times at which the racket flips."""
    problem = problems.tennis_racket(1e-3)
    ts = np.linspace(0.0, problem.t1, points)
    d, omega = history(problem, jnp.asarray(ts))
    flips = crossings(ts, omega[:, 0])
    # Between the flips d1 is constant: take the mean over the middle half of each plateau.
    ends = np.concatenate([[0.0], flips])
    rests = []
    for start, end in itertools.pairwise(ends):
        inside = (ts > start + 0.25 * (end - start)) & (ts < end - 0.25 * (end - start))
        rests.append(d[inside, :3].mean(axis=0))
    return {
        "figure": "Lang 12",
        "case": "B, 1e-3",
        "counts": {"flips": len(flips)},
        "flips": [float(t) for t in flips],
        "cosines": [float(a @ b) for a, b in itertools.pairwise(rests)],
        **_samples(ts, d, omega),
    }


def _samples(ts, d, omega) -> dict[str, Any]:
    """Return times and histories, rounded for a figure."""

    def round_list(values):
        return [[round(float(x), 5) for x in column] for column in np.asarray(values).T]

    return {
        "dtype": str(d.dtype),
        "ts": [round(float(t), 5) for t in ts],
        "directors": round_list(d),
        "rates": round_list(omega),
    }


if __name__ == "__main__":
    options = common.arguments(__doc__ or "")
    common.double_precision()
    rows = [racket(201)] if options.smoke else [heavy_top(1001), racket(801)]
    for row in rows:
        print({k: v for k, v in row.items() if k not in ("ts", "directors", "rates")}, flush=True)
    common.write("solutions", rows, options.smoke)
