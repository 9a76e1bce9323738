"""Heavy symmetric tops in closed form, and the stored reference end states."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rigidjax import problems
from rigidjax.bodies import shapes
from rigidjax.problems.exact import symmetric_top
from rigidjax.problems.exact.free_body import quaternion_zxz
from tools.exact.references import REFERENCES, Top
from tools.exact.tops import integrate

exact = jax.jit(symmetric_top)

# Geradin-Rixen 11.6, about the fixed point: 5 kg, 1.3 m, centroidal moments 0.8 and 1.8.
INERTIA = jnp.array([9.25, 9.25, 1.8])
WEIGHT = 5 * 9.81 * 1.3


def start(phi, theta, psi, phi_dot, theta_dot, psi_dot):
    """Quaternion and body rates from 3-1-3 angles and their rates."""
    p = quaternion_zxz(*map(jnp.asarray, (phi, theta, psi)))
    node = np.array([np.cos(psi), -np.sin(psi), 0 * psi])
    vertical = np.array([np.sin(theta) * np.sin(psi), np.sin(theta) * np.cos(psi), np.cos(theta)])
    axis = np.array([0 * psi, 0 * psi, 1.0 + 0 * psi])
    omega = phi_dot * vertical + theta_dot * node + psi_dot * axis
    return p, jnp.asarray(omega)


GERADIN_RIXEN = {
    1: start(0.0, math.pi / 9, 0.0, 0.0, 0.0, 50.0),
    2: start(0.0, math.pi / 9, 0.0, -10.0, 0.0, 50.0),
}


@pytest.mark.parametrize(
    ("case", "expected"), [(1, (0.349066, 0.411941)), (2, (0.349066, 1.352619))]
)
@pytest.mark.exhaustive("1-expected0")
def test_nutation_of_geradin_rixen(case, expected):
    p0, omega0 = GERADIN_RIXEN[case]
    ts = jnp.linspace(0.0, 4.0, 4001)
    motion = exact(INERTIA, WEIGHT, p0, omega0, ts)
    np.testing.assert_allclose(motion.nutation_range, expected, atol=5e-7)
    assert motion.inclination.min() >= motion.nutation_range[0] - 1e-14
    assert motion.inclination.max() <= motion.nutation_range[1] + 1e-14
    # Sampled 700 times a period: quadratic in the distance from the extreme.
    np.testing.assert_allclose(motion.inclination.max(), expected[1], atol=2e-5)
    again = exact(INERTIA, WEIGHT, p0, omega0, motion.nutation_period * jnp.arange(3.0))
    # The inclination is quadratic at its minimum: half of the digits of cos would be left in it.
    np.testing.assert_allclose(np.cos(again.inclination), math.cos(math.pi / 9), atol=1e-14)


def in_precision(inertia, weight, p0, omega0, t1):
    """Integrate to the end in high precision, from a rotation about axis 1 only.

    `p0` is the quaternion of phi = psi = 0 and theta a multiple of pi/36.
    """
    theta = 2 * math.atan2(float(p0[1]), float(p0[0]))
    turn = Fraction(round(theta / math.pi * 36), 36)
    top = Top(tuple(map(float, inertia)), tuple(map(float, omega0)), t1, (float(weight),), turn)
    return integrate(top, digits=22, order=24).to_arrays()


TOPS = {
    "Geradin-Rixen 1": GERADIN_RIXEN[1],
    "Geradin-Rixen 2": GERADIN_RIXEN[2],
    "slow": start(0.0, math.pi / 3, 0.0, 1.0, -2.0, 3.0),
    "spherical pendulum": start(0.0, 2 * math.pi / 3, 0.0, 1.0, 6.0, -1.0 * math.cos(2.0943951)),
    "pendulum": start(0.0, 2 * math.pi / 3, 0.0, 0.0, 1.0, 0.0),
    "pendulum going round": start(0.0, 2 * math.pi / 3, 0.0, 0.0, 6.0, 0.0),
    "nearly a pendulum": start(0.0, 2 * math.pi / 3, 0.0, 1e-8, 6.0, 1e-8),
    "hanging": start(0.0, 35 * math.pi / 36, 0.0, 1.0, 0.01, 7.0),
    "nearly upright": start(0.0, math.pi / 36, 0.0, 0.1, 0.0, 50.0),
}


@pytest.mark.parametrize("name", TOPS)
def test_full_motion_against_high_precision(name):
    p0, omega0 = TOPS[name]
    t1 = 4.0
    motion = exact(INERTIA, WEIGHT, p0, omega0, jnp.array([0.0, t1]))
    np.testing.assert_allclose(motion.orientation[0], p0, atol=5e-15)
    np.testing.assert_allclose(motion.angular_velocity[0], omega0, atol=2e-14)
    p, w = in_precision(INERTIA, WEIGHT, p0, omega0, t1)
    # Phases of up to 200 rad.
    np.testing.assert_allclose(motion.orientation[1], p, atol=5e-14)
    np.testing.assert_allclose(motion.angular_velocity[1], w, atol=1e-13 * np.abs(omega0).max())


def test_steady_precession():
    """R_z(10 t) R_x(pi/3) R_z(spin t), and the equation of motion to high precision."""
    problem = problems.steady_top()
    inertia, weight = problem.system.inertia, problem.system.potential.weight_moment
    cone = shapes.cone(0.05, 0.1, density=2700.0)
    np.testing.assert_allclose(inertia, jnp.diag(cone.inertia_about(jnp.zeros(3))))
    np.testing.assert_allclose(weight, cone.mass * 9.81 * 0.075)
    p0, w0 = problem.state0.orientation[0], problem.state0.angular_velocity[0]
    ts, spin = jnp.linspace(0.0, 1.0, 5), w0[2] - 5.0
    np.testing.assert_allclose(spin * inertia[2], weight / 10 + (inertia[0] - inertia[2]) * 5)
    p, w = start(10.0 * ts, jnp.full(5, math.pi / 3), spin * ts, 10.0, 0.0, spin)
    motion = exact(inertia, weight, p0, w0, ts)
    np.testing.assert_allclose(motion.orientation, p, atol=2e-14)
    np.testing.assert_allclose(motion.angular_velocity, w.T, rtol=1e-13, atol=1e-12)
    end, rates = in_precision(inertia, weight, p0, w0, 1.0)
    np.testing.assert_allclose(p[-1], end, atol=2e-14)
    np.testing.assert_allclose(w[:, -1], rates, atol=1e-12)


def test_perturbed_steady_precession():
    # A nutation of 1e-8 rad must not lose its phase.
    problem = problems.steady_top()
    inertia, weight = problem.system.inertia, problem.system.potential.weight_moment
    p0 = problem.state0.orientation[0]
    omega0 = problem.state0.angular_velocity[0] + jnp.array([1e-7, 1e-7, 0.0])
    motion = exact(inertia, weight, p0, omega0, 1.0)
    p, w = in_precision(inertia, weight, p0, omega0, 1.0)
    np.testing.assert_allclose(motion.orientation, p, atol=2e-14)
    np.testing.assert_allclose(motion.angular_velocity, w, atol=1e-12)


@pytest.mark.parametrize("name", ["heavy_top", "free_body", "tumbling_brick"])
def test_stored_references_are_reproduced(name):
    # With fewer digits than they were computed with, in a tenth of the time.
    top, stored = REFERENCES[name]
    p, w = integrate(top, digits=25, order=28, output_digits=18).to_arrays()
    expected_p, expected_w = stored.to_arrays()
    np.testing.assert_allclose(p, expected_p, rtol=0, atol=1e-15)
    np.testing.assert_allclose(w, expected_w, rtol=1e-15)


def test_stored_references_conserve_invariants():
    for name, (top, end) in REFERENCES.items():
        inertia = np.array(top.inertia)
        weight = np.prod(top.weight_moment) if top.weight_moment else 0.0
        half = math.pi * float(top.turn) / 2
        start_p = np.array([math.cos(half), math.sin(half), 0, 0])

        def energy(p, w, inertia=inertia, weight=weight):
            height = p[0] ** 2 - p[1] ** 2 - p[2] ** 2 + p[3] ** 2
            return 0.5 * (inertia * w**2).sum() + weight * height

        def vertical(p, w, inertia=inertia):
            return Rotation.from_quat(p, scalar_first=True).as_matrix()[2] @ (inertia * w)

        p, w = end.to_arrays()
        w0 = np.array(top.omega)
        scale = np.abs(inertia * w0).sum()
        np.testing.assert_allclose(p @ p, 1.0, rtol=1e-15, err_msg=name)
        np.testing.assert_allclose(energy(p, w), energy(start_p, w0), rtol=1e-14, err_msg=name)
        np.testing.assert_allclose(
            vertical(p, w), vertical(start_p, w0), atol=1e-14 * scale, err_msg=name
        )


P0, W0 = GERADIN_RIXEN[1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"inertia": (1.0, 2.0, 1.0)}, "must have equal first and second moments"),
        ({"inertia": (1.0, 1.0, 0.0)}, r"inertia=...\)` must be positive"),
        ({"inertia": (1.0, 1.0)}, r"inertia=...\)` must have shape \(3,\)"),
        ({"weight_moment": -1.0}, "a top without weight is a free body"),
        ({"orientation0": (1.0, 0.0, 0.0, 0.0)}, "must not have a vertical axis"),
        ({"orientation0": (0.0, 1.0, 0.0, 0.0)}, "must not have a vertical axis"),
        ({"omega0": (1.0, 0.0)}, r"omega0=...\)` must have shape \(3,\)"),
        ({"ts": np.ones((2, 2))}, r"ts=...\)` must be a number or have shape"),
    ],
)
def test_invalid_arguments_raise(change, match):
    good = {
        "inertia": (1.0, 1.0, 1.0),
        "weight_moment": 1.0,
        "orientation0": P0,
        "omega0": W0,
        "ts": 1.0,
    }
    with pytest.raises(ValueError, match=match):
        symmetric_top(**{**good, **change})
