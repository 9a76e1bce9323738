"""Accuracy of gradients: `simulate` differentiated, against 40-digit integrations.

The scalar is a combination of the final rotation matrix and body rates, its gradient is with
respect to the three moments of inertia and the three initial body rates. The reference is the
central difference of two integrations by Taylor series in 60-digit arithmetic with a step of 1e-15:
its own error is of the order of 1e-28.
"""

import functools
from fractions import Fraction
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.bodies import AxialGravityPotential
from tools.exact.references import Top
from tools.exact.tops import integrate

# All start with a rotation about the first axis, which the exact integration assumes.
CASES = {
    "heavy top, 2 s": Top((50.0, 42.0, 10.0), (0.0, 0.0, 20.0), 2.0, (11.09, 9.81), Fraction(1, 3)),
    "heavy top, 10 s": Top(
        (50.0, 42.0, 10.0), (0.0, 0.0, 20.0), 10.0, (11.09, 9.81), Fraction(1, 3)
    ),
    "racket, 0.1, 1 s": Top((41.6, 11.6, 50.0), (50.0, 0.1, 0.1), 1.0, (), Fraction(1, 3)),
}
TOLERANCE = 1e-13
WEIGHT_MATRIX = np.array([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0], [-0.75, 0.5, 2.0]])
WEIGHT_OMEGA = np.array([0.1, -0.2, 0.3])


def scalar(matrix, omega):
    """Return the scalar of a final state that is differentiated."""
    return jnp.sum(WEIGHT_MATRIX * matrix) + jnp.sum(WEIGHT_OMEGA * omega)


def exact_scalar(top: Top):
    """Return the scalar in extended precision."""
    import mpmath

    end = integrate(top, digits=60, output_digits=58)
    p0, p1, p2, p3 = (mpmath.mpf(x) for x in end.orientation)
    matrix = [
        [p0**2 + p1**2 - p2**2 - p3**2, 2 * (p1 * p2 - p0 * p3), 2 * (p1 * p3 + p0 * p2)],
        [2 * (p1 * p2 + p0 * p3), p0**2 - p1**2 + p2**2 - p3**2, 2 * (p2 * p3 - p0 * p1)],
        [2 * (p1 * p3 - p0 * p2), 2 * (p2 * p3 + p0 * p1), p0**2 - p1**2 - p2**2 + p3**2],
    ]
    total = mpmath.fdot(WEIGHT_OMEGA.tolist(), [mpmath.mpf(x) for x in end.omega])
    for weights, entries in zip(WEIGHT_MATRIX.tolist(), matrix, strict=True):
        total += mpmath.fdot(weights, entries)
    return total


def reference_gradient(top: Top) -> np.ndarray:
    """Return the gradient by inertia (3,) and initial rates (3,), rounded to float64."""
    import mpmath

    step = Fraction(1, 10**15)
    with mpmath.workdps(60):
        gradient = []
        for field in ("inertia", "omega"):
            for i in range(3):
                values = [Fraction(x) for x in getattr(top, field)]
                ends = []
                for sign in (1, -1):
                    moved = list(values)
                    moved[i] += sign * step
                    ends.append(exact_scalar(top._replace(**{field: tuple(moved)})))
                gradient.append(float((ends[0] - ends[1]) / (2 * mpmath.mpf(10) ** -15)))
    return np.array(gradient)


def run(top: Top, formulation: str, projection: bool = True, solver=None, tolerance=TOLERANCE):
    """Return the scalar as a function of inertia and initial rates, through `rj.simulate`."""
    half = np.pi * float(top.turn) / 2
    orientation = jnp.array([np.cos(half), np.sin(half), 0.0, 0.0])
    weight = np.prod(top.weight_moment) if top.weight_moment else None
    potential = None if weight is None else AxialGravityPotential(weight)

    def value(parameters):
        body = rj.FixedPointBody(parameters[:3], potential)
        solution = rj.simulate(
            common.FORMULATIONS[formulation](body),
            rj.State(orientation=orientation, angular_velocity=parameters[3:]),
            top.t1,
            solver=diffrax.Dopri8() if solver is None else solver,
            rtol=tolerance,
            atol=tolerance,
            projection=projection,
            max_steps=20_000,
        )
        matrix = rj.Quaternion().to_matrix(solution.states.orientation[-1, 0])
        return scalar(matrix, solution.states.angular_velocity[-1, 0])

    return value


@functools.cache
def cached_reference(name: str) -> np.ndarray:
    """Return the `reference_gradient` of a case."""
    return reference_gradient(CASES[name])


def measure(case: str, formulation: str, mode: str, repeats: int, **settings) -> dict[str, Any]:
    """Return one row: largest error of the gradient relative to its largest entry."""
    top = CASES[case]
    value = run(top, formulation, **settings)
    parameters = jnp.array([*top.inertia, *top.omega])
    gradient = jax.jit(jax.grad(value) if mode == "reverse" else jax.jacfwd(value))
    compile_times = common.compile_times(gradient, parameters, repeats=1)
    times = common.time_in_turn({"run": lambda: gradient(parameters)}, repeats)["run"]
    found, reference = np.asarray(gradient(parameters)), cached_reference(case)
    return {
        "case": case,
        "formulation": formulation,
        "mode": mode,
        "projection": settings.get("projection", True),
        "solver": "Dopri8",
        "tolerance": TOLERANCE,
        "dtype": str(found.dtype),
        **compile_times,
        **common.summary(times),
        **accuracy(found, reference),
    }


def accuracy(found: np.ndarray, reference: np.ndarray) -> dict[str, Any]:
    """Return the errors of a gradient, relative to its largest entry and entry by entry."""
    error = np.abs(found - reference)
    return {
        "relative_error": float(np.max(error) / np.max(np.abs(reference))),
        "worst_entry": float(np.max(error / np.abs(reference))),
        "gradient": reference.tolist(),
    }


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    rows = []
    if options.smoke:
        CASES["smoke"] = CASES["heavy top, 2 s"]._replace(t1=0.25)
        rows.append(measure("smoke", "null space, quaternion", "forward", 1))
    else:
        for case in CASES:
            for formulation in common.FORMULATIONS:
                # Proper Euler angles of the racket approach their singularity.
                if formulation == "Euler angles" and case.startswith("racket"):
                    continue
                for mode in ("reverse", "forward"):
                    row = measure(case, formulation, mode, 20)
                    rows.append(row)
                    print(f"{case}, {formulation}, {mode}: {row['relative_error']:.1e}", flush=True)
    common.write("gradients", rows, options.smoke)
