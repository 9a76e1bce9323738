"""Work against error for all formulations: Lang's Figures 8, 9, 10, 13, 14 and 15.

Work is the number of evaluations of the right-hand side, including Newton iterations of implicit
solvers but not columns of Jacobians. Error is the largest absolute error of the rotation matrix and
of the body rates at the end time, against an exact or 40-digit solution, independent of the
unknowns. Explicit runs are made with and without projection after each step.
"""

import functools
import math
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems

TOLERANCES = tuple(10.0**-k for k in range(5, 12))
MAX_STEPS = 400_000

EXPLICIT = {"Dopri5": diffrax.Dopri5(), "Dopri8": diffrax.Dopri8(), "Tsit5": diffrax.Tsit5()}
# The six solvers of Lang's Table 3 (his DoP853 and Dassl under their names here). The solvers of
# rigidjax count their evaluations in the compiled run.
SIX = {
    "Dopri5": diffrax.Dopri5(),
    "Dopri8": diffrax.Dopri8(),
    "Odex": rj.solvers.Odex(),
    "Radau5": rj.solvers.Radau5(),
    "BDF": rj.solvers.BDF(),
    "Seulex": rj.solvers.Seulex(),
}
IMPLICIT = {
    "Kvaerno5": diffrax.Kvaerno5(),
    "Kvaerno4": diffrax.Kvaerno4(),
    "Kvaerno3": diffrax.Kvaerno3(),
}
# Fewer tolerances, as implicit runs count by a callback, and low orders need many evaluations.
IMPLICIT_TOLERANCES = {
    "Kvaerno5": (1e-4, 1e-6, 1e-8),
    "Kvaerno4": (1e-4, 1e-6, 1e-8),
    "Kvaerno3": (1e-4, 1e-5, 1e-6),
}

PROBLEMS = {
    "A": problems.heavy_top,
    "B, 0.1": functools.partial(problems.tennis_racket, 0.1),
    "B, 1e-5": functools.partial(problems.tennis_racket, 1e-5),
}
PAIRS = {
    "quaternion": ("null space, quaternion", "absolute, quaternion"),
    "directors": ("null space, directors", "absolute, directors"),
}


@functools.partial(jax.jit, static_argnames=("t1", "solver", "projection"))
def compiled_run(model, state0, tolerance, *, t1, solver, projection):
    """Return one adaptive run; the tolerance is traced, so that all tolerances share one
    compilation.
    """
    return simulate(model, state0, t1, tolerance, {**EXPLICIT, **SIX}[solver], projection)


def simulate(model, state0, t1, tolerance, solver, projection):
    """Simulate one row."""
    solution = rj.simulate(
        model,
        state0,
        t1,
        solver=solver,
        rtol=tolerance,
        atol=tolerance,
        projection=projection,
        max_steps=MAX_STEPS,
        throw=False,
    )
    ok = solution.result == rj.RESULTS.successful
    y0 = model.encode(state0)
    energy = (solution.energy[-1] - model.energy(0.0, y0)) / jnp.abs(model.energy(0.0, y0))
    drift = solution.position_drift[-1], solution.velocity_drift[-1]
    return solution.states, solution.stats, ok, energy, drift


def measure(label, problem, reference, name, solver, tolerance, projection) -> dict[str, Any]:
    """Return one row."""
    model = common.FORMULATIONS[name](problem.system)
    tolerance_array = jnp.asarray(tolerance)
    if solver not in IMPLICIT:
        out = compiled_run(
            model,
            problem.state0,
            tolerance_array,
            t1=problem.t1,
            solver=solver,
            projection=projection,
        )
    else:
        out = simulate(
            model, problem.state0, problem.t1, tolerance_array, IMPLICIT[solver], projection
        )
    states, stats, ok, energy, drift = out
    matrix, omega = common.errors(states, reference)
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
        "error": max(matrix, omega),
        "error_matrix": matrix,
        "error_omega": omega,
        "energy_error": float(energy),
        "position_drift": float(drift[0]),
        "velocity_drift": float(drift[1]),
    }


def explicit_rows(smoke: bool) -> list[dict[str, Any]]:
    """Return Figures 13, 15: explicit solvers, all examples, with and without projection."""
    out = []
    for label, make in PROBLEMS.items():
        if smoke and label != "A":
            continue
        problem = make()
        reference = problem.reference([problem.t1])
        for solver in ["Dopri5"] if smoke else EXPLICIT:
            for name in PAIRS["quaternion"] if smoke else common.FORMULATIONS:
                both = name != "Euler angles" and not smoke
                for projection in (True, False) if both else (True,):
                    for tolerance in TOLERANCES[:2] if smoke else TOLERANCES:
                        out.append(
                            measure(label, problem, reference, name, solver, tolerance, projection)
                        )
                if not smoke:
                    print(f"{label:8} {solver:9} {name}", flush=True)
    return out


def implicit_rows() -> list[dict[str, Any]]:
    """Return Figure 14: implicit solvers on Example A, with projection; written solver by
    solver.
    """
    out = []
    problem = PROBLEMS["A"]()
    reference = problem.reference([problem.t1])
    for solver, tolerances in IMPLICIT_TOLERANCES.items():
        for name in common.FORMULATIONS:
            for tolerance in tolerances:
                out.append(measure("A", problem, reference, name, solver, tolerance, True))
            print(f"{'A':8} {solver:9} {name}", flush=True)
        common.write("work_precision_implicit", out, False)
    return out


def step_rows(points: int = 400) -> list[dict[str, Any]]:
    """Return Figures 8, 9: accepted step sizes over time, Dopri5 at 1e-6."""
    out = []
    for label in ("A", "B, 0.1"):
        problem = PROBLEMS[label]()
        for name, make in common.FORMULATIONS.items():
            solution = rj.simulate(
                make(problem.system),
                problem.state0,
                problem.t1,
                solver=diffrax.Dopri5(),
                rtol=1e-6,
                atol=1e-6,
                saveat=diffrax.SaveAt(t0=True, steps=True),
                max_steps=20_000,
            )
            ts = np.asarray(solution.ts)
            ts = ts[np.isfinite(ts)]
            # The end time shortens the last step.
            middle, steps = 0.5 * (ts[1:] + ts[:-1])[:-1], np.diff(ts)[:-1]
            every = max(1, math.ceil(len(steps) / points))
            out.append(
                {
                    "case": label,
                    "formulation": name,
                    "solver": "Dopri5",
                    "tolerance": 1e-6,
                    "dtype": str(solution.states.orientation.dtype),
                    "mean_step": float(np.mean(steps)),
                    "num_accepted_steps": int(solution.stats["num_accepted_steps"]),
                    "ts": [round(float(t), 5) for t in middle[::every]],
                    "steps": [float(f"{h:.5g}") for h in steps[::every]],
                }
            )
    return out


def energy_rows(points: int = 201) -> list[dict[str, Any]]:
    """Return Figure 10: total energy over time, Example A with 500 rad/s, Dopri5, coarse
    tolerances.
    """
    problem = problems.heavy_top_fast()
    ts = np.linspace(0.0, problem.t1, points)
    out = []
    for name, make in common.FORMULATIONS.items():
        for projection in (True, False) if name != "Euler angles" else (True,):
            for tolerance in (1e-5, 1e-7):
                solution = rj.simulate(
                    make(problem.system),
                    problem.state0,
                    problem.t1,
                    ts=ts,
                    solver=diffrax.Dopri5(),
                    rtol=jnp.asarray(tolerance),
                    atol=jnp.asarray(tolerance),
                    projection=projection,
                    max_steps=MAX_STEPS,
                )
                energy = np.asarray(solution.energy)
                change = (energy - energy[0]) / energy[0]
                out.append(
                    {
                        "case": "A, 500 rad/s",
                        "formulation": name,
                        "solver": "Dopri5",
                        "projection": projection,
                        "tolerance": tolerance,
                        "dtype": str(energy.dtype),
                        "num_rhs": int(solution.stats["num_rhs"]),
                        "largest_energy_change": float(np.max(np.abs(change))),
                        "ts": [round(float(t), 4) for t in ts],
                        "energy_change": [float(f"{e:.4g}") for e in change],
                    }
                )
    return out


def at_error(rows: list[dict[str, Any]], error: float) -> tuple[float, str]:
    """Return the evaluations that a solver needs for an error, interpolated on logarithmic scales.

    Runs that are no better than one with less work are excluded first.

    **Returns:** the evaluations, and `"<="` if the error is larger than any measured one, `">"` if
    no run reaches it, else `""`.
    """
    curve: list[tuple[int, float]] = []
    for row in sorted(rows, key=lambda row: row["num_rhs"]):
        if not curve or row["error"] < curve[-1][1]:
            curve.append((row["num_rhs"], row["error"]))
    if error >= curve[0][1]:
        return curve[0][0], "<="
    if error < curve[-1][1]:
        return curve[-1][0], ">"
    work, errors = zip(*curve, strict=True)
    # `np.interp` requires increasing abscissas.
    exponent = np.interp(-math.log(error), -np.log(errors), np.log(work))
    return math.exp(exponent), ""


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the work of the absolute formulation over that of the null space at equal error."""
    out = []
    keys = sorted({(r["case"], r["solver"], r["projection"]) for r in rows}, key=str)
    for case, solver, projection in keys:
        group = [
            r
            for r in rows
            if (r["case"], r["solver"], r["projection"]) == (case, solver, projection)
        ]
        for pair, (null, absolute) in PAIRS.items():
            null_rows = [r for r in group if r["formulation"] == null]
            for row in (r for r in group if r["formulation"] == absolute):
                same = [r for r in null_rows if r["tolerance"] == row["tolerance"]]
                if not same:
                    continue
                work, bound = at_error(null_rows, row["error"])
                out.append(
                    {
                        "case": case,
                        "solver": solver,
                        "projection": projection,
                        "pair": pair,
                        "tolerance": row["tolerance"],
                        "error_absolute": row["error"],
                        "error_null_space": same[0]["error"],
                        "num_rhs_absolute": row["num_rhs"],
                        "num_rhs_null_space": same[0]["num_rhs"],
                        "null_space_at_equal_error": work,
                        "bound": bound,
                        "ratio": row["num_rhs"] / work,
                    }
                )
    return out


def print_claims(rows: list[dict[str, Any]]) -> None:
    """Print the table of results: a line per case, solver, projection and rotation."""
    found = claims(rows)
    print("\nEvaluations, absolute over null space, at the error of the absolute run, by tolerance")
    print("(> 1: null space needs fewer; >=: its coarsest run is already better)")
    keys = dict.fromkeys((f["case"], f["solver"], f["projection"], f["pair"]) for f in found)
    for case, solver, projection, pair in keys:
        line = [
            f
            for f in found
            if (f["case"], f["solver"], f["projection"], f["pair"])
            == (case, solver, projection, pair)
        ]
        line.sort(key=lambda f: -f["tolerance"])
        cells = "".join(
            f"{ {'': '', '<=': '>=', '>': '<'}[f['bound']] + format(f['ratio'], '.2f'):>9}"
            for f in line
        )
        setting = "projected" if projection else "free"
        print(f"{case:8} {solver:9} {setting:10} {pair:11}{cells}")


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    measured = explicit_rows(options.smoke)
    common.write("work_precision", measured, options.smoke)
    if not options.smoke:
        print_claims(measured)
        common.write("step_sizes", step_rows(), options.smoke)
        common.write("energy", energy_rows(), options.smoke)
        print_claims(implicit_rows())
