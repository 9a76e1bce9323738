"""Accuracy of gradients through the implicit and the extrapolation solvers.

Example A (2 s) is compared with central differences in 60-digit arithmetic, as in `gradients.py`. A
four-bar linkage at index 3 (0.1 s; gravity and masses) is compared with other equations, another
solver and another derivative: central differences of null-space runs with Dopri8 at 1e-13, with
parameter steps of 1e-2, 5e-3 and 2.5e-3 extrapolated to zero. The slow variant of Example C (4 s;
moments of inertia and stiffness; errors grow by 1e4) is compared with central differences in
35-digit arithmetic.

    taskset -c 1 python benchmarks/solver_gradients.py
"""

import itertools
from collections.abc import Callable
from typing import Any

import _common as common
import diffrax
import gradients
import jax
import jax.numpy as jnp
import numpy as np
from gradient_cost import SOLVERS, linkage

import rigidjax as rj
from rigidjax import problems
from rigidjax.problems.two_bodies import INERTIA, STIFFNESS
from tools.exact.two_bodies import integrate

# Example A: (solver, tolerance).
TOP_RUNS = {"Radau5": 1e-11, "BDF": 1e-12, "Odex": 1e-12, "Seulex": 1e-11}
# Tighter tolerances of BDF increase the error: steps of 1e-5 s amplify round-off in multipliers.
LINKAGE_RUNS = {"Radau5": 1e-11, "BDF": 5e-10}
LINKAGE_END = 0.1
PAIR_RUNS = {"Radau5": 1e-9, "BDF": 1e-13, "Odex": 1e-12, "Seulex": 1e-12}


def top_row(solver: str, tolerance: float, mode: str, case: str) -> dict[str, Any]:
    """Return one row for Example A."""
    row = gradients.measure(
        case, "null space, quaternion", mode, 3, solver=SOLVERS[solver], tolerance=tolerance
    )
    return {**row, "case": "Example A", "solver": solver, "tolerance": tolerance}


def linkage_value(formulation: Callable[[Any], Any], **settings) -> tuple[Callable, Any]:
    """Return a combination of the positions at the end, for gravity and masses, (4,)."""
    system, start = linkage()
    masses = [jnp.asarray(body.mass) for body in system.bodies]
    weights = jnp.linspace(0.5, 1.5, 9).reshape(3, 3)

    def value(parameters):
        bodies = [
            rj.Body(b.name, mass, b.inertia, b.position, b.orientation)
            for b, mass in zip(system.bodies, parameters[1:], strict=True)
        ]
        gravity = rj.Gravity(parameters[0] * jnp.array([0.0, -1.0, 0.0]))
        model = formulation(rj.System(bodies, system.joints, gravity))
        run = rj.simulate(model, start, LINKAGE_END, max_steps=4096, **settings)
        return jnp.sum(weights * run.states.position[-1])

    return value, jnp.stack([jnp.asarray(9.81), *masses])


def extrapolated_differences(value: Callable[[Any], Any], x: Any, part: float) -> np.ndarray:
    """Return the gradient by central differences with relative steps `part`, half and a quarter of
    it.
    """
    gradient = []
    for i in range(x.size):
        table = []
        for h in (part, part / 2, part / 4):
            ends = [float(value(x.at[i].mul(1 + sign * h))) for sign in (1, -1)]
            table.append((ends[0] - ends[1]) / (2 * h * float(x[i])))
        first = [(4 * b - a) / 3 for a, b in itertools.pairwise(table)]
        gradient.append((16 * first[1] - first[0]) / 15)
    return np.array(gradient)


def linkage_reference() -> np.ndarray:
    """Return the gradient by differences of null-space runs."""
    value, parameters = linkage_value(
        lambda system: rj.NullSpace(system), solver=diffrax.Dopri8(), rtol=1e-13, atol=1e-13
    )
    return extrapolated_differences(jax.jit(value), parameters, 1e-2)


def linkage_row(solver: str, tolerance: float, reference: np.ndarray) -> dict[str, Any]:
    """Return one row for the four-bar linkage at index 3, forward mode."""
    value, parameters = linkage_value(
        lambda system: rj.Absolute(system, index=3),
        solver=SOLVERS[solver], rtol=tolerance, atol=tolerance,
    )  # fmt: skip
    found = np.asarray(jax.jit(jax.jacfwd(value))(parameters))
    return {
        "case": "four-bar, index 3",
        "mode": "forward",
        "solver": solver,
        "tolerance": tolerance,
        "dtype": str(found.dtype),
        **gradients.accuracy(found, reference),
    }


PAIR_WEIGHTS = np.linspace(0.5, 1.5, 6).reshape(2, 3)


def pair_reference() -> np.ndarray:
    """Return the gradient of the slow Example C by moments of inertia and stiffness, relative
    changes.

    Steps of 1e-9 and 25 digits per step make both errors smaller than 1e-12.
    """
    import mpmath

    gradient = []
    with mpmath.workdps(35):
        step = mpmath.mpf("1e-9")
        weights = [mpmath.mpf(float(w)) for w in PAIR_WEIGHTS.ravel()]
        for i in range(4):
            ends = []
            for sign in (1, -1):
                data = [mpmath.mpf(str(x)) for x in (*INERTIA, STIFFNESS)]
                data[i] *= 1 + sign * step
                end = integrate(
                    10, "4", inertia=tuple(data[:3]), stiffness=data[3], digits=35, columns=14,
                    output_digits=30,
                )  # fmt: skip
                position = [mpmath.mpf(x) for row in end.position for x in row]
                ends.append(mpmath.fdot(weights, position))
            gradient.append(float((ends[0] - ends[1]) / (2 * step)))
    return np.array(gradient)


def pair_row(solver: str, tolerance: float, mode: str, reference: np.ndarray) -> dict[str, Any]:
    """Return one row for the slow Example C, null space and quaternions."""
    problem = problems.two_bodies_slow()
    system: Any = problem.system

    def value(factors):
        bodies = [
            rj.Body(b.name, b.mass, b.inertia * factors[:3], b.position, b.orientation)
            for b in system.bodies
        ]
        spring = rj.Spring(
            "ground", "body 1", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0),
            STIFFNESS * factors[3], length=0.0,
        )  # fmt: skip
        model = rj.NullSpace(rj.System(bodies, system.joints, spring), rj.Quaternion())
        run = rj.simulate(
            model, problem.state0, problem.t1, solver=SOLVERS[solver],
            rtol=tolerance, atol=tolerance, max_steps=100_000,
        )  # fmt: skip
        return jnp.sum(PAIR_WEIGHTS * run.states.position[-1])

    derivative = jax.grad if mode == "reverse" else jax.jacfwd
    found = np.asarray(jax.jit(derivative(value))(jnp.ones(4)))
    return {
        "case": "C slow, 4 s",
        "mode": mode,
        "solver": solver,
        "tolerance": tolerance,
        "dtype": str(found.dtype),
        **gradients.accuracy(found, reference),
    }


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    rows = []
    if options.smoke:
        gradients.CASES["smoke"] = gradients.CASES["heavy top, 2 s"]._replace(t1=0.25)
        rows.append(top_row("Radau5", 1e-8, "forward", "smoke"))
    else:
        for solver, tolerance in TOP_RUNS.items():
            for mode in ("forward", "reverse"):
                rows.append(top_row(solver, tolerance, mode, "heavy top, 2 s"))
                print(solver, mode, rows[-1]["relative_error"], flush=True)
        reference = linkage_reference()
        for solver, tolerance in LINKAGE_RUNS.items():
            rows.append(linkage_row(solver, tolerance, reference))
            print("four-bar", solver, rows[-1]["relative_error"], flush=True)
        reference = pair_reference()
        for solver, tolerance in PAIR_RUNS.items():
            for mode in ("forward", "reverse"):
                rows.append(pair_row(solver, tolerance, mode, reference))
                print("C slow", solver, mode, rows[-1]["relative_error"], flush=True)
    common.write("solver_gradients", rows, options.smoke)
