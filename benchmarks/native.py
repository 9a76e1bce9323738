"""Native kernels against XLA: each run by both backends, in turn in one process.

Runs of a heavy top (2 s, Dopri5 at 1e-9, projected), alone and 1,024 at once: values, one tangent,
six tangents, a gradient; then the top with other solvers. Run it on one core with `taskset -c 0`.
"""

from typing import Any

import _common as common
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

BATCH = 1_024
T1 = 2.0
TIGHT = dict(solver=diffrax.Dopri5(), rtol=1e-9, atol=1e-9)
SOLVERS: dict[str, dict[str, Any]] = {
    "Dopri8, 1e-8": {},
    "Dopri5, 1e-8, 21 times": dict(solver=diffrax.Dopri5(), ts=jnp.linspace(0.0, T1, 21)),
    "BDF, 1e-6": dict(solver=rj.solvers.BDF(), rtol=1e-6, atol=1e-6),
    "Odex, 1e-8": dict(solver=rj.solvers.Odex()),
    "EnergyMomentum, 10 ms": dict(solver=rj.solvers.EnergyMomentum(), dt=0.01),
    "MuntheKaas(Dopri5), 1e-8": dict(solver=rj.solvers.MuntheKaas(diffrax.Dopri5())),
}


def potential(R):
    return 5.0 * R[2, 2]


def members(size: int):
    """Return principal moments and body rates of each member."""
    rng = np.random.default_rng(20260101)
    moments = np.array([0.5, 0.5, 0.25]) * (1.0 + 0.1 * rng.random((size, 3)))
    rates = np.array([0.0, 0.0, 20.0]) * (1.0 + 0.2 * rng.random((size, 1)))
    return jnp.asarray(moments), jnp.asarray(rates)


def end(backend: str, **options: Any):
    """Return final unknowns and number of steps, for principal moments and body rates."""
    model = rj.NullSpace(rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25]), potential=potential))
    orientation = jnp.array([[np.cos(np.pi / 6), np.sin(np.pi / 6), 0.0, 0.0]])

    def run(moments, rates):
        here = eqx.tree_at(lambda m: m.system.inertia, model, moments)
        state = rj.State(orientation=orientation, angular_velocity=rates[None])
        sol = rj.simulate(here, state, T1, backend=backend, throw=False, **options)
        return sol.ys[-1], sol.stats["num_steps"]

    return run


def programs(backend: str):
    """Return the measured functions of a run, by name."""
    run = end(backend, **TIGHT)
    last = lambda moments, rates: run(moments, rates)[0]  # noqa: E731
    return {
        "run": run,
        "one tangent": lambda m, w: jax.jvp(lambda x: last(x, w), (m,), (m,)),
        "six tangents": jax.jacfwd(last, argnums=(0, 1)),
        "gradient": jax.grad(lambda m, w: last(m, w)[0], argnums=(0, 1)),
    }


def row(case: str, batch: int, forms: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Measure both backends in turn."""
    args = members(batch) if batch > 1 else tuple(x[0] for x in members(1))
    compiled = {
        name: jax.jit(jax.vmap(form) if batch > 1 else form) for name, form in forms.items()
    }
    first = {name: common.seconds(lambda f=f: f(*args)) for name, f in compiled.items()}
    calls = {name: (lambda f=f: f(*args)) for name, f in compiled.items()}
    found = {k: common.summary(v) for k, v in common.time_in_turn(calls, repeats).items()}
    values = {name: jax.tree.leaves(call())[0] for name, call in calls.items()}
    return {
        "case": case,
        "batch": batch,
        **{f"{name}_first_seconds": first[name] for name in forms},
        **{f"{name}_run_seconds": found[name]["run_seconds_min"] for name in forms},
        "times_faster": found["xla"]["run_seconds_min"] / found["native"]["run_seconds_min"],
        "difference": float(jnp.max(jnp.abs(values["xla"] - values["native"]))),
    }


def rows(smoke: bool) -> list[dict[str, Any]]:
    repeats = 3 if smoke else 20
    both = {backend: programs(backend) for backend in ("xla", "native")}
    out = []
    for batch in (1,) if smoke else (1, BATCH):
        for name in ("run",) if smoke else both["xla"]:
            forms = {backend: found[name] for backend, found in both.items()}
            out.append(row(f"top, Dopri5 at 1e-9: {name}", batch, forms, repeats))
            steps = jnp.sum(jax.vmap(both["native"]["run"])(*members(batch))[1])
            for backend in ("xla", "native"):
                out[-1][f"{backend}_ns_per_step"] = (
                    out[-1][f"{backend}_run_seconds"] / float(steps) * 1e9
                )
            _say(out[-1])
        for name, options in () if smoke else SOLVERS.items():
            forms = {backend: end(backend, **options) for backend in ("xla", "native")}
            out.append(row(f"top, {name}", batch, forms, repeats))
            _say(out[-1])
    return out


def _say(found: dict[str, Any]) -> None:
    print(
        f"{found['case']}, {found['batch']}: xla {found['xla_run_seconds']:.3g} s, native "
        f"{found['native_run_seconds']:.3g} s, {found['times_faster']:.1f} times faster; first "
        f"call {found['xla_first_seconds']:.1f} and {found['native_first_seconds']:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    common.write("native", rows(options.smoke), options.smoke)
