"""Geradin and Rixen's top: their residual, conservation, nutation, reactions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.rotations.conversion import half_rotation_matrix
from rigidjax.rotations.so3 import conjugate, multiply, skew
from rigidjax.solvers import EnergyMidpoint

MASS, DISTANCE, INERTIA = 5.0, 1.3, jnp.array([0.8, 0.8, 1.8])
GRAVITY = jnp.array([0.0, 0.0, -9.81])
# Rates of precession, and the exact range of nutation, rad.
CASES = {1: (0.0, 0.411941), 2: (-10.0, 1.352619)}


def top(case):
    """The top of section 11.6 on a ball joint, in absolute coordinates."""
    theta, precession = np.pi / 9, CASES[case][0]
    p = np.array([np.cos(theta / 2), np.sin(theta / 2), 0.0, 0.0])
    R = np.asarray(rj.Quaternion().to_matrix(jnp.asarray(p)))
    omega = np.array([0.0, precession * np.sin(theta), 50.0 + precession * np.cos(theta)])
    arm = np.array([0.0, 0.0, DISTANCE])
    body = rj.Body(
        "top", MASS, INERTIA, R @ arm, p, R @ np.cross(omega, arm), omega, physical=False
    )
    joint = rj.Spherical("ground", "top", (0.0, 0.0, 0.0))
    system = rj.System(body, [joint], rj.Gravity(GRAVITY))
    return rj.Absolute(system), system.reference_state()


def nutation(sol):
    return np.arccos(models.matrices(sol.states)[:, 2, 2])


@pytest.mark.parametrize(("case", "mean"), [(1, "angular-momentum"), (1, None), (2, None)])
def test_nutation_and_energy(case, mean):
    """Range of nutation within 1e-5; energy to round-off, or to second order as in the paper."""
    model, state0 = top(case)
    sol = models.run(model, state0, 1e-3, 2000, EnergyMidpoint(mean=mean))
    theta, largest = nutation(sol), CASES[case][1]
    assert abs(np.min(theta) - np.pi / 9) < 1e-5
    assert abs(np.max(theta) - largest) < 1e-5
    assert np.max(sol.position_drift) < 2e-7
    if mean != "angular-momentum":
        assert models.change(sol.energy) < 1e-12
    else:
        assert 1e-9 < models.change(sol.energy) < 1e-6


def test_half_rotations_agree():
    model, state0 = top(1)
    runs = [
        models.run(model, state0, 0.01, 100, EnergyMidpoint(half_rotation=half))
        for half in ("euler-parameters", "conformal")
    ]
    assert np.max(np.abs(runs[0].ys - runs[1].ys)) < 1e-11


@pytest.mark.parametrize("case", CASES)
def test_residual_of_the_paper(case):
    """A step satisfies (341) in explicit matrices, with the reaction of (309)."""
    model, state0 = top(case)
    h, solver = 0.01, EnergyMidpoint(mean="angular-momentum")
    sol = models.run(model, state0, h, 1, solver)
    first, last = (jax.tree.map(lambda leaf, k=k: leaf[k, 0], sol.states) for k in (0, 1))
    reaction = solver.reaction(model, 0.0, sol.ys[0], jnp.array(h), sol.ys[1])
    J, X = jnp.diag(INERTIA), jnp.array([0.0, 0.0, DISTANCE])
    R0, R1 = (rj.Quaternion().to_matrix(s.orientation) for s in (first, last))
    relative = multiply(conjugate(first.orientation), last.orientation)
    F, e = half_rotation_matrix(relative), relative[1:]
    x0, x1 = first.position, last.position
    p0, h0 = MASS * first.velocity, R0 @ J @ first.angular_velocity
    middle = R0 @ F @ skew(X) @ F.T @ R0.T
    r_x = MASS * GRAVITY + reaction + 2 / h * p0 - 2 * MASS / h**2 * (x1 - x0)
    r_e = -middle @ reaction + 2 / h * h0 - 4 / h**2 * R0 @ F @ J @ e
    r_c = x1 - x0 + 2 * R0 @ F @ skew(X) @ e
    scale = np.linalg.norm(2 / h * h0)
    assert max(np.max(np.abs(r)) for r in (r_x, r_e, r_c / h**2)) < 1e-10 * scale
    # The update (iv) with the factor 4 / h.
    assert np.allclose(R1 @ J @ last.angular_velocity, 4 / h * R0 @ F @ J @ e - h0, atol=1e-11)


def test_reaction_at_the_fixed_point():
    """The mean reaction converges to the exact one with the first order of the step.

    The velocity of the centre of mass oscillates about its true value by an error of second order;
    the reaction is its difference over h.
    """
    model, state0 = top(2)
    solver, errors = EnergyMidpoint(mean="angular-momentum"), []
    for h, count in ((2e-4, 50), (1e-4, 100)):
        sol = models.run(model, state0, h, count, solver, 50)
        t, y = sol.ts[-1], sol.ys[-1]
        after = models.run(model, model.decode(t, y), h, 1, solver).ys[-1]
        found = solver.reaction(model, t, y, t + h, after)
        exact = next(iter(model.reactions(t, y).values())).force
        errors.append(np.max(np.abs(found - exact)))
    assert errors[1] < 0.5
    assert 1.5 < errors[0] / errors[1] < 2.6


@pytest.mark.parametrize("solver", [EnergyMidpoint(), EnergyMidpoint(mean="angular-momentum")])
def test_fixed_point_body_agrees_with_the_top(solver):
    """The top about its fixed point, against the motion in elliptic functions."""
    problem = rj.problems.symmetric_top(1)
    true = models.matrices(problem.reference([1.0]))[0]
    ends = [
        models.run(rj.NullSpace(problem.system), problem.state0, 1 / n, n, solver, 1)
        for n in (1000, 2000)
    ]
    errors = [np.max(np.abs(models.matrices(end.states)[-1] - true)) for end in ends]
    assert errors[0] < 1e-2
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


def test_energy_depends_on_the_inertia():
    """Free rotation: conserved for J11 = J22, off by 1.5e-3 for (6, 8, 3) at h = 0.1."""
    state0 = rj.State(angular_velocity=(1.0, 2.0, 2.0))
    for inertia, low, high in (((6.0, 6.0, 3.0), 0.0, 1e-13), ((6.0, 8.0, 3.0), 1e-4, 1e-2)):
        model = rj.NullSpace(rj.FixedPointBody(inertia))
        sol = models.run(model, state0, 0.1, 200, EnergyMidpoint(any_inertia=True))
        assert low <= models.change(sol.energy) < high
    kept = models.run(model, state0, 0.1, 200, EnergyMidpoint(mean="angular-velocity"))
    assert models.change(kept.energy) < 1e-13
