"""Work against error for two bodies on a ball joint: Lang's Figure 16.

The printed data are chaotic: an error grows by 1e4 in 0.5 s, by 1e9 in 1 s and by 1e23 until the
end at 4 s, where double precision is meaningless. The figure is redone at 1 s, and at 4 s with a
tenth of the rates (growth 1e4). References have 45 digits.
"""

from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import numpy as np
from work_precision import PAIRS, TOLERANCES, compiled_run, print_claims

from rigidjax import problems
from rigidjax.rotations import euler_map
from tools.exact.references import ENDS
from tools.exact.two_bodies import integrate

CASES = {
    "C, 1 s": (problems.two_bodies, 1.0, (1, "1")),
    "C slow, 4 s": (problems.two_bodies_slow, 4.0, (10, "4")),
}
SMOKE = {"C, 0.5 s": (problems.two_bodies, 0.5, (1, "0.5"))}
NAMES = tuple(name for pair in PAIRS.values() for name in pair)
SOLVERS = ("Dopri5", "Dopri8")


def end(label: str, case):
    """Return the state at the end: stored digits, or integrated now."""
    stored = {"C, 0.5 s": "two_bodies", "C slow, 4 s": "two_bodies_slow"}.get(label)
    return ENDS[stored] if stored else integrate(*case[2])


def measure(label, case, reference, name, solver, projection, tolerance) -> dict[str, Any]:
    """Return one row."""
    problem, t1 = case[0](), case[1]
    model = common.FORMULATIONS[name](problem.system)
    states, stats, ok, energy, drift = compiled_run(
        model, problem.state0, jnp.asarray(tolerance), t1=t1, solver=solver, projection=projection
    )
    x, p, _, omega = reference.to_arrays()
    R, R_end = (jax.vmap(euler_map)(jnp.asarray(q)) for q in (states.orientation[-1], p))
    position = float(np.max(np.abs(np.asarray(states.position[-1]) - x)))
    matrix = float(np.max(np.abs(np.asarray(R - R_end))))
    return {
        "case": label,
        "formulation": name,
        "solver": solver,
        "projection": projection,
        "tolerance": tolerance,
        "dtype": str(states.orientation.dtype),
        **{key: int(value) for key, value in stats.items() if key.startswith("num_")},
        "unknowns": model.num_unknowns,
        "successful": bool(ok),
        "error": max(position, matrix),
        "error_position": position,
        "error_matrix": matrix,
        "error_omega": float(np.max(np.abs(np.asarray(states.angular_velocity[-1]) - omega))),
        "energy_error": float(energy),
        "position_drift": float(drift[0]),
        "velocity_drift": float(drift[1]),
    }


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    rows = []
    for label, case in (SMOKE if options.smoke else CASES).items():
        reference = end(label, case)
        for solver in SOLVERS[:1] if options.smoke else SOLVERS:
            for name in NAMES[:1] if options.smoke else NAMES:
                for projection in (True, False):
                    for tolerance in TOLERANCES[:1] if options.smoke else TOLERANCES:
                        row = measure(label, case, reference, name, solver, projection, tolerance)
                        rows.append(row)
                    print(f"{label:12} {solver:7} {name:24} {row['error']:.1e}", flush=True)
    if not options.smoke:
        print_claims(rows)
    common.write("two_bodies", rows, options.smoke)
