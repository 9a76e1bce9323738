"""Implicit solvers against SciPy, scipy_dae and SUNDIALS IDA: work, error and time.

All programs use the same right-hand side and Jacobian, compiled by JAX, and one core; rigidjax runs
as a native kernel. The machine may be shared, so that processor times are compared; for short runs
of rigidjax the least of 20 wall times. Peers are optional: `pip install scipy scipy_dae
scikit-sundae`. Errors are the largest ones at the end, over 1 + |y| (over smaller absolute parts
where the problem requires it). SciPy counts accepted steps.
"""

import os

from _one_core import ONE_CORE

if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", ONE_CORE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import time
import warnings
from collections.abc import Callable
from typing import Any

import _common as common
import _ivp as ivp
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from _andrews import andrews

import rigidjax as rj
from rigidjax import problems
from rigidjax.rotations import euler_map
from rigidjax.solvers.wrappers.counting import CountingController, CountingSolver

TOLERANCES = tuple(10.0**-k for k in range(4, 11))
MAX_STEPS = 500_000
# Shortest processor time, in seconds, for which its clock is fine enough.
_COARSE = 0.1
OURS = {"Radau5": rj.solvers.Radau5(), "BDF": rj.solvers.BDF()}


def rigid(name: str, make: Callable[[], Any]) -> ivp.Problem:
    """Return one of Lang's examples, in null space and quaternions, as a plain differential
    equation.
    """
    problem = make()
    model = rj.NullSpace(problem.system, rj.Quaternion())

    def observe(states):
        R = jax.vmap(euler_map)(states.orientation.reshape(-1, 4))
        motion = [states.position, states.velocity, states.angular_velocity]
        return jnp.concatenate([R.ravel(), *(jnp.ravel(part) for part in motion)])

    reference = problem.reference([problem.t1])
    return ivp.Problem(
        name,
        lambda t, y: model.vector_field(t, y),
        np.asarray(model.encode(problem.state0)),
        problem.t1,
        np.asarray(observe(jax.tree.map(lambda x: x[-1], reference))),
        problem.known,
        observe=lambda y: observe(model.decode(problem.t1, y)),
    )


def angles(index: int) -> ivp.Problem:
    """Return Andrews' mechanism with errors of the seven angles."""
    problem = andrews(index)
    return problem._replace(observe=lambda y: y[:7], end=problem.end[:7])


CASES: dict[str, Callable[[], ivp.Problem]] = {
    "van der Pol, 1e3": lambda: ivp.van_der_pol(1e3),
    "van der Pol, 1e6": lambda: ivp.van_der_pol(1e6),
    "Robertson": ivp.robertson,
    "HIRES": ivp.hires,
    "Robertson, index 1": ivp.robertson_dae,
    "Andrews, index 1": lambda: angles(1),
    "Andrews, index 3": lambda: angles(3),
    "A": lambda: rigid("A", problems.heavy_top),
    "B": lambda: rigid("B", problems.tennis_racket),
    "C slow": lambda: rigid("C slow", problems.two_bodies_slow),
}


def our_run(
    problem: ivp.Problem, solver: Any, backend: str = "native"
) -> Callable[[Any, Any], Any]:
    """Return a run as a compiled function of initial values and tolerance, with its counters."""
    field = lambda t, y, args: problem.field(t, y)  # noqa: E731
    if problem.mass is None:
        term = diffrax.ODETerm(field)
    else:
        term = rj.solvers.MassMatrixTerm(
            field, np.diag(problem.mass), problem.index, rates=problem.rates,
            # The initial values are consistent, and a kernel of a user's function cannot call back.
            check_start=False,
        )  # fmt: skip

    def run(y0, rtol):
        atol = problem.floor * rtol
        finder = eqx.tree_at(
            lambda f: (f.rtol, f.atol, f.norm), solver.root_finder, (rtol, atol, optx.rms_norm)
        )
        method = eqx.tree_at(lambda s: s.root_finder, solver, finder)
        controller = CountingController(method.controller(rtol, atol, optx.rms_norm))
        solution = diffrax.diffeqsolve(
            term, CountingSolver(method), problem.t0, problem.t1, None, y0,
            stepsize_controller=controller, max_steps=MAX_STEPS, throw=False,
            adjoint=diffrax.ForwardMode(),
            saveat=diffrax.SaveAt(t1=True, controller_state=True),
        )  # fmt: skip
        ok = solution.result == diffrax.RESULTS.successful
        return solution.ys[-1], ok, solution.stats, solution.controller_state[1]

    return jax.jit(rj.native.jit(run) if backend == "native" else run)


def time_run(run, y0, rtol, repeats: int) -> dict[str, float]:
    """Return wall times of single runs, and the processor time of all together, whose clock is
    coarse.
    """
    used = time.process_time()
    wall = [common.seconds(lambda: run(y0, rtol)[0]) for _ in range(repeats)]
    used = (time.process_time() - used) / repeats
    return {
        "run_seconds": float(np.median(wall)),
        "run_seconds_min": min(wall),
        "cpu_seconds": used,
        "repeats": repeats,
    }


def ours(problem: ivp.Problem, tolerances, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for name, solver in OURS.items():
        y0 = jnp.asarray(problem.y0)
        run = our_run(problem, solver)
        begin = time.perf_counter()
        jax.block_until_ready(run(y0, jnp.asarray(tolerances[0])))
        compiled = time.perf_counter() - begin
        for tolerance in tolerances:
            rtol = jnp.asarray(tolerance)
            y, ok, stats, evaluations = run(y0, rtol)
            times = time_run(run, y0, rtol, repeats)
            rows.append(
                {
                    "program": "rigidjax",
                    "method": name,
                    "tolerance": tolerance,
                    "successful": bool(ok),
                    "error": float(np.max(ivp.scaled_errors(problem, y))),
                    "num_steps": int(stats["num_accepted_steps"]),
                    "num_rejected_steps": int(stats["num_rejected_steps"]),
                    "num_rhs": int(evaluations),
                    "num_jacobians": None,
                    "compile_seconds": compiled,
                    **times,
                }
            )
    return rows


class Counted:
    """Right-hand side, residual and Jacobian for programs that call Python, and their counts."""

    def __init__(self, problem: ivp.Problem):
        n = len(problem.y0)
        self.mass = np.ones(n) if problem.mass is None else np.asarray(problem.mass)
        self.f, self.J = jax.jit(problem.field), jax.jit(jax.jacfwd(problem.field, 1))
        self.M = np.diag(self.mass)
        self.rhs_count = self.jacobian_count = 0
        self.field(problem.t0, problem.y0), self.jacobian(problem.t0, problem.y0)
        self.clear()

    def clear(self):
        self.rhs_count = self.jacobian_count = 0

    def field(self, t, y):
        self.rhs_count += 1
        return np.asarray(self.f(t, y))

    def jacobian(self, t, y):
        self.jacobian_count += 1
        return np.asarray(self.J(t, y))

    def residual(self, t, y, rate):
        return self.mass * rate - self.field(t, y)

    def start_rate(self, problem):
        f = np.asarray(self.f(problem.t0, problem.y0))
        return np.divide(f, self.mass, out=np.zeros_like(f), where=self.mass > 0)


def scipy_run(problem, calls, method, tolerance):
    from scipy.integrate import solve_ivp

    solution = solve_ivp(
        calls.field, (problem.t0, problem.t1), problem.y0, method=method, rtol=tolerance,
        atol=problem.floor * tolerance, jac=calls.jacobian,
    )  # fmt: skip
    return solution.y[:, -1], solution.success, len(solution.t) - 1


def scipy_dae_run(problem, calls, method, tolerance):
    from scipy_dae.integrate import solve_dae  # pyright: ignore[reportMissingImports]

    solution = solve_dae(
        calls.residual, (problem.t0, problem.t1), problem.y0, calls.start_rate(problem),
        method=method, rtol=tolerance, atol=problem.floor * tolerance,
        jac=lambda t, y, rate: (-calls.jacobian(t, y), calls.M),
    )  # fmt: skip
    return solution.y[:, -1], solution.success, len(solution.t) - 1


def ida_run(problem, calls, method, tolerance):
    from sksundae.ida import IDA  # pyright: ignore[reportMissingImports]

    def residual(t, y, rate, out):
        out[:] = calls.residual(t, y, rate)

    def jacobian(t, y, rate, out, cj, J):
        J[:] = cj * calls.M - calls.jacobian(t, y)

    algebraic = np.flatnonzero(calls.mass == 0)
    solver = IDA(
        residual, jacfn=jacobian, rtol=tolerance, max_num_steps=MAX_STEPS,
        atol=np.full(len(calls.mass), problem.floor * tolerance),
        algebraic_idx=[int(i) for i in algebraic] if algebraic.size else None,
    )  # fmt: skip
    solution = solver.solve(
        np.array([problem.t0, problem.t1]), problem.y0, calls.start_rate(problem)
    )
    return solution.y[-1], solution.success, None


PEERS = {
    ("SciPy", "Radau"): scipy_run,
    ("SciPy", "BDF"): scipy_run,
    ("scipy_dae", "Radau"): scipy_dae_run,
    ("scipy_dae", "BDF"): scipy_dae_run,
    ("SUNDIALS", "IDA"): ida_run,
}
MODULES = {"SciPy": "scipy", "scipy_dae": "scipy_dae", "SUNDIALS": "sksundae"}


def takes(program: str, problem: ivp.Problem) -> bool:
    """Return whether a program is installed and supports the problem: SciPy ODEs, scipy_dae DAEs,
    IDA both.

    scipy_dae does not implement unknowns of index above 1, and the Python interface of IDA does not
    exclude them from the error test.
    """
    import importlib.util

    if importlib.util.find_spec(MODULES[program]) is None or problem.index is not None:
        return False
    return program == "SUNDIALS" or (problem.mass is None) == (program == "SciPy")


def peer_rows(problem: ivp.Problem, tolerances) -> list[dict[str, Any]]:
    rows = []
    calls = Counted(problem)
    for (program, method), run in PEERS.items():
        if not takes(program, problem):
            continue
        for tolerance in tolerances:
            calls.clear()
            begin, used = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y, ok, steps = run(problem, calls, method, tolerance)
            seconds, used = time.perf_counter() - begin, time.process_time() - used
            rows.append(
                {
                    "program": program,
                    "method": method,
                    "tolerance": tolerance,
                    "successful": bool(ok),
                    "error": float(np.max(ivp.scaled_errors(problem, y))),
                    "num_steps": steps,
                    "num_rejected_steps": None,
                    "num_rhs": calls.rhs_count,
                    "num_jacobians": calls.jacobian_count,
                    "run_seconds": seconds,
                    "run_seconds_min": seconds,
                    "cpu_seconds": used,
                    "repeats": 1,
                    "compile_seconds": None,
                }
            )
    return rows


def with_seconds(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with its time: processor time, or the least wall time of many runs for short
    ones.

    Processor time does not depend on other load, but its clock is too coarse for milliseconds.
    """
    used = row["cpu_seconds"]
    if row["repeats"] == 1:
        return {**row, "seconds": used}
    wall = row["run_seconds_min"]
    return {**row, "seconds": min(wall, used) if row["repeats"] * used > _COARSE else wall}


def front(rows: list[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return increasing errors and the least work that reaches each, for several runs."""
    good = sorted(
        (r["error"], r[key]) for r in rows if r["successful"] and 0 < r["error"] < 1 and r[key]
    )
    kept: list[tuple[float, float]] = []
    for error, work in good:
        if not kept or work < kept[-1][1]:
            kept.append((error, work))
    errors, work = zip(*kept, strict=True) if kept else ((), ())
    return np.array(errors), np.array(work, float)


def work_at(rows: list[dict[str, Any]], key: str, error: float) -> float:
    """Return the least work for an error, interpolated on logarithmic scales; NaN outside the
    runs.
    """
    errors, work = front(rows, key)
    largest = max((r["error"] for r in rows if r["successful"]), default=0.0)
    # Runs beyond the end of the front have larger errors and more work.
    if not len(errors) or not errors[0] <= error <= largest:
        return float("nan")
    return float(np.exp(np.interp(np.log(error), np.log(errors), np.log(work))))


GROUPS = {
    "SciPy": lambda r: r["program"] == "SciPy",
    "scipy_dae": lambda r: r["program"] == "scipy_dae",
    "IDA": lambda r: r["method"] == "IDA",
}


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the work of the better run of rigidjax over that of the better peer, at errors in
    decades.
    """
    out = []
    rows = [with_seconds(row) for row in rows]
    for case in dict.fromkeys(r["case"] for r in rows):
        here = [r for r in rows if r["case"] == case]
        mine = [r for r in here if r["program"] == "rigidjax"]
        for group, member in GROUPS.items():
            theirs = [r for r in here if member(r)]
            for exponent in range(-3, -12, -1):
                found = {"case": case, "against": group, "error": 10.0**exponent}
                for key in ("num_steps", "num_rhs", "seconds"):
                    found[key] = work_at(mine, key, found["error"]) / work_at(
                        theirs, key, found["error"]
                    )
                if np.isfinite(found["num_rhs"]) and np.isfinite(found["seconds"]):
                    out.append(found)
    return out


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    cases = ("Robertson",) if options.smoke else tuple(CASES)
    tolerances = TOLERANCES[:2] if options.smoke else TOLERANCES
    rows = []
    for case in cases:
        problem = CASES[case]()
        found = ours(problem, tolerances, 2 if options.smoke else 20)
        for row in found + peer_rows(problem, tolerances):
            rows.append({"case": case, "unknowns": len(problem.y0), "dtype": "float64", **row})
            if not options.smoke:
                print(
                    f"{case:20} {row['program']:10}{row['method']:7}{row['tolerance']:.0e}"
                    f"{row['error']:10.1e}{row['num_steps'] or 0:8}{row['num_rhs']:8}"
                    f"{1e3 * row['cpu_seconds']:10.3f} ms {'' if row['successful'] else 'failed'}",
                    flush=True,
                )
    common.write("peers", rows, options.smoke)
