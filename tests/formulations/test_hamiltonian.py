"""Hamilton's equations in quaternions against automatic differentiation and other formulations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax import problems
from rigidjax.formulations import inverse_mass_matrix
from rigidjax.io.names import unknown_names
from rigidjax.rotations import euler_map, so3

TENSOR = jnp.array(cases.TENSOR)


@pytest.fixture
def phase(rng):
    """A unit quaternion and a momentum that is tangent to the sphere."""
    q, p = jnp.asarray(rng.normal(size=(2, 4)))
    q = q / jnp.linalg.norm(q)
    return q, p - (q @ p) * q


def test_matrices_of_products(rng):
    """(9)-(12), (A1)-(A5), (34), (30)-(33)."""
    p, q = jnp.asarray(rng.normal(size=(2, 4)))
    a, b = jnp.asarray(rng.normal(size=(2, 3)))
    left, right = so3.left_matrix, so3.right_matrix
    E, G = (lambda q: right(q)[:, 1:].T), (lambda q: left(q)[:, 1:].T)
    plus, minus = (lambda a: left(jnp.append(0.0, a))), (lambda a: right(jnp.append(0.0, a)))
    n, one, cross = q @ q, np.eye(4), np.cross(a, b)
    pairs = {
        "(9)": ((left(p) @ q, right(q) @ p), (so3.multiply(p, q),) * 2),
        "(12)": ((E(q) @ G(q).T,), (euler_map(q),)),
        "(A1)": ((E(q) @ q, G(q) @ G(q).T, E(q).T @ E(q)),
                 (np.zeros(3), n * np.eye(3), n * one - np.outer(q, q))),
        "(A2)": ((E(q) @ p, G(q) @ p, E(q) @ G(p).T), (-E(p) @ q, -G(p) @ q, E(p) @ G(q).T)),
        "(A3)": ((plus(a) @ q, minus(a) @ q), (E(q).T @ a, G(q).T @ a)),
        "(A4)": ((left(q) @ left(q).T, right(q) @ right(q).T), (n * one, n * one)),
        "(A5)": ((plus(a) @ plus(b), minus(a) @ minus(b)),
                 (-(a @ b) * one + plus(cross), -(a @ b) * one - minus(cross))),
    }  # fmt: skip
    for name, (found, expected) in pairs.items():
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-13, err_msg=name)
    unit = q / jnp.sqrt(n)
    np.testing.assert_allclose(so3.turned_skew(unit, a), so3.skew(euler_map(unit) @ a), atol=1e-14)

    # (30), (31) as the Hessian of the energy of directors, (33) as its inverse.
    def energy(v):
        R_dot = jax.jvp(euler_map, (unit,), (v,))[1]
        return 0.5 * jnp.trace(R_dot @ (0.5 * jnp.trace(TENSOR) * jnp.eye(3) - TENSOR) @ R_dot.T)

    M = jax.jit(jax.hessian(energy))(jnp.zeros(4))
    np.testing.assert_allclose(M, rj.Quaternion("half-trace").mass_matrix(unit, TENSOR), atol=1e-13)
    np.testing.assert_allclose(inverse_mass_matrix(unit, TENSOR) @ M, one, atol=1e-13)


def test_equations_are_those_of_the_augmented_hamiltonian(phase):
    """(38), (39) by differentiation of T + V + lambda g, with lambda = -q . grad V."""
    q, p = phase
    body = rj.FixedPointBody(TENSOR, rj.AxialGravityPotential(5.0))
    model = rj.Hamiltonian(body, "zero")
    y = jnp.concatenate([q, p])

    def potential(q):
        return 5.0 * euler_map(q)[2, 2]

    lam = -q @ jax.grad(potential)(q)
    np.testing.assert_allclose(model.multipliers(jnp.zeros(()), y), [lam], atol=1e-13)

    def hamiltonian(q, p):
        # T as a function of q and p off the sphere too: (36).
        pi = so3.multiply(so3.conjugate(q), p)
        across = pi[1:] @ jnp.linalg.solve(TENSOR, pi[1:])
        return 0.125 * across + potential(q) + lam * 0.5 * (q @ q - 1.0)

    by_q, by_p = jax.grad(hamiltonian, (0, 1))(q, p)
    found: Any = model.vector_field(jnp.zeros(()), y)
    np.testing.assert_allclose(found, jnp.concatenate([by_p, -by_q]), atol=1e-13)


def test_singular_matrix_preserves_the_length(phase):
    """Without radial inertia q' is tangent whatever q . p."""
    q, p = phase
    y = jnp.concatenate([1.1 * q, p + 0.5 * q])
    body, t = rj.FixedPointBody(TENSOR), jnp.zeros(())
    rates: Any = [rj.Hamiltonian(body, r).vector_field(t, y) for r in ("zero", "half-trace")]
    assert abs(y[:4] @ rates[0][:4]) < 1e-15 < 1e-3 < abs(y[:4] @ rates[1][:4])


def test_motion_agrees_with_other_formulations():
    """The motion agrees with `NullSpace` and `Absolute` to 1e-9, and so do energy and momentum."""
    problem = problems.heavy_top()
    models = [
        rj.Hamiltonian(problem.system, "half-trace"),
        rj.NullSpace(problem.system),
        rj.Absolute(problem.system),
    ]
    runs = [rj.simulate(m, problem.state0, 1.0, rtol=1e-12, atol=1e-12) for m in models]
    matrices = [jax.vmap(euler_map)(run.states.orientation[0]) for run in runs]
    rate = jnp.max(jnp.abs(runs[0].states.angular_velocity))
    for matrix, run in zip(matrices[1:], runs[1:], strict=True):
        assert jnp.max(jnp.abs(matrix - matrices[0])) < 1e-9
        off = run.states.angular_velocity - runs[0].states.angular_velocity
        assert jnp.max(jnp.abs(off)) < 1e-9 * rate
    start = models[1].energy(0.0, models[1].encode(problem.state0))
    assert abs(runs[0].energy[0] / start - 1.0) < 1e-10
    spin = models[1].momentum(0.0, models[1].encode(problem.state0))[1]
    gain = runs[0].angular_momentum[0, 2] - spin[2]
    assert jnp.abs(gain) < 1e-10 * jnp.linalg.norm(spin)


def test_invalid_arguments_raise():
    joints = [rj.Spherical("ground", "link", (0.0, 0.0, 0.0))]
    chain = rj.System(rj.Body("link", 1.0, (1.0, 1.0, 1.0)), joints)
    with pytest.raises(ValueError, match="`Hamiltonian` writes the equations of single bodies"):
        rj.Hamiltonian(chain)
    with pytest.raises(ValueError, match="radial_inertia"):
        rj.Hamiltonian(cases.heavy_top(), "one")  # pyright: ignore
    assert unknown_names(rj.Hamiltonian(cases.heavy_top()))[4:] == ["p1", "p2", "p3", "p4"]
