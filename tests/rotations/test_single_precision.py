"""Dtypes are kept: float32 in, float32 out, whatever the default precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations import cases

from rigidjax.rotations import so3

SINGLE = jnp.float32


@pytest.mark.float32
@pytest.mark.parametrize("rotation", cases.FEW, ids=cases.name)
def test_single_precision_is_preserved(rotation, rng):
    p = cases.quaternions(rng, 1, 1.2)[0].astype(SINGLE)
    omega = jnp.asarray(rng.normal(size=3), SINGLE)
    inertia = jnp.array([3.0, 2.5, 1.5], SINGLE)
    results, angular_velocity, turning = jax.jit(lambda *x: everything(rotation, *x))(
        p, omega, inertia
    )
    for n, result in enumerate(results):
        assert result.dtype == SINGLE, n
    np.testing.assert_allclose(angular_velocity, omega, atol=1e-5)
    np.testing.assert_allclose(turning, omega, atol=1e-5)


def everything(rotation, p, omega, inertia):
    """All that a parametrization has, and the angular velocity in two ways."""
    a = rotation.from_quaternion(p)
    R = rotation.to_matrix(a)
    a_dot = rotation.rate(a, omega)
    results = [a, R, a_dot, rotation.from_matrix(R), rotation.to_quaternion(a)]
    for rates in ("body", "space"):
        results += [
            rotation.rate(a, omega, rates),
            rotation.null_space(a, rates),
            rotation.tangent(a, rates),
            rotation.angular_velocity(a, a_dot, rates),
            rotation.constraint(a, rates),
            rotation.constraint_jacobian(a, rates),
            rotation.acceleration(a, omega, omega, rates),
            rotation.angular_acceleration(a, a_dot, a_dot, rates),
        ]
    results += [rotation.mass_matrix(a, inertia), rotation.mass_matrix(a, jnp.diag(inertia))]
    results += [rotation.project(a), rotation.project_rate(a, a_dot)]
    results += [rotation.singularity(a), rotation.singularity_function(a)]
    results += [rotation.half_rotation(a)]
    _, R_dot = jax.jvp(rotation.to_matrix, (a,), (a_dot,))
    return results, rotation.angular_velocity(a, a_dot), so3.unskew(R.T @ R_dot)


@pytest.mark.float32
def test_exponential_in_single_precision(rng):
    psi = jnp.asarray(rng.normal(size=3), SINGLE)
    for result in (
        so3.exp(psi),
        so3.exp_quaternion(psi),
        so3.log(so3.exp(psi)),
        so3.dexp(psi, psi),
        so3.dexp_inv(psi, psi),
    ):
        assert result.dtype == SINGLE
    np.testing.assert_allclose(so3.log(so3.exp(psi)), psi, atol=2e-6)
    np.testing.assert_allclose(so3.dexp_inv(psi, so3.dexp(psi, psi[::-1])), psi[::-1], atol=2e-6)
