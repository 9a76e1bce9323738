"""Radau5 and BDF with the inverse matrix and with LU and QR of lineax: run times.

All runs are native kernels except QR, which XLA executes. They take turns on one core, so that
other load on the machine affects all of them alike.
"""

import os

from _one_core import ONE_CORE

if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", ONE_CORE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

from typing import Any

import _common as common
import jax.numpy as jnp
import lineax as lx
from peers import CASES, OURS, our_run

from rigidjax.solvers import Inverse

LINEAR = {"inverse": Inverse(), "LU": lx.LU(), "QR": lx.QR()}
TOLERANCE = 1e-6


def case_rows(case: str, repeats: int) -> list[dict[str, Any]]:
    problem, rows = CASES[case](), []
    y0, rtol = jnp.asarray(problem.y0), jnp.asarray(TOLERANCE)
    for name, solver in OURS.items():
        runs = {
            linear: our_run(
                problem, type(solver)(linear_solver=chosen), "xla" if linear == "QR" else "native"
            )
            for linear, chosen in LINEAR.items()
        }
        ends = {linear: run(y0, rtol) for linear, run in runs.items()}
        times = common.time_in_turn(
            {linear: lambda run=run: run(y0, rtol)[0] for linear, run in runs.items()}, repeats
        )
        for linear, (_, ok, stats, evaluations) in ends.items():
            rows.append(
                {
                    "case": case,
                    "unknowns": len(problem.y0),
                    "method": name,
                    "linear_solver": linear,
                    "tolerance": TOLERANCE,
                    "successful": bool(ok),
                    "num_steps": int(stats["num_steps"]),
                    "num_rhs": int(evaluations),
                    **common.summary(times[linear]),
                }
            )
    return rows


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    rows = []
    for case in ("Robertson",) if options.smoke else ("HIRES", "C slow", "Andrews, index 1"):
        for row in case_rows(case, 2 if options.smoke else 20):
            rows.append(row)
            if not options.smoke:
                print(
                    f"{case:20}{row['method']:8}{row['linear_solver']:9}{row['num_steps']:6}"
                    f"{row['num_rhs']:7}{1e3 * row['run_seconds_min']:10.3f} ms", flush=True
                )  # fmt: skip
    common.write("linear_solvers", rows, options.smoke)
