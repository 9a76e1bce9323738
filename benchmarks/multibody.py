"""Multibody benchmarks at their full length: errors, energy, drift, work.

Null-space coordinates (quaternions) with projection after every step. Errors are the largest over
the run at the times of the reference: positions, m. The change of the energy is the largest at the
steps, relative to the range of the potential energy. Reference histories: `tests/problems/data`.
"""

import pathlib
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "problems" / "data"


def history(name: str) -> np.ndarray:
    return np.genfromtxt(DATA / f"{name}.csv", delimiter=",", names=True)


def run(problem, t1, ts, tolerance, solver, steps: bool, repeats: int):
    """Return a compiled run, with states at `ts` and energies at the steps."""
    model = rj.NullSpace(problem.system)

    @jax.jit
    def at_times(state0):
        return rj.simulate(
            model, state0, t1, ts=ts, solver=solver, rtol=tolerance, atol=tolerance,
            max_steps=1_000_000,
        )  # fmt: skip

    @jax.jit
    def at_steps(state0):
        sol = rj.simulate(
            model, state0, t1, saveat=diffrax.SaveAt(t0=True, steps=True), solver=solver,
            rtol=tolerance, atol=tolerance, max_steps=8_000,
        )  # fmt: skip
        reached = jnp.isfinite(sol.ts)
        energy = jnp.where(reached, sol.energy, sol.energy[0])
        return jnp.max(jnp.abs(energy - energy[0]))

    sol = at_times(problem.state0)
    seconds = min(common.seconds(lambda: at_times(problem.state0)) for _ in range(repeats))
    # The steps are too many to be stored, so energies are saved at the times of the reference.
    energy = np.asarray(sol.energy)
    change = float(at_steps(problem.state0) if steps else np.max(np.abs(energy - energy[0])))
    return sol, seconds, change


def point(states, body, local):
    R = jax.vmap(rj.Quaternion().to_matrix)(states.orientation[:, body])
    return states.position[:, body] + R @ jnp.asarray(local)


def row(
    label, problem, t1, ts, tolerance, error, solver=None, steps=True, repeats=3
) -> dict[str, Any]:
    sol, seconds, change = run(problem, t1, jnp.asarray(ts), tolerance, solver, steps, repeats)
    states = sol.states
    masses = np.array([float(body.mass) for body in problem.system.bodies])
    gravity = [f for f in problem.system.forces if isinstance(f, rj.Gravity)]
    pull = np.asarray(gravity[0].vector) if gravity else np.zeros(3)
    weight = -np.asarray(states.position) @ pull @ masses
    span = float(np.ptp(weight)) if gravity else float("nan")
    out = {
        "case": label,
        "t1": float(t1),
        "tolerance": tolerance,
        "solver": type(solver or diffrax.Dopri8()).__name__,
        "unknowns": sol.model.num_unknowns,
        "error": float(error(states)),
        "energy_change": change,
        "energy_range": span,
        "relative_energy_change": change / span if span else float("nan"),
        "position_drift": float(jnp.max(sol.position_drift)),
        "velocity_drift": float(jnp.max(sol.velocity_drift)),
        "num_steps": int(sol.stats["num_steps"]),
        "num_rejected_steps": int(sol.stats["num_rejected_steps"]),
        "run_seconds": seconds,
    }
    out = {k: None if v != v else v for k, v in out.items()}
    print({k: v for k, v in out.items() if k != "solver"}, flush=True)
    return out


def against_solution(problem, ts):
    true = problem.reference(ts)
    return lambda states: jnp.max(jnp.abs(states.position - true.position))


def a01(t1):
    problem = problems.simple_pendulum(t1)
    ts = np.linspace(0, t1, 4001)
    error = against_solution(problem, ts)
    return [row("A01", problem, t1, ts, 1e-12, error, steps=False)]


def a02(n, t1, tolerances=(1e-9,)):
    problem = problems.n_four_bar(n)
    ts = np.linspace(0, t1, 401)
    error = against_solution(problem, ts)
    repeats = 3 if n < 10 else 1
    return [
        row(f"A02, {n}", problem, t1, ts, tolerance, error, repeats=repeats)
        for tolerance in tolerances
    ]


def a03():
    table = history("A03_F")

    def error(states):
        pin = point(states, 0, (0.007 - 0.00092, 0.0, 0.0))
        return max(
            np.max(np.abs(pin[:, 0] - table["x_m"])), np.max(np.abs(pin[:, 1] - table["y_m"]))
        )

    return [row("A03", problems.andrews(), 0.05, table["time_s"], 1e-10, error, steps=False)]


def a04(tolerances=(1e-9, 1e-10)):
    table = history("A04_P3")
    true = np.stack([table[f"{x}_m"] for x in "xyz"], axis=1)

    def error(states):
        return np.max(np.abs(point(states, 1, (0.5, 0.0, 0.0)) - true))

    return [
        row("A04", problems.bricard(), 10.0, table["time_s"], tolerance, error)
        for tolerance in tolerances
    ]


def a05(t1):
    table = history("A05_s")
    table = table[table["time_s"] <= t1 + 1e-9]

    def error(states):
        return np.max(np.abs(states.position[:, 1, 2] - table["s_m"]))

    problem = problems.flyball_governor()
    solver = diffrax.Kvaerno5()
    return [row("A05", problem, t1, table["time_s"], 1e-8, error, solver, steps=False)]


def main() -> None:
    args = common.arguments(__doc__ or "")
    common.double_precision()
    if args.smoke:
        rows = a02(1, 0.5)
    else:
        rows = [*a01(2000.0), *a02(2, 20.0), *a02(40, 10.0), *a03(), *a04(), *a05(10.0)]
    common.write("multibody", rows, args.smoke)


if __name__ == "__main__":
    main()
