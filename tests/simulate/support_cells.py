"""Features of every solver, tried on the heavy top.

`JAX_ENABLE_X64=1 python tests/simulate/support_cells.py` writes the table of `docs/support.md`. An
unsupported feature raises an error that says so; any other outcome is a mistake.
"""

import pathlib
import re
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "support.md"
TOP = rj.problems.heavy_top()
T1, TOLERANCE = 0.02, 1e-6
SOLVERS: dict[str, Any] = {
    "Dopri5": diffrax.Dopri5(),
    "Kvaerno5": diffrax.Kvaerno5(),
    "Radau5": rj.solvers.Radau5(),
    "BDF": rj.solvers.BDF(),
    "Odex": rj.solvers.Odex(),
    "Seulex": rj.solvers.Seulex(),
    "EnergyMomentum": rj.solvers.EnergyMomentum(),
    "Variational": rj.solvers.Variational(),
    "MuntheKaas": rj.solvers.MuntheKaas(),
    "GeneralizedAlpha": rj.solvers.GeneralizedAlpha(),
}
# Steps of solvers with fixed steps, s.
STEPS = dict.fromkeys(("EnergyMomentum", "Variational", "GeneralizedAlpha"), 1e-4)
# The axis of a rod, its third, along x.
TURNED = (0.5**0.5, 0.0, 0.5**0.5, 0.0)


def run(solver: str, spin: Any = 1.0, **options: Any) -> rj.Solution:
    """The top with its rates multiplied."""
    state = TOP.state0
    state = eqx.tree_at(lambda s: s.angular_velocity, state, spin * state.angular_velocity)
    settings = dict(solver=SOLVERS[solver])
    if not {"rtol", "dt", "stepsize_controller"} & set(options):
        settings |= steps_of(solver)
    return rj.simulate(rj.NullSpace(TOP.system), state, T1, **{**settings, **options})


def steps_of(solver: str) -> dict[str, float]:
    """Steps of a length that the error chooses, or of a fixed one where there is no estimate."""
    return {"dt": STEPS[solver]} if solver in STEPS else {"rtol": TOLERANCE, "atol": TOLERANCE}


def end(solver: str, spin: Any = 1.0, **options: Any) -> jax.Array:
    """Quaternion and rates at the end, (7,)."""
    states = run(solver, spin, **options).states
    return jnp.concatenate([states.orientation[-1, 0], states.angular_velocity[-1, 0]])


def close(found: Any, expected: Any, tolerance: float = 100 * TOLERANCE) -> None:
    """Raise `AssertionError` unless numbers agree relative to the largest."""
    assert np.max(np.abs(found - expected)) <= tolerance * np.max(np.abs(expected)), (
        found,
        expected,
    )


def adaptive(solver: str) -> None:
    """Steps of a length that the error chooses."""
    counts = [int(run(solver, rtol=tol, atol=tol).stats["num_steps"]) for tol in (1e-3, 1e-11)]
    assert counts[0] < counts[1]


def times(solver: str) -> None:
    """States at times within steps."""
    states = run(solver, ts=jnp.array([0.3 * T1, T1])).states
    middle = run("Dopri5", ts=jnp.array([0.3 * T1]), rtol=1e-10, atol=1e-10).states
    close(states.angular_velocity[0], middle.angular_velocity[0])
    close(states.angular_velocity[1, 0], end(solver)[4:])


def dense(solver: str) -> None:
    """The state at any time, after the run."""
    found = run(solver, saveat=diffrax.SaveAt(dense=True)).evaluate(jnp.asarray(0.3 * T1))
    middle = run("Dopri5", ts=jnp.array([0.3 * T1]), rtol=1e-10, atol=1e-10).states
    close(found.angular_velocity, middle.angular_velocity[0])


def event(solver: str) -> None:
    """An end where a function of the motion is zero."""
    import optimistix as optx

    condition = lambda t, y, args, **kwargs: t - 0.37 * T1  # noqa: E731
    root = optx.Newton(1e-8, 1e-8)
    solution = run(solver, event=diffrax.Event(condition, root))
    assert solution.result == rj.RESULTS.event_occurred
    close(solution.ts[-1], 0.37 * T1, 1e-6)


def tangent(solver: str) -> None:
    """A derivative in forward mode, against a difference."""
    _, found = jax.jvp(lambda s: end(solver, s), (1.0,), (1.0,))
    step = 1e-4
    close(found, (end(solver, 1 + step) - end(solver, 1 - step)) / (2 * step), 1e-3)


def gradient(solver: str) -> None:
    """A derivative in reverse mode, against that in forward mode of the same sum."""
    found = jax.grad(lambda s: jnp.sum(end(solver, s)))(1.0)
    _, other = jax.jvp(lambda s: jnp.sum(end(solver, s)), (1.0,), (1.0,))
    close(found, other, 1e-4)


def batch(solver: str) -> None:
    """Several at once under `jax.vmap`."""
    spins = jnp.array([0.9, 1.0, 1.1])
    close(jax.vmap(lambda s: end(solver, s))(spins)[1], end(solver), 1e-6)


def native(solver: str) -> None:
    """As a native kernel on the CPU."""
    close(end(solver, backend="native"), end(solver, backend="xla"), 1e-6)


def joints(solver: str) -> None:
    """A rod on a hinge that falls from the side."""
    rod = rj.Body.rod("rod", 1.0, 0.02, mass=1.0, position=(0.5, 0, 0), orientation=TURNED)
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0))
    system = rj.System(rod, hinge, rj.Gravity((0.0, 0.0, -9.81)))
    rates = [
        rj.simulate(
            rj.NullSpace(system), system.reference_state(), T1, solver=SOLVERS[name],
            **steps_of(name),
        ).states.angular_velocity[-1, 0]
        for name in ("Dopri5", solver)
    ]  # fmt: skip
    close(rates[1], rates[0])


FEATURES: dict[str, tuple[str, Callable[[str], None]]] = {
    "adaptive": ("adaptive steps", adaptive),
    "times": ("`ts=`", times),
    "dense": ("dense output", dense),
    "event": ("events", event),
    "tangent": ("forward derivatives", tangent),
    "gradient": ("reverse derivatives", gradient),
    "joints": ("systems with joints", joints),
    "batch": ("`vmap`", batch),
    "native": ("native kernel", native),
}


def try_feature(solver: str, feature: str) -> tuple[str, str]:
    """Return `"yes"`, or `"no"` and the error message."""
    try:
        FEATURES[feature][1](solver)
    except (ValueError, NotImplementedError, TypeError) as error:
        return "no", str(error)
    return "yes", ""


def table(found: dict[tuple[str, str], str]) -> str:
    head = ["solver", *(title for title, _ in FEATURES.values())]
    rows = [[f"`{s}`", *(found[s, f] for f in FEATURES)] for s in SOLVERS]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    found = {}
    for solver in SOLVERS:
        for feature in FEATURES:
            found[solver, feature], why = try_feature(solver, feature)
            print(solver, feature, found[solver, feature], why[:300].replace("\n", " "), flush=True)
    marks = re.compile(r"(<!-- begin features -->\n).*?(<!-- end features -->)", re.DOTALL)
    text = PAGE.read_text("utf-8")
    PAGE.write_text(marks.sub(lambda m: f"{m[1]}{table(found)}\n{m[2]}", text), "utf-8")
