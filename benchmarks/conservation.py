"""Conserving schemes: Betsch-Siebert, Figures 1, 3, 4, 5, and Geradin-Rixen, Figures 6 and 7.

There is one row per curve. Errors are against closed forms. Geradin and Rixen state neither step
nor end time; 1 ms and 2 s are used here, with their own scheme and with the energy-conserving
variant.
"""

from typing import Any

import _common as common
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems
from rigidjax.solvers import EnergyMidpoint, EnergyMomentum, SimoWong, Variational

matrices = jax.vmap(rj.Quaternion().to_matrix)
SCHEMES = {
    "QUAT.EM": (rj.NullSpace, rj.Quaternion(), EnergyMomentum()),
    "DIR.EM": (rj.Absolute, rj.Directors(), EnergyMomentum()),
    "directors, null space": (rj.NullSpace, rj.Directors(), EnergyMomentum()),
    "QUAT.VI": (rj.NullSpace, rj.Quaternion(), Variational()),
    "ALGO.C1": (rj.NullSpace, rj.Quaternion(), SimoWong()),
}
# Steps of the figures in s, and step counts n of the convergence plots (1 s / n).
COUNTS = (20, 40, 80, 160, 320, 640, 1280, 2560)
TOP_COUNTS = (100, 143, 200, 400, 800, 1600, 3200)


def run(model, state0, dt: float, count: int, saved: int, solver):
    """Return the states at every `count / saved`-th step."""
    ts = dt * (count // saved) * np.arange(saved + 1)
    return rj.simulate(
        model, state0, count * dt, ts=ts, solver=solver, dt=dt, max_steps=10_000, throw=False
    )


def round_list(values) -> list[float]:
    """Return values with the digits that a figure shows."""
    return [float(f"{x:.6g}") for x in np.asarray(values)]


def invariants(figure: str, problem, dt: float, count: int, component: int | None):
    """Return rows of energy and angular momentum of QUAT.EM over time."""
    sol = run(rj.NullSpace(problem.system), problem.state0, dt, count, count, EnergyMomentum())
    momentum = np.asarray(sol.angular_momentum)
    if component is not None:
        momentum = momentum[:, component : component + 1]
    change = np.linalg.norm(momentum - momentum[0], axis=1) / np.linalg.norm(momentum[0])
    energy = np.asarray(sol.energy)
    return {
        "figure": figure, "case": problem.name, "scheme": "QUAT.EM", "dt": dt,
        "ts": round_list(sol.ts), "energy": round_list(energy), "momentum": momentum.T.tolist(),
        "energy_change": float(np.max(np.abs(energy / energy[0] - 1))),
        "momentum_change": float(np.max(change)),
    }  # fmt: skip


def convergence(figure: str, problem, scheme: str, counts):
    """Return rows of the error at 1 s against the step: of the attitude, or of the axis of the
    top.
    """
    make, rotation, solver = SCHEMES[scheme]
    model = make(problem.system, rotation)
    true = np.asarray(matrices(problem.reference([1.0]).orientation[:, 0]))[0]
    errors, iterations = [], []
    for n in counts:
        sol = run(model, problem.state0, 1 / n, n, 1, solver)
        R = np.asarray(matrices(sol.states.orientation[:, 0]))[-1]
        if problem.name == "free_body":
            errors.append(float(np.linalg.norm(true @ R.T - np.eye(3))))
        else:
            errors.append(float(np.linalg.norm(R[:, 2] - true[:, 2])))
        iterations.append(int(sol.stats["num_rhs"]) / int(sol.stats["num_steps"]))
    done = [n for n, e in zip(counts, errors, strict=True) if np.isfinite(e)]
    return {
        "figure": figure, "case": problem.name, "scheme": scheme,
        "dts": [1 / n for n in counts], "errors": errors, "iterations": iterations,
        "largest_dt": 1 / min(done),
        "slope": float(np.log2(errors[-3] / errors[-1]) / np.log2(counts[-1] / counts[-3])),
    }  # fmt: skip


def center(figure: str, scheme: str, dt: float):
    """Return rows of the centre of mass of the steady top over 1 s, and of the exact one."""
    problem = problems.steady_top()
    make, rotation, solver = SCHEMES[scheme]
    count = round(1.0 / dt)
    sol = run(make(problem.system, rotation), problem.state0, dt, count, count, solver)
    axis = 0.075 * np.asarray(matrices(sol.states.orientation[:, 0]))[:, :, 2]
    true = problem.reference(sol.ts).orientation[:, 0]
    exact = 0.075 * np.asarray(matrices(true))[:, :, 2]
    return {
        "figure": figure, "case": problem.name, "scheme": scheme, "dt": dt,
        "ts": round_list(sol.ts), "x": round_list(axis[:, 0]), "z": round_list(axis[:, 2]),
        "exact_x": round_list(exact[:, 0]), "exact_z": round_list(exact[:, 2]),
        "error": float(np.max(np.linalg.norm(axis - exact, axis=1)) / 0.075),
    }  # fmt: skip


def paper_top(case: int):
    """Return Geradin and Rixen's top on a ball joint, whose inertia is not physical."""
    theta, precession = np.pi / 9, {1: 0.0, 2: -10.0}[case]
    p = np.array([np.cos(theta / 2), np.sin(theta / 2), 0.0, 0.0])
    R = np.asarray(rj.Quaternion().to_matrix(jnp.asarray(p)))
    omega = np.array([0.0, precession * np.sin(theta), 50.0 + precession * np.cos(theta)])
    arm = np.array([0.0, 0.0, 1.3])
    body = rj.Body(
        "top", 5.0, (0.8, 0.8, 1.8), R @ arm, p, R @ np.cross(omega, arm), omega, physical=False
    )
    joint = rj.Spherical("ground", "top", (0.0, 0.0, 0.0))
    return rj.System(body, [joint], rj.Gravity((0.0, 0.0, -9.81)))


def panels(case: int, mean: str, dt: float, t1: float, points: int) -> dict[str, Any]:
    """Return the data of the eight panels of Figure 6 (case 1) or 7 (case 2)."""
    system = paper_top(case)
    model, count = rj.Absolute(system), round(t1 / dt)
    saved = min(points, count)
    solver = EnergyMidpoint(mean=mean)  # pyright: ignore[reportArgumentType]
    sol = run(model, system.reference_state(), dt, count, saved, solver)
    R = np.asarray(matrices(sol.states.orientation[:, 0]))
    omega = np.asarray(sol.states.angular_velocity[:, 0])
    theta, spin = np.arccos(R[:, 2, 2]), np.unwrap(np.arctan2(R[:, 2, 0], R[:, 2, 1]))
    # Angle of the nodal line, (345).
    theta_dot = np.cos(spin) * omega[:, 0] - np.sin(spin) * omega[:, 1]
    x = np.asarray(sol.states.position[:, 0])
    drift = x - 1.3 * R[:, :, 2]
    energy = np.asarray(sol.energy)
    return {
        "figure": f"GR {5 + case}", "case": f"symmetric_top, case {case}",
        "scheme": f"mid-point, mean of the {mean.replace('-', ' ')}", "dt": dt,
        "ts": round_list(sol.ts), "x": [round_list(row) for row in x.T],
        "theta": round_list(theta),
        "phi": round_list(spin), "drift": round_list(np.max(np.abs(drift), axis=1)),
        "theta_dot": round_list(theta_dot), "energy_change": round_list(energy / energy[0] - 1),
        "omega_1": round_list(omega[:, 0]),
        "largest_energy_change": float(np.max(np.abs(energy / energy[0] - 1))),
        "largest_drift": float(np.max(np.abs(drift))),
        "nutation": [float(theta.min()), float(theta.max())],
    }  # fmt: skip


def rows(smoke: bool) -> list[dict[str, Any]]:
    """Return the rows of all curves."""
    free, steady = problems.free_body(), problems.steady_top()
    schemes = ["QUAT.EM"] if smoke else list(SCHEMES)
    out = [invariants("BS 1", free, 0.05, 5 if smoke else 400, None)]
    out += [convergence("BS 1", free, s, COUNTS[1:4] if smoke else COUNTS) for s in schemes]
    out.append(invariants("BS 3", steady, 0.01, 5 if smoke else 200, 2))
    out += [
        convergence("BS 3", steady, s, (200, 400, 800) if smoke else TOP_COUNTS) for s in schemes
    ]
    if not smoke:
        out += [center("BS 4", scheme, 0.01) for scheme in ("QUAT.EM", "DIR.EM")]
        out += [center("BS 5", scheme, 0.007) for scheme in ("QUAT.VI", "ALGO.C1")]
    for case in (1,) if smoke else (1, 2):
        for mean in ("angular-momentum", "angular-velocity"):
            out.append(panels(case, mean, 1e-3, 0.01 if smoke else 2.0, 5 if smoke else 500))
    return out


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    found = rows(options.smoke)
    for row in found:
        print(
            {k: v for k, v in row.items() if not isinstance(v, list) or k == "nutation"}, flush=True
        )
    common.write("conservation", found, options.smoke)
