"""Sherif's forms of the equations in Euler parameters against each other, with multipliers.

Example A over 0.1 s and a driven, damped body over 1 s, at 1e-11 and without projection: every form
with the constraint on accelerations, velocities and positions (index 1, 2, 3; one less without a
multiplier) by Radau5 and BDF. Errors at the end are against `Dopri8` at 1e-13 in null-space
coordinates. Errors of multipliers are against Sherif's closed forms at the same unknowns, relative
to the largest multiplier of all forms.
"""

import functools
from typing import Any, get_args

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems
from rigidjax.formulations.euler_parameters import Form

TOLERANCE = 1e-11
FORMS = get_args(Form)
SOLVERS = {"Radau5": rj.solvers.Radau5, "BDF": rj.solvers.BDF}


def driven_body() -> tuple[rj.System, rj.State]:
    """Return a body under a periodic force beside its centre of mass, with linear drag."""
    force = rj.FourierSeries(2.0, jnp.array([[4.0, -2.0, 3.0]]), jnp.array([[1.0, 3.0, -2.0]]))
    body = rj.Body("body", 2.0, ((3.0, 0.3, -0.2), (0.3, 2.5, 0.4), (-0.2, 0.4, 2.2)))
    forces = (
        rj.PointForce("body", jnp.array([0.3, -0.2, 0.5]), force),
        rj.Drag("body", linear=0.3, angular_linear=jnp.array([0.2, 0.3, 0.1])),
    )
    state = rj.State([[0.0, 0, 0]], [[0.8, 0.2, -0.4, 0.4]], [[0.1, 0, 0]], [[1.0, -2.0, 3.0]])
    return rj.System(body, forces=forces), state


def cases() -> dict[str, tuple[Any, rj.State, float]]:
    """Return system, initial state and end time (s) of each case."""
    top = problems.heavy_top()
    return {"driven and damped": (*driven_body(), 1.0), "Example A": (top.system, top.state0, 0.1)}


def largest_multiplier(system, states: rj.State, ts) -> float:
    """Return the largest multiplier of all forms along a motion."""
    values = []
    for form in FORMS:
        model = rj.EulerParameters(system, form)
        lam = jax.vmap(lambda t, s, m=model: m.multipliers(t, m.pack(s, None, t)))(ts, states)
        values += [float(jnp.max(jnp.abs(lam)))] if lam.size else []
    return max(values)


@functools.cache
def reference(case: str) -> tuple[rj.State, float]:
    """Return the state at the end of a case, and the largest multiplier of all forms along the
    motion.
    """
    system, state0, t1 = cases()[case]
    run = rj.simulate(
        rj.NullSpace(system), state0, t1, ts=np.linspace(0.0, t1, 21), rtol=1e-13, atol=1e-13
    )
    truth = jax.tree.map(lambda leaf: leaf[-1:], run.states)
    return truth, largest_multiplier(system, run.states, run.ts)


def measure(case: str, form: Form, index: int, solver: str, tolerance: float) -> dict[str, Any]:
    """Return one row."""
    (system, state0, t1), (truth, scale) = cases()[case], reference(case)
    model, closed = rj.EulerParameters(system, form, index), rj.EulerParameters(system, form)
    solution = rj.simulate(
        model, state0, t1, solver=SOLVERS[solver](), rtol=tolerance, atol=tolerance,
        projection=False, saveat=diffrax.SaveAt(steps=True), max_steps=8000,
    )  # fmt: skip
    taken = np.isfinite(solution.ts)
    ts, ys = jnp.asarray(solution.ts[taken]), jnp.asarray(solution.ys[taken])
    lam = jax.vmap(model.multipliers)(ts, ys)
    exact = jax.vmap(closed.multipliers)(ts, ys[:, : model.layout.size])
    off = np.max(np.abs(lam - exact), axis=1) / scale if lam.size else np.zeros(len(ts))
    end = jax.tree.map(lambda leaf: leaf[None], model.decode(ts[-1], ys[-1]))
    rotation, rate = common.errors(end, truth)
    position, velocity = jax.vmap(model.drift)(ts, ys)
    every = max(1, len(ts) // 60)
    return {
        "case": case,
        "form": form,
        "index": index,
        "solver": solver,
        "tolerance": tolerance,
        "dtype": str(ys.dtype),
        "num_steps": int(solution.stats["num_steps"]),
        "num_rhs": int(solution.stats["num_rhs"]),
        "error_rotation": rotation,
        "error_rate": rate,
        "position_drift": float(jnp.max(position)),
        "velocity_drift": float(jnp.max(velocity)),
        "multiplier_error_end": float(off[-1]),
        "multiplier_error": float(np.max(off[1:])),
        "largest_multiplier": scale,
        "ts": [round(float(t), 5) for t in ts[::every]],
        "multipliers": [float(f"{x:.5g}") for x in lam[::every, 0]] if lam.size else [],
    }


def rows_of(case: str, tolerance: float, forms=FORMS, solvers=tuple(SOLVERS), indices=(1, 2, 3)):
    """Yield the rows of one case."""
    for solver in solvers:
        for form in forms:
            for index in indices:
                row = measure(case, form, index, solver, tolerance)
                print({k: v for k, v in row.items() if not isinstance(v, list)}, flush=True)
                yield row


if __name__ == "__main__":
    options = common.arguments(__doc__ or "")
    common.double_precision()
    rows: list[dict[str, Any]] = []
    if options.smoke:
        rows += rows_of("driven and damped", 1e-6, ("virtual-work",), ("Radau5",), (2,))
        common.write("sherif", rows, True)
    else:
        for case in cases():
            for row in rows_of(case, TOLERANCE):
                rows.append(row)
                common.write("sherif", rows, False)
