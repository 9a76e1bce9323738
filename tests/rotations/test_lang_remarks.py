"""Lang's remarks 4.4, 4.5 and 6.3, with the comparison that each makes, and two misprints."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from papers.hemisphere import hemisphere_mass_matrix, hemisphere_null_space, hemisphere_quaternion
from papers.orthonormalising import gram_schmidt, logarithm_projection
from papers.plane import plane_coordinates, plane_matrix, plane_null_space
from rotations import cases

import rigidjax as rj
from rigidjax.bodies.euler_equations import euler_equations
from rigidjax.rotations import Directors, Quaternion, so3

INERTIA = jnp.array([2.0, 3.0, 4.0])


def test_hemisphere_is_a_minimal_parametrization(rng):
    """4.4: three unknowns, Lagrange's equations of a full mass matrix are Euler's."""
    v = 0.5 * jnp.asarray(cases.unit_vectors(rng, 1)[0])
    omega, moment = jnp.asarray(rng.normal(size=(2, 3)))
    v_dot = hemisphere_null_space(v) @ omega
    p, p_dot = jax.jvp(hemisphere_quaternion, (v,), (v_dot,))
    np.testing.assert_allclose(p @ p, 1.0, rtol=1e-15)
    np.testing.assert_allclose(Quaternion().angular_velocity(p, p_dot), omega, atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.det(hemisphere_null_space(v)), p[0] / 8, rtol=1e-13)

    def energy(v, rate):
        return 0.5 * rate @ hemisphere_mass_matrix(v, INERTIA) @ rate

    np.testing.assert_allclose(energy(v, v_dot), 0.5 * omega @ (INERTIA * omega), rtol=1e-13)
    # d/dt dT/dv' - dT/dv = T^-T mu, solved for v''.
    _, quadratic = jax.jvp(lambda v: jax.grad(energy, 1)(v, v_dot), (v,), (v_dot,))
    load = jnp.linalg.solve(hemisphere_null_space(v).T, moment)
    M = hemisphere_mass_matrix(v, INERTIA)
    v_ddot = jnp.linalg.solve(M, load - quadratic + jax.grad(energy)(v, v_dot))
    _, turned = jax.jvp(lambda v: hemisphere_null_space(v) @ omega, (v,), (v_dot,))
    omega_dot = euler_equations(INERTIA, omega, moment)
    np.testing.assert_allclose(v_ddot, turned + hemisphere_null_space(v) @ omega_dot, atol=1e-12)
    # The drawback: full for a diagonal inertia, and unbounded at pi.
    assert np.min(np.abs(M[np.triu_indices(3, 1)])) > 1e-3
    near = hemisphere_mass_matrix(v / jnp.linalg.norm(v) * (1.0 - 1e-10), INERTIA)
    assert np.max(np.abs(near)) > 1e8


def test_plane_rotation(rng):
    """4.5: the directors of an angle, and what null-space coordinates cost beside it."""
    alpha = jnp.asarray(rng.uniform(-3.0, 3.0))
    c, s = np.cos(alpha), np.sin(alpha)
    expected = np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])
    p, p_dot = jax.jvp(plane_coordinates, (alpha,), (jnp.array(0.7),))
    np.testing.assert_allclose(plane_matrix(p), expected, atol=1e-15)
    np.testing.assert_allclose(p_dot, 0.7 * plane_null_space(p), atol=1e-15)
    full = Quaternion().rate(jnp.append(p, jnp.zeros(2)), jnp.array([0.7, 0.0, 0.0]))
    np.testing.assert_allclose(full, [*p_dot, 0.0, 0.0], atol=1e-15)


def test_plane_pendulum_by_angle_and_by_null_space():
    """4.5: the same motion; two unknowns and no drift instead of three and one."""

    def runge_kutta(f, y, h, count):
        def step(y, _):
            k1 = f(y)
            k2 = f(y + 0.5 * h * k1)
            k3 = f(y + 0.5 * h * k2)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3)), None

        return jax.lax.scan(step, y, None, length=count)[0]

    def by_angle(y):
        return jnp.stack([y[1], -9.81 * jnp.sin(y[0])])

    def by_null_space(y):
        return jnp.append(plane_null_space(y[:2]) * y[2], -9.81 * plane_matrix(y[:2])[2, 1])

    def ends(count):
        h = 2.0 / count
        angle = runge_kutta(by_angle, jnp.array([2.0, 0.0]), h, count)
        start = jnp.append(plane_coordinates(jnp.array(2.0)), 0.0)
        return angle, runge_kutta(by_null_space, start, h, count)

    runs = jax.jit(ends, static_argnums=0)
    for count, limit in ((200, 1e-5), (800, 1e-7)):
        angle, other = runs(count)
        assert angle.size == 2 and other.size == 3
        np.testing.assert_allclose(plane_coordinates(angle[0]), other[:2], atol=limit)
    drift = [abs(float(jnp.linalg.norm(runs(count)[1][:2])) - 1.0) for count in (200, 800)]
    # Drift of the order of the method, which an angle cannot have.
    assert drift[1] > 1e-13 and drift[0] / drift[1] > 200.0


DRIFTS = (1e-2, 1e-3)


@pytest.fixture(scope="module")
def drifted_rotations():
    """Rotations with errors of 1e-2 and 1e-3 in every entry, and the nearest ones (by SVD)."""
    rng = np.random.default_rng(6)
    R = jax.vmap(so3.exp)(jnp.asarray(rng.uniform(0.2, 2.8, (40, 1)) * cases.unit_vectors(rng, 40)))
    R = jnp.stack([R + drift * rng.normal(size=R.shape) for drift in DRIFTS])
    return R, nearest(R)


def nearest(R):
    U, _, V = np.linalg.svd(R)
    return U @ V


def everywhere(function):
    return jax.jit(jax.vmap(jax.vmap(function)))


WAYS = {
    "Gram-Schmidt": (gram_schmidt, 1),
    "logarithm": (logarithm_projection, 2),
    "explicit": (lambda R: Directors().project(R.T.ravel()).reshape(3, 3).T, 1),
}


@pytest.mark.parametrize("name", WAYS)
def test_other_projections_of_directors(name, drifted_rotations):
    """Remark 6.3: none gives the nearest rotation; the logarithm differs from it in second order.

    It therefore moves the directors least of the three.
    """
    R, best = drifted_rotations
    way, order = WAYS[name]
    project = everywhere(way)
    found = project(R)
    one = np.broadcast_to(np.eye(3), R.shape)
    np.testing.assert_allclose(found @ found.swapaxes(-1, -2), one, atol=1e-13)
    np.testing.assert_allclose(project(best), best, atol=1e-13)
    assert np.all(np.linalg.norm(found - R, axis=(2, 3)) > np.linalg.norm(best - R, axis=(2, 3)))
    sideways = np.mean(np.linalg.norm(found - best, axis=(2, 3)), axis=1)
    assert abs(np.log10(sideways[0] / sideways[1]) - order) < 0.1
    assert np.all(sideways > 0.3 * np.power(DRIFTS, order))


def test_isotropy_of_projections(drifted_rotations):
    """6.3: results depend on the order of the directors, or on the frame of space."""
    R, best = drifted_rotations
    first, second = (
        everywhere(lambda A, o=o: gram_schmidt(A, o))(R) for o in ((0, 1, 2), (2, 0, 1))
    )
    assert np.max(np.abs(first - second)[1]) > DRIFTS[1]
    odd = gram_schmidt(R[0, 0], (1, 0, 2))
    np.testing.assert_allclose(jnp.linalg.det(odd), 1.0, rtol=1e-13)
    Q = so3.exp(jnp.array([0.1, -0.2, 0.15]))
    project = everywhere(logarithm_projection)
    # In the second order of the drift alone.
    apart = np.max(np.abs(Q.T @ project(Q @ R) - project(R)), axis=(1, 2, 3))
    assert apart[0] > 0.3 * DRIFTS[0] ** 2 and apart[1] < 30.0 * DRIFTS[1] ** 2
    np.testing.assert_allclose(Q.T @ nearest(Q @ R), best, atol=1e-13)


def test_lang_39_holds_on_the_unit_sphere_alone(rng):
    """Off it the blocks are divided by the fourth and the second power of |p|."""
    p = jnp.asarray(rng.normal(size=4))

    def energy(v):
        return 2.0 * jnp.sum(INERTIA * so3.multiply(so3.conjugate(p), v)[1:] ** 2)

    M = jax.jit(jax.hessian(energy))(jnp.zeros(4))
    np.testing.assert_allclose(M, Quaternion().mass_matrix(p, INERTIA), atol=1e-13)

    def border(A, b):
        return jnp.block([[A, b[:, None]], [b[None], jnp.zeros((1, 1))]])

    Q = jax.jit(jax.jacfwd(lambda x: so3.multiply(p, x)))(jnp.zeros(4))[:, 1:]
    tangential, n = 0.25 * Q @ (Q.T / INERTIA[:, None]), p @ p
    inverse = jnp.linalg.inv(border(M, p))
    np.testing.assert_allclose(border(tangential / n**2, p / n), inverse, atol=1e-13)
    assert np.max(np.abs(border(tangential, p) - inverse)) > 0.1


def test_lang_lemma_3_1_has_the_other_sign(rng):
    """T' M dT/dt Omega is Omega x I Omega; the line of the proof has its negative."""
    rotation = Directors()
    omega = jnp.asarray(rng.normal(size=3))
    d = rotation.from_quaternion(jnp.asarray(cases.quaternions(rng, 1)[0]))
    T, T_dot = jax.jvp(rotation.null_space, (d,), (rotation.rate(d, omega),))
    found = T.T @ rotation.mass_matrix(d, INERTIA) @ T_dot @ omega
    np.testing.assert_allclose(found, so3.cross(omega, INERTIA * omega), atol=1e-13)
    e1, e2, e3 = 0.5 * jnp.sum(INERTIA) - INERTIA
    w1, w2, w3 = omega
    printed = jnp.stack([(e3 - e2) * w3 * w2, (e1 - e3) * w1 * w3, (e2 - e1) * w2 * w1])
    np.testing.assert_allclose(printed, -found, atol=1e-13)


def test_drift_of_quaternions_off_the_sphere(rng):
    """Figure 6: index 0 pulls back, g'' = -2 |p'|^2 g; index 1 does not, g'' = 0."""
    body = rj.FixedPointBody((2.0, 3.0, 4.0), rj.AxialGravityPotential(5.0))
    y = jnp.asarray(rng.normal(size=8))
    p, p_dot = y[:4], y[4:]
    field: Any = rj.Absolute(body).vector_field(jnp.zeros(()), y)
    g = 0.5 * (p @ p - 1.0)
    np.testing.assert_allclose(
        p @ field[4:] + p_dot @ p_dot, -2.0 * (p_dot @ p_dot) * g, rtol=1e-12
    )
    model = rj.Absolute(body, index=1)
    full = jnp.append(y, 0.0)
    A, b = model.mass_matrix(jnp.zeros(()), full), model.right_hand_side(jnp.zeros(()), full)
    # M p'' + p lambda = f and p . p'' = -|p'|^2.
    acceleration = jnp.linalg.solve(A.at[4:8, 8].set(p), b)[4:8]
    np.testing.assert_allclose(p @ acceleration + p_dot @ p_dot, 0.0, atol=1e-11)
