"""Speed of `simulate` against bare diffrax on Lang's Example A (Dopri5 at 1e-9, 10 s).

Ratios are of runs that take turns in one process. All opponents are jitted and have the same
solver, tolerances, step limit and initial states:

- `bare, components`: `diffrax.diffeqsolve` over a hand-written right-hand side, scalar by scalar;
- `bare, matrices`: the straightforward right-hand side, with R(p) and Q(p) as matrices, `jnp.cross`
  and products with the inverse inertia.
"""

import subprocess
import sys
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import problems

TOLERANCE = 1e-9
T1 = 10.0
MAX_STEPS = 100_000
BATCH = 1024


def components(t, y, args):
    """Evaluate the right-hand side of the heavy top: quaternion and body rates, scalar by
    scalar.
    """
    (i1, i2, i3), weight = args
    p0, p1, p2, p3, w1, w2, w3 = y[0], y[1], y[2], y[3], y[4], y[5], y[6]
    m1 = 2.0 * weight * (p2 * p3 + p0 * p1)
    m2 = -2.0 * weight * (p1 * p3 - p0 * p2)
    return jnp.stack(
        [
            0.5 * (-p1 * w1 - p2 * w2 - p3 * w3),
            0.5 * (p0 * w1 + p2 * w3 - p3 * w2),
            0.5 * (p0 * w2 + p3 * w1 - p1 * w3),
            0.5 * (p0 * w3 + p1 * w2 - p2 * w1),
            (m1 + (i2 - i3) * w2 * w3) / i1,
            (m2 + (i3 - i1) * w3 * w1) / i2,
            (i1 - i2) * w1 * w2 / i3,
        ]
    )


def matrices(t, y, args):
    """Evaluate the right-hand side in vectors and matrices."""
    inertia, weight = args
    p, omega = y[:4], y[4:]
    p0, pv = p[0], p[1:]
    skew = jnp.array([[0.0, -pv[2], pv[1]], [pv[2], 0.0, -pv[0]], [-pv[1], pv[0], 0.0]])
    R = (p0 * p0 - pv @ pv) * jnp.eye(3) + 2.0 * jnp.outer(pv, pv) + 2.0 * p0 * skew
    Q = jnp.block([[p0, -pv[None, :]], [pv[:, None], p0 * jnp.eye(3) + skew]])
    I = jnp.diag(inertia)
    # V = weight * R33: the force -weight e3 acts at d3.
    moment = jnp.cross(jnp.array([0.0, 0.0, 1.0]), R.T @ jnp.array([0.0, 0.0, -weight]))
    p_dot = 0.5 * Q @ jnp.concatenate([jnp.zeros(1), omega])
    omega_dot = jnp.diag(1.0 / inertia) @ (moment - jnp.cross(omega, I @ omega))
    return jnp.concatenate([p_dot, omega_dot])


def bare(field, adjoint=None):
    """Return final unknowns by `diffrax.diffeqsolve`, as a function of inertia and initial body
    rates.
    """
    state0 = problems.heavy_top().state0
    weight = problems.heavy_top().system.potential.weight_moment

    def run(inertia, omega0):
        y0 = jnp.concatenate([state0.orientation[0], omega0])
        args = (inertia, weight) if field is matrices else (tuple(inertia), weight)
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Dopri5(),
            0.0,
            T1,
            None,
            y0,
            args,
            stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
            max_steps=MAX_STEPS,
            **({} if adjoint is None else {"adjoint": adjoint}),
        ).ys[-1]

    return run


def simulate_run(projection):
    """Return final unknowns by `rj.simulate`, as a function of inertia and initial body rates."""

    def run(inertia, omega0):
        problem = problems.heavy_top()
        body = rj.FixedPointBody(inertia, problem.system.potential)
        return rj.simulate(
            rj.NullSpace(body),
            rj.State(orientation=problem.state0.orientation, angular_velocity=omega0),
            T1,
            solver=diffrax.Dopri5(),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            projection=projection,
            max_steps=MAX_STEPS,
        ).ys[-1]

    return run


RUNS = {
    "simulate": simulate_run(False),
    "simulate, projected": simulate_run(True),
    "bare, components": bare(components),
    "bare, matrices": bare(matrices),
}


def initial(batch: int) -> tuple[jax.Array, jax.Array]:
    """Return inertia and initial rates of one top, or of many whose rates differ a little."""
    inertia, omega = jnp.array([50.0, 42.0, 10.0]), jnp.array([0.0, 0.0, 20.0])
    if batch == 1:
        return inertia, omega
    spread = np.random.default_rng(20260101).uniform(-0.05, 0.05, (batch, 3))
    return inertia, omega + jnp.asarray(spread)


def batch_run(run, batch: int):
    """Return `run` over a batch of initial rates, not yet jitted."""
    return run if batch == 1 else jax.vmap(run, in_axes=(None, 0))


def scalar(run):
    """Return a scalar of the final state, summed over a batch, for gradients."""
    weights = jnp.array([1.0, -2.0, 0.5, 3.0, 0.1, -0.2, 0.3])
    return lambda *args: jnp.sum(run(*args) @ weights)


def forward_rows(batch: int, repeats: int, names=tuple(RUNS)) -> list[dict[str, Any]]:
    """Return runs of all opponents in turn, with ratios to the hand-written components."""
    args = initial(batch)
    jitted = {name: jax.jit(batch_run(RUNS[name], batch)) for name in names}
    compiles = 1 if repeats < 20 else 5
    compile_times = {
        name: common.compile_times(f, *args, repeats=compiles) for name, f in jitted.items()
    }
    times = common.time_in_turn({name: lambda f=f: f(*args) for name, f in jitted.items()}, repeats)
    reference = np.asarray(jitted["bare, components"](*args))
    base = common.summary(times["bare, components"])
    steps = _steps(batch)
    out = []
    for name, f in jitted.items():
        found = common.summary(times[name])
        out.append(
            {
                "case": "forward",
                "batch": batch,
                "run": name,
                "dtype": str(reference.dtype),
                "tolerance": TOLERANCE,
                **compile_times[name],
                **found,
                **common.ratios(found, base),
                "difference": float(np.max(np.abs(np.asarray(f(*args)) - reference))),
                "num_steps": steps,
            }
        )
    return out


def _steps(batch):
    """Return the steps of all tops, without projection."""
    problem = problems.heavy_top()
    inertia, omega0 = initial(batch)

    def count(omega0):
        return rj.simulate(
            rj.NullSpace(rj.FixedPointBody(inertia, problem.system.potential)),
            rj.State(orientation=problem.state0.orientation, angular_velocity=omega0),
            T1,
            solver=diffrax.Dopri5(),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            projection=False,
        ).stats["num_steps"]

    return int(jnp.sum(count(omega0) if batch == 1 else jax.jit(jax.vmap(count))(omega0)))


def derivative_rows(batch: int, repeats: int) -> list[dict[str, Any]]:
    """Return reverse and forward mode over the run itself, by inertia and initial rates."""
    args = initial(batch)
    out = []
    names = ["simulate", "simulate, projected"]
    if batch == 1:
        # Reverse mode of bare diffrax in a batch takes a minute per run.
        names.append("bare, components")
    for name in names:
        run = batch_run(RUNS[name], batch)
        value = scalar(run)
        tangents = tuple(jnp.ones_like(x) for x in args)
        modes = {"value": jax.jit(value), "reverse": jax.jit(jax.grad(value, argnums=(0, 1)))}
        if name != "bare, components":
            # diffrax's default adjoint has no forward mode.
            modes["forward, one direction"] = jax.jit(
                lambda *args, f=value, dx=tangents: jax.jvp(f, args, dx)[1]
            )
        else:
            mode_value = scalar(batch_run(bare(components, diffrax.ForwardMode()), batch))
            modes["forward, one direction"] = jax.jit(
                lambda *args, f=mode_value, dx=tangents: jax.jvp(f, args, dx)[1]
            )
        compile_times = {
            mode: common.compile_times(f, *args, repeats=1) for mode, f in modes.items()
        }
        times = common.time_in_turn(
            {mode: lambda f=f: f(*args) for mode, f in modes.items()}, repeats
        )
        base = common.summary(times["value"])
        for mode in modes:
            found = common.summary(times[mode])
            out.append(
                {
                    "case": "derivative",
                    "batch": batch,
                    "run": name,
                    "mode": mode,
                    "dtype": str(args[0].dtype),
                    "tolerance": TOLERANCE,
                    **compile_times[mode],
                    **found,
                    **common.ratios(found, base),
                }
            )
    return out


def call_rows(repeats: int) -> list[dict[str, Any]]:
    """Return the time of `simulate` called outside `jax.jit`, which includes its Python part."""
    problem = problems.heavy_top()
    model = rj.NullSpace(problem.system)

    def call():
        return rj.simulate(
            model, problem.state0, T1, solver=diffrax.Dopri5(), rtol=TOLERANCE, atol=TOLERANCE
        ).ys

    compile_time = common.compile_times(call)
    f, args = jax.jit(RUNS["simulate, projected"]), initial(1)
    times = common.time_in_turn({"call": call, "jitted": lambda: f(*args)}, repeats)
    found, base = common.summary(times["call"]), common.summary(times["jitted"])
    return [
        {
            "case": "call",
            "batch": 1,
            "run": "simulate, projected, not jitted",
            "dtype": "float64",
            "tolerance": TOLERANCE,
            **compile_time,
            **found,
            "overhead_seconds": found["run_seconds_min"] - base["run_seconds_min"],
        }
    ]


def import_rows(repeats: int) -> list[dict[str, Any]]:
    """Return the times of `import rigidjax` and `import diffrax`, in separate processes in turn."""
    times: dict[str, list[tuple[float, ...]]] = {"rigidjax": [], "diffrax": []}
    for _ in range(repeats + 1):
        for name, found in times.items():
            code = (
                "import time; t, c = time.perf_counter(), time.process_time(); "
                f"import {name}; print(time.perf_counter() - t, time.process_time() - c)"
            )
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=True,
                cwd=common.HERE.parent,
            )
            found.append(tuple(float(x) for x in done.stdout.split()))
    # The first import only fills the cache of the disk.
    found = {name: common.summary(values[1:]) for name, values in times.items()}
    return [
        {
            "case": "import",
            "run": name,
            **found[name],
            **common.ratios(found[name], found["diffrax"]),
        }
        for name in found
    ]


def show(rows: list[dict[str, Any]]) -> None:
    """Print a line per row."""
    for row in rows:
        name = ", ".join(str(row[key]) for key in ("case", "batch", "run", "mode") if key in row)
        numbers = ", ".join(
            f"{key} {row[key]:.4g}"
            for key in (
                "compile_seconds",
                "compile_cpu_seconds",
                "run_seconds_min",
                "run_seconds",
                "cpu_seconds",
                "ratio",
                "ratio_of_medians",
                "ratio_of_cpu_medians",
            )
            if key in row
        )
        print(f"{name}: {numbers}", flush=True)


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    if options.smoke:
        T1 = 0.5
        measured = forward_rows(1, 3, names=("simulate, projected", "bare, components"))
    else:
        measured = []
        for part in (
            lambda: forward_rows(1, 40),
            lambda: forward_rows(BATCH, 20),
            lambda: derivative_rows(1, 20),
            lambda: derivative_rows(BATCH, 3),
            lambda: call_rows(40),
            lambda: import_rows(11),
        ):
            found = part()
            show(found)
            measured += found
            common.write("speed", measured, options.smoke)
    if options.smoke:
        common.write("speed", measured, options.smoke)
