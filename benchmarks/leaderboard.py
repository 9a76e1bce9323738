"""Combinations of formulation and solver, ranked by their work at equal error.

Every combination solves every problem at several tolerances, or with several fixed steps. Work is
the number of evaluations of the right-hand side (Newton iterations included, columns of Jacobians
not) and the processor time of the compiled run, on one core. At each problem all runs take turns.
Errors are those of `rj.problems.compare`: the largest of the error of the rotation matrix, of the
body rates over the largest rate, and of the positions over the largest coordinate, at the end.
"""

import os

from _one_core import ONE_CORE

if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", ONE_CORE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import functools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import _common as common
import diffrax
import jax
import jax.numpy as jnp

import rigidjax as rj
from rigidjax import problems, solvers
from rigidjax.problems.comparison import errors_against

TOLERANCES = tuple(10.0**-k for k in (3, 5, 7, 9, 11))
STEP_COUNTS = (100, 400, 1_600, 6_400, 25_600, 102_400)
MAX_STEPS = 150_000
# A combination is not run at smaller tolerances or steps after a run of this length, s.
LONGEST_RUN = 0.5
REPEATS = 5
# Short runs are repeated for at least this time in each of their turns, s.
SHORTEST_TURN = 0.005

PROBLEMS: dict[str, Callable[[], problems.Problem]] = {
    "heavy_top": problems.heavy_top,
    "two_bodies_slow": problems.two_bodies_slow,
    "free_body": problems.free_body,
}


class Combination(NamedTuple):
    """A formulation, as a function of the system, and a solver, with fixed steps or tolerances."""

    model: Callable[[Any], Any]
    solver: Any
    fixed: bool = False


def absolute(index: int, **options: Any) -> Callable[[Any], Any]:
    """Return the formulation in absolute coordinates and quaternions at an index."""
    return lambda system: rj.Absolute(system, index=index, **options)


def null_space(rotation: Any) -> Callable[[Any], Any]:
    """Return the formulation in null-space coordinates and a rotation."""
    return lambda system: rj.NullSpace(system, rotation)


def directors(system: Any) -> Any:
    """Return the formulation in absolute coordinates and directors."""
    return rj.Absolute(system, rj.Directors())


COMBINATIONS: dict[str, Combination] = {
    "NullSpace, Dopri5": Combination(rj.NullSpace, diffrax.Dopri5()),
    "NullSpace, Dopri8": Combination(rj.NullSpace, diffrax.Dopri8()),
    "NullSpace, Odex": Combination(rj.NullSpace, solvers.Odex()),
    "NullSpace, Radau5": Combination(rj.NullSpace, solvers.Radau5()),
    "NullSpace, BDF": Combination(rj.NullSpace, solvers.BDF()),
    "NullSpace, Seulex": Combination(rj.NullSpace, solvers.Seulex()),
    "NullSpace, directors, Dopri8": Combination(null_space(rj.Directors()), diffrax.Dopri8()),
    "NullSpace, rotation vector, Dopri8": Combination(
        null_space(rj.RotationVector()), diffrax.Dopri8()
    ),
    "NullSpace, Euler angles, Dopri8": Combination(
        null_space(rj.EulerAngles("ZXZ")), diffrax.Dopri8()
    ),
    "Relative, Dopri8": Combination(rj.Relative, diffrax.Dopri8()),
    "Relative, BDF": Combination(rj.Relative, solvers.BDF()),
    "Absolute, Dopri8": Combination(rj.Absolute, diffrax.Dopri8()),
    "Absolute, directors, Dopri8": Combination(directors, diffrax.Dopri8()),
    "Absolute, index 1, BDF": Combination(absolute(1), solvers.BDF()),
    "Absolute, index 2 stabilised, Radau5": Combination(
        absolute(2, stabilized=True), solvers.Radau5()
    ),
    "Absolute, index 3, Radau5": Combination(absolute(3), solvers.Radau5()),
    "NullSpace, EnergyMomentum": Combination(rj.NullSpace, solvers.EnergyMomentum(), True),
    "Absolute, directors, EnergyMomentum": Combination(directors, solvers.EnergyMomentum(), True),
    "NullSpace, Variational": Combination(rj.NullSpace, solvers.Variational(), True),
    "NullSpace, SimoWong": Combination(rj.NullSpace, solvers.SimoWong(), True),
    "NullSpace, MuntheKaas(Dopri8)": Combination(
        rj.NullSpace, solvers.MuntheKaas(diffrax.Dopri8())
    ),
    "Absolute, index 3, GeneralizedAlpha": Combination(
        absolute(3), solvers.GeneralizedAlpha(), True
    ),
}


def compiled_run(problem: problems.Problem, combination: Combination) -> Callable[[Any], Any]:
    """Return a compiled run as a function of the tolerance or of the fixed step.

    **Raises:** `ValueError` if the combination does not support the problem; the rest at the first
    call.
    """
    model = combination.model(problem.system)

    @jax.jit
    def run(setting):
        steps = {"dt": setting} if combination.fixed else {"rtol": setting, "atol": setting}
        solution = rj.simulate(
            model, problem.state0, problem.t1, solver=combination.solver, max_steps=MAX_STEPS,
            throw=False, **steps,
        )  # fmt: skip
        ok = solution.result == rj.RESULTS.successful
        return solution.states, ok, solution.stats

    return run


def scaled_error(states: rj.State, reference: rj.State) -> float:
    """Return the largest error of rotation, rates and positions, relative to the largest ones."""
    rotation, rate = errors_against(states, reference)
    position = jnp.max(jnp.abs(states.position - reference.position))
    scales = (jnp.max(jnp.abs(x)) for x in (reference.angular_velocity, reference.position))
    parts = (e / jnp.where(s == 0, 1.0, s) for e, s in zip((rate, position), scales, strict=True))
    return float(jnp.max(jnp.stack([rotation, *parts])))


class Measured(NamedTuple):
    """A row without times, and the compiled run to be timed."""

    row: dict[str, Any]
    run: Callable[[], Any]

    def take_turn(self) -> None:
        """Run as often as the row says."""
        for _ in range(self.row["runs_per_turn"]):
            jax.block_until_ready(self.run())

    def summarise(self, turns: list[tuple[float, float]]) -> dict[str, float]:
        """Return the medians per run of wall and processor times of turns."""
        count = self.row["runs_per_turn"]
        return common.summary([(wall / count, used / count) for wall, used in turns])


def runs_of(
    problem: problems.Problem, combination: Combination, reference: rj.State, smoke: bool
) -> list[Measured]:
    """Return the runs of a combination, from the largest tolerance or step to the smallest.

    **Raises:** `ValueError` if the combination does not support the problem.
    """
    run = compiled_run(problem, combination)
    settings = STEP_COUNTS if combination.fixed else TOLERANCES
    out = []
    for setting in settings[:2] if smoke else settings:
        argument = jnp.asarray(problem.t1 / setting if combination.fixed else setting)
        call = functools.partial(run, argument)
        states, ok, stats = jax.block_until_ready(call())
        begin = time.process_time()
        jax.block_until_ready(call())
        seconds = time.process_time() - begin
        name = "steps" if combination.fixed else "tolerance"
        row = {
            name: setting,
            "successful": bool(ok),
            "error": scaled_error(states, reference) if ok else None,
            "num_steps": int(stats["num_steps"]),
            "num_rhs": int(stats["num_rhs"]),
            "backend": str(stats["backend"]),
            "runs_per_turn": math.ceil(max(1.0, min(100.0, SHORTEST_TURN / seconds))),
        }
        out.append(Measured(row, call))
        if seconds > LONGEST_RUN:
            break
    return out


def rows_of(case: str, names: tuple[str, ...], smoke: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a problem; a combination that does not support it has a row that says
    why.
    """
    problem = PROBLEMS[case]()
    reference = problem.reference([problem.t1])
    shared = {
        "case": case, "dtype": "float64", "bodies": problem.state0.num_bodies,
        "reference": problem.known,
    }  # fmt: skip
    rows, timed = [], []
    for name in names:
        begin = time.process_time()
        try:
            runs = runs_of(problem, COMBINATIONS[name], reference, smoke)
        except ValueError as error:
            rows.append({**shared, "combination": name, "unsupported": str(error)})
            runs = []
        for run in runs:
            row = {**shared, "combination": name, **run.row}
            rows.append(row)
            timed.append((row, run))
        if not smoke:
            errors = " ".join(f"{r.row['error'] or float('nan'):.0e}" for r in runs)
            print(f"{case:26}{name:38}{time.process_time() - begin:6.1f} s  {errors}", flush=True)
    turns = {str(i): run.take_turn for i, (_, run) in enumerate(timed)}
    times = common.time_in_turn(turns, 1 if smoke else REPEATS)
    for (row, run), found in zip(timed, times.values(), strict=True):
        row |= run.summarise(found)
    return rows


if __name__ == "__main__":
    options = common.arguments(__doc__)
    # Compile times are not measured, so that the cache of compiled kernels stays on.
    jax.config.update("jax_enable_x64", True)
    if options.smoke:
        common.write("leaderboard", rows_of("heavy_top", ("NullSpace, Dopri8",), True), True)
    else:
        rows = []
        for case in PROBLEMS:
            rows += rows_of(case, tuple(COMBINATIONS))
            common.write("leaderboard", rows, False)
