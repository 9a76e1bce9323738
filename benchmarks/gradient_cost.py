"""Cost of derivatives through implicit and extrapolation solvers: time and memory.

Times of a gradient and a tangent are in units of the run, all compiled and taken in turn on one
core: Lang's Example A for all solvers, a pendulum and a four-bar linkage as differential-algebraic
equations. Memory of reverse mode against the number of steps: buffers of the compiled gradient next
to those of the run.

    taskset -c 1 python benchmarks/gradient_cost.py
"""

import functools
from collections.abc import Callable
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.joints import Revolute, Spherical, Universal
from rigidjax.problems import four_bar, heavy_top
from rigidjax.solvers import BDF, Odex, Radau5, Seulex

SOLVERS: dict[str, Any] = {
    "Radau5": Radau5(),
    "BDF": BDF(),
    "Odex": Odex(),
    "Seulex": Seulex(),
    "Kvaerno5": diffrax.Kvaerno5(),
}
TOLERANCE = 1e-7
Value = Callable[[Any], Any]


def top_value(solver: str, t1: float = 2.0, **options) -> tuple[Value, Any]:
    """Return a scalar of the final state of Example A, for moments of inertia and initial rates,
    (6,).
    """
    problem = heavy_top()
    body: Any = problem.system
    parameters = jnp.concatenate([body.inertia, problem.state0.angular_velocity[0]])

    def value(parameters):
        moved = rj.FixedPointBody(parameters[:3], body.potential)
        start = rj.State(orientation=problem.state0.orientation, angular_velocity=parameters[3:])
        return end(rj.NullSpace(moved), start, t1, solver, options)

    return value, parameters


def end(model, start, t1, solver, options):
    """Return a scalar of the last state."""
    settings = dict(rtol=TOLERANCE, atol=TOLERANCE, max_steps=4096)
    y = rj.simulate(model, start, t1, solver=SOLVERS[solver], **{**settings, **options}).ys[-1]
    return jnp.sum(y * jnp.arange(1.0, y.size + 1.0))


def pendulum() -> tuple[rj.System, rj.State]:
    """Return a body on a hinge, released from the horizontal."""
    bob = rj.Body("bob", 1.0, (0.02, 0.03, 0.04), (1.0, 0.0, 0.0))
    hinge = Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    system = rj.System(bob, [hinge], rj.Gravity((0.0, -9.81, 0.0)))
    return system, system.reference_state()


def linkage() -> tuple[rj.System, rj.State]:
    """Return the four-bar linkage of `rigidjax.problems` with thick links.

    A spherical and a universal joint avoid redundant constraints.
    """
    problem = four_bar()
    bodies = [
        rj.Body(b.name, b.mass, jnp.maximum(b.inertia, 1e-3), b.position, b.orientation)
        for b in problem.system.bodies
    ]
    first, second, third, last = problem.system.joints
    knee = np.asarray(third.point)
    along = knee - np.asarray(second.point)
    across = np.array([-along[1], along[0], 0.0])
    z = (0.0, 0.0, 1.0)
    joints = [
        Revolute("ground", "crank", first.point, z),
        Spherical("crank", "coupler", second.point),
        Universal("rocker", "coupler", knee, z, across),
        Revolute("ground", "rocker", last.point, z),
    ]
    return rj.System(bodies, joints, rj.Gravity((0.0, -9.81, 0.0))), problem.state0


def dae_value(make, index: int, solver: str, t1: float, **options) -> tuple[Value, Any]:
    """Return a scalar of the final state of a system at an index, for masses and gravity."""
    system, start = make()
    masses = jnp.stack([jnp.asarray(body.mass) for body in system.bodies])

    def value(parameters):
        bodies = [
            rj.Body(
                b.name, mass, b.inertia, b.position, b.orientation, b.velocity, b.angular_velocity
            )
            for b, mass in zip(system.bodies, parameters[1:], strict=True)
        ]
        gravity = rj.Gravity(jnp.stack([0.0 * parameters[0], -parameters[0], 0.0 * parameters[0]]))
        moved = rj.System(bodies, system.joints, gravity)
        return end(rj.Absolute(moved, index=index), start, t1, solver, options)

    return value, jnp.concatenate([jnp.array([9.81]), masses])


CASES: dict[str, Callable[[], tuple[Value, Any]]] = {
    "Example A, Radau5": lambda: top_value("Radau5"),
    "Example A, BDF": lambda: top_value("BDF"),
    "Example A, Odex": lambda: top_value("Odex"),
    "Example A, Seulex": lambda: top_value("Seulex"),
    "Example A, Kvaerno5": lambda: top_value("Kvaerno5"),
    "pendulum, index 3, Radau5": lambda: dae_value(pendulum, 3, "Radau5", 1.0),
    "pendulum, index 2, BDF": lambda: dae_value(pendulum, 2, "BDF", 1.0),
    "four-bar, index 3, Radau5": lambda: dae_value(linkage, 3, "Radau5", 0.1),
}


def cost(case: str, repeats: int) -> dict[str, Any]:
    """Return one row: seconds of run, tangent and gradient, and their ratios."""
    value, parameters = CASES[case]()
    direction = jnp.linspace(0.5, 1.0, parameters.size)
    run, gradient = jax.jit(value), jax.jit(jax.grad(value))
    tangent = jax.jit(lambda x: jax.jvp(value, (x,), (direction,))[1])
    times = common.time_in_turn(
        {
            "run": lambda: run(parameters),
            "tangent": lambda: tangent(parameters),
            "gradient": lambda: gradient(parameters),
        },
        repeats,
    )
    found = {name: common.summary(time) for name, time in times.items()}
    slope, projected = float(tangent(parameters)), float(gradient(parameters) @ direction)
    return {
        "case": case,
        "dtype": str(parameters.dtype),
        "tolerance": TOLERANCE,
        "run_seconds": found["run"]["run_seconds_min"],
        "tangent": common.ratios(found["tangent"], found["run"])["ratio"],
        "gradient": common.ratios(found["gradient"], found["run"])["ratio"],
        "modes_differ_by": abs(projected / slope - 1.0),
        "repeats": repeats,
    }


def memory(solver: str, steps: int) -> dict[str, Any]:
    """Return one row: buffers of the compiled run and of its gradient, bytes, and their times."""
    value, parameters = top_value(solver, t1=1e-3 * steps, dt=1e-3, max_steps=steps + 8)
    compiled = {
        name: jax.jit(function).lower(parameters).compile()
        for name, function in {"run": value, "gradient": jax.grad(value)}.items()
    }
    buffers = {name: c.memory_analysis().temp_size_in_bytes for name, c in compiled.items()}
    seconds = {
        name: min(common.seconds(lambda c=c: c(parameters)) for _ in range(3))
        for name, c in compiled.items()
    }
    return {
        "case": f"memory, {solver}",
        "dtype": str(parameters.dtype),
        "steps": steps,
        "run_bytes": buffers["run"],
        "gradient_bytes": buffers["gradient"],
        "run_seconds": seconds["run"],
        "gradient": seconds["gradient"] / seconds["run"],
    }


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    if options.smoke:
        CASES["smoke"] = lambda: top_value("Radau5", t1=0.1, max_steps=64)
        common.write("gradient_cost", [cost("smoke", 1), memory("Radau5", 32)], True)
    else:
        measures: list[Callable[[], dict[str, Any]]] = [
            functools.partial(memory, solver, steps)
            for solver in ("Radau5", "BDF", "Odex", "Seulex")
            for steps in (100, 10_000)
        ]
        # The four-bar linkage, 62 unknowns, comes last: it takes minutes to compile.
        rows = []
        for measure in [*measures, *(functools.partial(cost, case, 20) for case in CASES)]:
            rows.append(measure())
            common.write("gradient_cost", rows, False)
