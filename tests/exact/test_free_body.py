"""The torque-free body against high precision, an independent integrator and conservation laws."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
from scipy.spatial.transform import Rotation

from rigidjax.problems.exact import free_body
from rigidjax.rotations import Quaternion
from tools.exact.references import REFERENCES, Top
from tools.exact.tops import integrate

exact = jax.jit(free_body)
IDENTITY = jnp.array([1.0, 0.0, 0.0, 0.0])


def rotation(p):
    return Rotation.from_quat(np.asarray(p), scalar_first=True).as_matrix()


# Every ordering of the moments, both sides of the separatrix, symmetric, nearly symmetric and
# spherical bodies, steady rotation, the separatrix itself.
CASES = {
    "order 123": ((1, 2, 3), (-1, -2, -0.5)),
    "order 132": ((1, 3, 2), (1, -2, 0.5)),
    "order 213": ((2, 1, 3), (1, 2, 0.5)),
    "order 231": ((2, 3, 1), (-1, 2, -0.5)),
    "order 312": ((3, 1, 2), (-1, 2, -0.5)),
    "order 321": ((3, 2, 1), (1, -2, 0.5)),
    "about the smallest": ((1, 2, 3), (3, 0.1, 0.2)),
    "about the largest": ((1, 2, 3), (0.1, 0.1, -3)),
    "oblate": ((2, 2, 3), (1, 2, 0.5)),
    "prolate": ((3, 2, 2), (1, 2, 0.5)),
    "symmetric in the middle": ((2, 3, 2), (1, 2, 0.5)),
    "spherical": ((2, 2, 2), (1, 2, 0.5)),
    "nearly spherical": ((2, 2, 2 + 1e-9), (1, 2, 0.5)),
    "nearly oblate": ((2, 2 + 1e-9, 3), (1, 2, 0.5)),
    "nearly oblate, transverse": ((2, 2 + 1e-6, 3), (1, 2, 0.005)),
    "nearly prolate, transverse": ((1, 3 - 1e-6, 3), (1, 2, 0.005)),
    "steady, smallest": ((1, 2, 3), (2, 0, 0)),
    "steady, middle": ((1, 2, 3), (0, 2, 0)),
    "steady, largest": ((1, 2, 3), (0, 0, 2)),
    "steady, oblate, transverse": ((2, 2, 3), (0, 1, 0)),
    "steady, oblate, axial": ((2, 2, 3), (0, 0, 1)),
    "nearly steady": ((1, 2, 3), (1e-9, 1e-9, 1)),
    "at rest": ((1, 2, 3), (0, 0, 0)),
    "separatrix": ((1, 2, 3), (3**0.5, 1, 1)),
    "tiny component": ((1, 2, 3), (1, 1e-150, 1)),
    "non-physical": ((1, 2, 4), (1, 0.3, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_form_against_high_precision(name):
    inertia, omega = CASES[name]
    t1 = 5.0
    orientation, velocity = exact(
        jnp.array(inertia, float), IDENTITY, jnp.array(omega, float), jnp.array([0.0, t1])
    )
    np.testing.assert_allclose(orientation[0], IDENTITY, atol=1e-14)
    np.testing.assert_allclose(velocity[0], omega, atol=2e-14 * np.abs(omega).max())
    top = Top(tuple(map(float, inertia)), tuple(map(float, omega)), t1)
    p, w = integrate(top, digits=22, order=24).to_arrays()
    # Phases of about 10 rad. The separatrix itself loses one more digit, because the
    # motion there is unstable.
    tolerance = 5e-14 if name == "separatrix" else 1e-14
    np.testing.assert_allclose(orientation[1], p, atol=tolerance)
    np.testing.assert_allclose(velocity[1], w, atol=tolerance * max(1.0, np.abs(omega).max()))


@pytest.mark.parametrize(
    "name", ["free_body", "tennis_racket_1e-1", "tennis_racket_1e-3", "tennis_racket_1e-5"]
)
def test_problems_against_stored_references(name):
    top, end = REFERENCES[name]
    orientation, velocity = exact(
        jnp.array(top.inertia), IDENTITY, jnp.array(top.omega), jnp.array(top.t1)
    )
    p, w = end.to_arrays()
    # Phases of up to 300 rad.
    np.testing.assert_allclose(orientation, p, atol=5e-14)
    np.testing.assert_allclose(velocity, w, rtol=0, atol=1e-13 * 50)


def test_brick_after_thirty_seconds():
    top, end = REFERENCES["tumbling_brick"]
    orientation, velocity = exact(
        jnp.array(top.inertia), IDENTITY, jnp.array(top.omega), jnp.array(top.t1)
    )
    p, w = end.to_arrays()
    relative = rotation(orientation).T @ rotation(p)
    angle = np.linalg.norm(relative - relative.T) / np.sqrt(8)
    assert np.rad2deg(angle) < 1e-12
    np.testing.assert_allclose(velocity, w, atol=1e-14)


def test_angular_velocity_from_jacobi_functions_of_mpmath():
    # Betsch-Siebert 5.1 with a state on the rim of a polhode about the middle-sized side.
    i1, i2, i3 = 3.0, 6.0, 8.0
    w1, w3 = 5.0, 2.0  # Omega_2(0) = 0, so that the phase is zero
    ts = np.linspace(0.0, 3.0, 7)
    with mpmath.workdps(40):
        i1, i2, i3, w1, w3 = (mpmath.mpf(x) for x in (i1, i2, i3, w1, w3))
        energy, h2 = i1 * w1**2 + i3 * w3**2, i1**2 * w1**2 + i3**2 * w3**2
        assert h2 < energy * i2  # the angular momentum circles axis 1
        m = (i3 - i2) * (h2 - energy * i1) / ((i2 - i1) * (energy * i3 - h2))
        rate = mpmath.sqrt((i2 - i1) * (energy * i3 - h2) / (i1 * i2 * i3))
        a2 = mpmath.sqrt((h2 - energy * i1) / (i2 * (i2 - i1)))
        expected = [
            [
                w1 * mpmath.ellipfun("dn", rate * t, m=m),
                -a2 * mpmath.ellipfun("sn", rate * t, m=m),
                w3 * mpmath.ellipfun("cn", rate * t, m=m),
            ]
            for t in map(mpmath.mpf, ts)
        ]
    # d(Omega_2)/dt = (i3 - i1)/i2 w3 w1 > 0 at t = 0: the sign of sn is positive.
    expected = np.array(expected, float) * [1, -1, 1]
    _, velocity = exact(
        jnp.array([3.0, 6.0, 8.0]), IDENTITY, jnp.array([5.0, 0.0, 2.0]), jnp.array(ts)
    )
    np.testing.assert_allclose(velocity, expected, atol=5e-14)


def test_full_tensor_against_an_integrator(rng):
    axes = Rotation.random(rng=rng).as_matrix()
    tensor = axes @ np.diag([2.0, 3.0, 4.5]) @ axes.T
    p0 = rng.normal(size=4)
    p0 /= np.linalg.norm(p0)
    omega0 = np.array([1.0, -2.0, 0.7])

    def rates(_, y):
        p, w = y[:4], y[4:]
        p_dot = 0.5 * np.append(-p[1:] @ w, p[0] * w + np.cross(p[1:], w))
        return np.concatenate([p_dot, np.linalg.solve(tensor, -np.cross(w, tensor @ w))])

    ts = np.linspace(0.0, 10.0, 6)
    found = scipy.integrate.solve_ivp(
        rates, (0, 10), [*p0, *omega0], "DOP853", ts, rtol=1e-13, atol=1e-14
    )
    orientation, velocity = exact(
        jnp.array(tensor), jnp.array(p0), jnp.array(omega0), jnp.array(ts)
    )
    # Global error of DOP853 at its smallest tolerance.
    np.testing.assert_allclose(orientation, found.y[:4].T, atol=1e-11)
    np.testing.assert_allclose(velocity, found.y[4:].T, atol=1e-11)


def test_time_derivative_satisfies_the_kinematics():
    # p' = p Omega/2, and the orientation is continuous over many revolutions.
    inertia, omega0 = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 2.0, 0.5])
    ts = jnp.linspace(0.0, 30.0, 301)

    def orientation(t):
        return free_body(inertia, IDENTITY, omega0, t)[0]

    p, p_dot = jax.jit(jax.vmap(lambda t: jax.jvp(orientation, (t,), (1.0,))))(ts)
    _, w = exact(inertia, IDENTITY, omega0, ts)
    expected = jax.vmap(Quaternion().rate)(p, w)
    np.testing.assert_allclose(p_dot, expected, atol=1e-11)
    assert np.abs(np.diff(p, axis=0)).max() < 0.2


@pytest.mark.float32
def test_closed_form_in_single_precision():
    inertia, omega, t = jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 0.1, 0.2]), jnp.array(5.0)
    p, w = exact(inertia, IDENTITY.astype(t.dtype), omega, t)
    assert p.dtype == w.dtype == t.dtype
    top = Top((1.0, 2.0, 3.0), tuple(map(float, omega)), 5.0)
    expected, rates = integrate(top, digits=20, order=20).to_arrays()
    np.testing.assert_allclose(p, expected, atol=2e-5)
    np.testing.assert_allclose(w, rates, atol=2e-5)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (((1.0, 2.0), (1, 0, 0, 0), (1, 1, 1), 1.0), r"`inertia` must have shape \(3,\) or \(3, 3"),
        (((1.0, 2.0, 0.0), (1, 0, 0, 0), (1, 1, 1), 1.0), "`inertia` must be positive"),
        (((1.0, 2.0, 3.0), (1, 1, 0, 0), (1, 1, 1), 1.0), "`orientation0` must be a unit quat"),
        (((1.0, 2.0, 3.0), (1, 0, 0, 0), (1, np.nan, 1), 1.0), "`omega0` must be finite"),
        (((1.0, 2.0, 3.0), (1, 0, 0, 0), (1, 1, 1), np.ones((2, 2))), r"`ts` must be a number or"),
    ],
)
def test_invalid_arguments_raise(arguments, match):
    with pytest.raises(ValueError, match=match):
        free_body(*arguments)
