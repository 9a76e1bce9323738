"""Drift off the constraints: Lang's Figure 6, and a comparison of index reductions.

Example A with Radau5 at 1e-9 (Lang's setting) without projection, in quaternions unless stated
otherwise: the largest violation of the constraint and of its derivative so far, at the steps.
"""

from typing import Any

import _common as common
import diffrax
import jax
import numpy as np

import rigidjax as rj
from rigidjax import problems

TOLERANCE = 1e-9
MAX_STEPS = 30_000
FORMS = {
    "null space": lambda body: rj.NullSpace(body),
    "null space, directors": lambda body: rj.NullSpace(body, rj.Directors()),
    "index 0, directors": lambda body: rj.Absolute(body, rj.Directors()),
    "index 0": lambda body: rj.Absolute(body),
    "index 1": lambda body: rj.Absolute(body, index=1),
    "index 1, Baumgarte": lambda body: rj.Absolute(body, index=1, baumgarte=(10.0, 10.0)),
    "index 2": lambda body: rj.Absolute(body, index=2),
    "index 2, stabilised (GGL)": lambda body: rj.Absolute(body, index=2, stabilized=True),
    "index 3": lambda body: rj.Absolute(body, index=3),
}


def growth(ts, values) -> float:
    """Return the exponent of the growth of a drift in time, over the last nine tenths of a run."""
    late = ts >= 0.1 * ts[-1]
    floor = np.maximum(values[late], np.finfo(float).tiny)
    return float(np.polyfit(np.log(ts[late]), np.log(floor), 1)[0])


def parabola_rest(ts, signed) -> float:
    """Return the largest distance of a signed drift from the best parabola, relative to the
    drift.
    """
    fit = np.polynomial.Polynomial.fit(ts, signed, 2)
    return float(np.max(np.abs(signed - fit(ts))) / np.max(np.abs(signed)))


def measure(name: str, t1: float, points: int) -> dict[str, Any]:
    """Return one row: drifts over time."""
    problem = problems.heavy_top()
    model = FORMS[name](problem.system)
    run = jax.jit(
        lambda state0: rj.simulate(
            model, state0, t1, saveat=diffrax.SaveAt(steps=True), solver=rj.solvers.Radau5(),
            rtol=TOLERANCE, atol=TOLERANCE, projection=False, max_steps=MAX_STEPS,
        )
    )  # fmt: skip
    solution = run(problem.state0)
    taken = np.isfinite(solution.ts)
    every = max(1, np.count_nonzero(taken) // points)
    ts, position, velocity = (
        np.asarray(values)[taken]
        for values in (solution.ts, solution.position_drift, solution.velocity_drift)
    )
    # Signed value of the constraint that is violated most at the end.
    unknowns = np.asarray(solution.ys)[taken][:, : model.rotation.num_coordinates]
    constraints = np.asarray(jax.vmap(model.rotation.constraint)(unknowns))
    signed = constraints[:, np.argmax(np.abs(constraints[-1]))]
    position, velocity = (np.maximum.accumulate(drift) for drift in (position, velocity))
    return {
        "case": "A",
        "formulation": name,
        "solver": "Radau5",
        "tolerance": TOLERANCE,
        "dtype": str(position.dtype),
        "num_steps": int(solution.stats["num_steps"]),
        "num_rhs": int(solution.stats["num_rhs"]),
        "position_drift_end": float(position[-1]),
        "velocity_drift_end": float(velocity[-1]),
        "position_growth": growth(ts, position),
        "parabola_rest": parabola_rest(ts, signed),
        "velocity_growth": growth(ts, velocity),
        "ts": [round(float(t), 5) for t in ts[::every]],
        "position_drift": [float(f"{x:.4g}") for x in position[::every]],
        "velocity_drift": [float(f"{x:.4g}") for x in velocity[::every]],
    }


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    t1, points = (0.2, 5) if options.smoke else (10.0, 200)
    rows = []
    for name in ("null space", "index 0") if options.smoke else FORMS:
        rows.append(measure(name, t1, points))
        short = {k: v for k, v in rows[-1].items() if not isinstance(v, list)}
        print(short, flush=True)
    common.write("drift", rows, options.smoke)
