"""Bushings against their energy, NumPy, a potential, and their own stiffness."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.multibody import (
    BODIES,
    ENDS,
    POINT,
    along,
    energy_error,
    first,
    pose,
    power,
    states,
    virial,
    worst,
    wrench,
)
from formulations import cases
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.rotations import euler_map, so3

_ROOT = np.random.default_rng(3).normal(size=(6, 6))
FULL = _ROOT @ _ROOT.T
DIAGONAL = np.array([3.0, 1.0, 2.0, 0.7, 1.3, 0.4])


@pytest.mark.float32
@pytest.mark.parametrize("ends", ENDS[1:], ids="-".join)
def test_power_is_the_loss_of_potential_energy(ends):
    forces = [rj.Bushing(*ends, POINT, K) for K in (DIAGONAL[:3], FULL)]
    errors = lambda state: [energy_error(force, state) for force in forces]  # noqa: E731
    # The logarithm and its derivative add a factor of 1/(pi - angle) or so.
    assert worst(errors) < cases.round_off(200)


def deformation(state, ends, point):
    """Displacement and rotation vector with NumPy and SciPy, axes of `a`."""
    x, R = (np.asarray(part) for part in pose(state))
    frames, points = [], []
    for name in ends:
        if name == "ground":
            frames.append(np.eye(3))
            points.append(point)
            continue
        i = ("one", "two").index(name)
        R0 = np.asarray(euler_map(BODIES[i].orientation))
        frames.append(R[i] @ R0.T)
        points.append(x[i] + R[i] @ R0.T @ (point - np.asarray(BODIES[i].position)))
    A, B = frames
    return A, points, A.T @ (points[1] - points[0]), Rotation.from_matrix(A.T @ B).as_rotvec()


@pytest.mark.parametrize("ends", ENDS[1:], ids="-".join)
def test_bushing_against_numpy(ends):
    state = first(states())
    A, (_, at), d, psi = deformation(state, ends, POINT)
    load = -FULL @ np.concatenate([d, psi])
    # Work of the moment: psi' = H^-1 omega, H the integral of the rotations up to this one.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    steps = Rotation.from_rotvec(0.5 * (nodes[:, None] + 1) * psi).as_matrix()
    H = 0.5 * np.einsum("n,nij->ij", weights, steps)
    force, moment = A @ load[:3], A @ np.linalg.inv(H).T @ load[3:]
    found = wrench(rj.Bushing(*ends, POINT, FULL), state)
    x, R = (np.asarray(part) for part in pose(state))
    for name, sign in zip(ends, (-1.0, 1.0), strict=True):
        if name != "ground":
            i = ("one", "two").index(name)
            about = sign * (moment + np.cross(at - x[i], force))
            assert cases.error(found[0][i], sign * force) < 1e-13
            assert cases.error(R[i] @ found[1][i], about) < 1e-13


def test_example_c_of_lang():
    """A spring from the origin to the centre of mass of body 1, $V = k/2 |x_1|^2$."""
    bodies = (rj.Body("one", 2.0, (0.5, 0.42, 0.3)), BODIES[1])
    potential = rj.Potential(lambda x, R: 0.5 * 7.0 * jnp.sum(x[0] * x[0]))

    def errors(state):
        exact = wrench(potential, state, bodies)
        found = [
            wrench(rj.Bushing(*ends, np.zeros(3), 7.0), state, bodies)
            for ends in (("ground", "one"), ("one", "ground"))
        ]
        return [cases.error(jnp.stack(pair), jnp.stack(exact)) for pair in found]

    assert worst(errors) < 1e-14


def test_bushing_equals_its_potential():
    """An isotropic bushing has the wrench and virial of the distance."""
    arms = [euler_map(body.orientation).T @ (jnp.asarray(POINT) - body.position) for body in BODIES]

    def energy(x, R):
        gap = x[0] + R[0] @ arms[0] - x[1] - R[1] @ arms[1]
        return 0.5 * 3.0 * jnp.sum(gap * gap)

    bushing, potential = rj.Bushing("one", "two", POINT, 3.0), rj.Potential(energy)

    def errors(state):
        pair = jnp.stack(wrench(bushing, state)), jnp.stack(wrench(potential, state))
        return [cases.error(*pair), cases.error(virial(bushing, state), virial(potential, state))]

    assert worst(errors) < 1e-13


@pytest.mark.parametrize("ends", ENDS, ids="-".join)
def test_damping_loses_energy(ends):
    """The power lost is tau C tau, with the rate of the displacement found by differentiation."""
    dashpot = rj.Bushing(*ends, POINT, 0.0, FULL)
    one, two = (("one", "two", "ground").index(name) for name in ends)
    references = [euler_map(body.orientation) for body in BODIES]

    def ends_of(x, R):
        frames = [R[i] @ references[i].T for i in (0, 1)] + [jnp.eye(3)]
        points = [x[i] + frames[i] @ (POINT - BODIES[i].position) for i in (0, 1)] + [POINT]
        return frames[one].T @ (points[two] - points[one]), frames[one].T @ frames[two]

    def errors(state):
        (_, Q), (slip, Q_dot) = along(ends_of, state)
        tau = jnp.concatenate([slip, so3.unskew(Q_dot @ Q.T)])
        return cases.error(power(dashpot, state), -(tau @ FULL @ tau))

    assert worst(errors) < 1e-13


def test_derivatives_and_batches_of_stiffness():
    state = first(states())
    make = lambda K: rj.Bushing("one", "two", POINT, K, 0.3 * K)  # noqa: E731
    value = lambda K: jnp.stack(wrench(make(K), state))  # noqa: E731
    # Linear in the coefficients; a diagonal is a matrix.
    assert cases.error(value(DIAGONAL), value(np.diag(DIAGONAL))) < 1e-15
    slope = jax.jit(jax.jacrev(value))(jnp.asarray(DIAGONAL))
    assert cases.error(slope @ DIAGONAL, value(DIAGONAL)) < 1e-13
    scales = jnp.array([0.5, 1.0, 3.0])
    batch = jax.jit(jax.vmap(value))(scales[:, None, None] * FULL[None])
    assert cases.error(batch, scales[:, None, None, None] * value(FULL)[None]) < 1e-13
