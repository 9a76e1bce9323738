"""Evaluations of the vector field, against a field that counts them itself."""

import diffrax
import jax
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

START = rj.State(orientation=(0.5, -0.5, 0.1, 0.7), angular_velocity=(1.5, -2.0, 2.5))
calls = [0]


def count():
    calls[0] += 1


def counting(t, R, omega):
    """A moment that counts its evaluations in compiled code."""
    jax.debug.callback(count)
    return -0.1 * omega


def count_calls(model, **options):
    calls[0] = 0
    solution = rj.simulate(model, START, 1.0, **options)
    jax.effects_barrier()
    return solution, calls[0]


TOP = rj.FixedPointBody(cases.PRINCIPAL, rj.AxialGravityPotential(108.79), counting)
QUATERNION = rj.NullSpace(TOP)
RODRIGUES = rj.NullSpace(TOP, rj.RodriguesParameters())
LOOSE = dict(rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "solver", "options"),
    [
        (QUATERNION, diffrax.Euler(), dict(dt=0.1)),
        (QUATERNION, diffrax.Heun(), LOOSE),
        (RODRIGUES, diffrax.Heun(), LOOSE),
        (QUATERNION, diffrax.HalfSolver(diffrax.Heun()), LOOSE),
    ],
    ids=lambda value: cases.model_name(value) if hasattr(value, "system") else None,
)
def test_evaluations_of_explicit_methods(model, solver, options):
    solution, number = count_calls(model, solver=solver, **options)
    assert int(solution.stats["num_rhs"]) == number
    total = solution.stats["num_accepted_steps"] + solution.stats["num_rejected_steps"]
    assert int(solution.stats["num_steps"]) == int(total)


def test_first_same_as_last_at_a_change_of_chart():
    """The evaluation that is made afresh in a new chart is not counted."""
    saveat = diffrax.SaveAt(t0=True, steps=True)
    solution, number = count_calls(RODRIGUES, solver=diffrax.Dopri5(), saveat=saveat, **LOOSE)
    references = solution.ys.reference[np.isfinite(solution.ts), 0]
    changes = int(np.sum(np.any(np.diff(references, axis=0) != 0, axis=1)))
    assert changes > 0
    # A change at the last step has no step after it; one before a rejected step is paid twice.
    rejected = int(solution.stats["num_rejected_steps"])
    assert rejected <= 1
    assert changes - 1 <= number - int(solution.stats["num_rhs"]) <= changes + rejected
