"""QUAT.EM in three, seven and nine unknowns: Betsch-Siebert (51), (52)-(54) and the reduced form.

The free body and the steady top over 1,000 steps: the time of a step, evaluations per step, and the
largest distance from the trajectory of the reduced form, at every hundredth step.
"""

from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import EnergyMomentum

FORMS = ("reduced", "null-space", "saddle-point")
CASES = {"free body": (problems.free_body, 2e-3), "steady top": (problems.steady_top, 1e-3)}


def rows_of(case: str, count: int) -> list[dict[str, Any]]:
    """Return rows of all forms; runs are timed in turn."""
    build, dt = CASES[case]
    problem = build()
    model, ts = rj.NullSpace(problem.system), dt * (count // 10) * np.arange(11)

    def simulate_form(form, state0):
        return rj.simulate(
            model, state0, count * dt, ts=ts, solver=EnergyMomentum(form=form), dt=dt,
            max_steps=count + 10,
        )  # fmt: skip

    runs = {form: jax.jit(lambda s, form=form: simulate_form(form, s).ys) for form in FORMS}
    times = common.time_in_turn(
        {form: lambda run=run: run(problem.state0) for form, run in runs.items()}, 7
    )
    found = {form: run(problem.state0) for form, run in runs.items()}
    rows = []
    for form in FORMS:
        apart = jnp.abs(found[form] - found["reduced"])
        stats = simulate_form(form, problem.state0).stats
        least = common.summary(times[form])["run_seconds_min"]
        rows.append(
            {
                "case": case,
                "form": form,
                "dt": dt,
                "steps": count,
                "step_seconds": least / count,
                "evaluations": int(stats["num_rhs"]) / count,
                "attitude": float(jnp.max(apart[:, :4])),
                "rate": float(jnp.max(apart[:, 4:]) / jnp.max(jnp.abs(found[form][:, 4:]))),
                "dtype": str(apart.dtype),
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    options = common.arguments(__doc__ or "")
    common.double_precision()
    if options.smoke:
        rows = rows_of("free body", 50)
    else:
        rows = [row for case in CASES for row in rows_of(case, 1000)]
    common.write("quat_em", rows, options.smoke)
