"""Implicit solvers against SciPy, scipy_dae and SUNDIALS IDA: work, error and time.

All programs use the same right-hand side and Jacobian, compiled by JAX, and one core; rigidjax runs
as a native kernel. At each tolerance the programs take turns, each as often as the others, and the
medians of their wall times are compared. `make peers` installs the other programs; without them
only `--smoke` runs. Errors are the largest ones at the end, over 1 + |y| (over smaller absolute
parts where the problem requires it). SciPy counts accepted steps.
"""

import os

from _one_core import ONE_CORE

if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", ONE_CORE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import functools
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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
from rigidjax.solvers.base.hooked import HookedSolver
from rigidjax.solvers.wrappers.counting import CountedSteps, CountingController

TOLERANCES = tuple(10.0**-k for k in range(4, 11))
MAX_STEPS = 500_000
REPEATS = 5
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
            term, HookedSolver(method, (CountedSteps(),)), problem.t0, problem.t1, None, y0,
            stepsize_controller=controller, max_steps=MAX_STEPS, throw=False,
            adjoint=diffrax.ForwardMode(),
            saveat=diffrax.SaveAt(t1=True, controller_state=True),
        )  # fmt: skip
        ok = solution.result == diffrax.RESULTS.successful
        return solution.ys[-1], ok, solution.stats, solution.controller_state[1]

    return jax.jit(rj.native.jit(run) if backend == "native" else run)


class Run(NamedTuple):
    """A run of a program at one tolerance.

    **Attributes:** `call`, a function that runs it once and returns a row with what it computed;
    `compile_seconds`, `None` without compilation.
    """

    call: Callable[[], dict[str, Any]]
    compile_seconds: float | None


def our_runs(problem: ivp.Problem, tolerances) -> Iterator[tuple[tuple[str, str, float], Run]]:
    """Yield the runs of our solvers by program, method and tolerance."""
    y0 = jnp.asarray(problem.y0)
    for name, solver in OURS.items():
        run = our_run(problem, solver)
        begin = time.perf_counter()
        jax.block_until_ready(run(y0, jnp.asarray(tolerances[0])))
        compiled = time.perf_counter() - begin

        def call(tolerance, run=run):
            y, ok, stats, evaluations = jax.block_until_ready(run(y0, jnp.asarray(tolerance)))
            return {
                "successful": bool(ok),
                "y": y,
                "num_steps": int(stats["num_accepted_steps"]),
                "num_rejected_steps": int(stats["num_rejected_steps"]),
                "num_rhs": int(evaluations),
                "num_jacobians": None,
            }

        for tolerance in tolerances:
            key = ("rigidjax", name, tolerance)
            yield key, Run(functools.partial(call, tolerance), compiled)


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
    """Return whether a program supports the problem: SciPy ODEs, scipy_dae DAEs, IDA both.

    scipy_dae does not implement unknowns of index above 1, and the Python interface of IDA does not
    exclude them from the error test.
    """
    if problem.index is not None:
        return False
    return program == "SUNDIALS" or (problem.mass is None) == (program == "SciPy")


def peer_runs(
    problem: ivp.Problem, tolerances, installed
) -> Iterator[tuple[tuple[str, str, float], Run]]:
    """Yield the runs of other programs by program, method and tolerance."""
    calls = Counted(problem)

    def call(run, method, tolerance):
        calls.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y, ok, steps = run(problem, calls, method, tolerance)
        return {
            "successful": bool(ok),
            "y": y,
            "num_steps": steps,
            "num_rejected_steps": None,
            "num_rhs": calls.rhs_count,
            "num_jacobians": calls.jacobian_count,
        }

    for (program, method), run in PEERS.items():
        if program in installed and takes(program, problem):
            for tolerance in tolerances:
                key = (program, method, tolerance)
                yield key, Run(functools.partial(call, run, method, tolerance), None)


def rows_of(problem: ivp.Problem, tolerances, repeats: int, installed) -> list[dict[str, Any]]:
    """Return the rows of all programs, which take turns at each tolerance."""
    runs = dict(our_runs(problem, tolerances)) | dict(peer_runs(problem, tolerances, installed))
    rows = []
    for tolerance in tolerances:
        here = {key[:2]: run for key, run in runs.items() if key[2] == tolerance}
        times = common.time_in_turn({" ".join(key): run.call for key, run in here.items()}, repeats)
        for (program, method), run in here.items():
            found = run.call()
            error = float(np.max(ivp.scaled_errors(problem, found.pop("y"))))
            row = {"program": program, "method": method, "tolerance": tolerance, **found}
            row |= {"error": error, "compile_seconds": run.compile_seconds}
            rows.append(row | common.summary(times[f"{program} {method}"]))
    return rows


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
    for case in dict.fromkeys(r["case"] for r in rows):
        here = [r for r in rows if r["case"] == case]
        mine = [r for r in here if r["program"] == "rigidjax"]
        for group, member in GROUPS.items():
            theirs = [r for r in here if member(r)]
            for exponent in range(-3, -12, -1):
                found = {"case": case, "against": group, "error": 10.0**exponent}
                for key in ("num_steps", "num_rhs", "run_seconds"):
                    found[key] = work_at(mine, key, found["error"]) / work_at(
                        theirs, key, found["error"]
                    )
                if np.isfinite(found["num_rhs"]) and np.isfinite(found["run_seconds"]):
                    out.append(found)
    return out


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    cases = ("Robertson",) if options.smoke else tuple(CASES)
    tolerances = TOLERANCES[:2] if options.smoke else TOLERANCES
    installed = {name for name, module in MODULES.items() if importlib.util.find_spec(module)}
    missing = MODULES.keys() - installed
    if missing and not options.smoke:
        sys.exit(f"Not installed: {', '.join(sorted(missing))}; run `make peers`.")
    rows = []
    for case in cases:
        problem = CASES[case]()
        for row in rows_of(problem, tolerances, 1 if options.smoke else REPEATS, installed):
            rows.append({"case": case, "unknowns": len(problem.y0), "dtype": "float64", **row})
            if not options.smoke:
                print(
                    f"{case:20} {row['program']:10}{row['method']:7}{row['tolerance']:.0e}"
                    f"{row['error']:10.1e}{row['num_steps'] or 0:8}{row['num_rhs']:8}"
                    f"{1e3 * row['run_seconds']:10.3f} ms {'' if row['successful'] else 'failed'}",
                    flush=True,
                )
    common.write("peers", rows, options.smoke)
