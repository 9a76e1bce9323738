"""Regression whose solutions are bodies that exist."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.arms import FRICTION, PLANTED, arm_data, excitation, planar_arm
from scipy.optimize import minimize

import rigidjax as rj
from rigidjax import identification as ident


def test_consistent_solution_of_exact_data_is_exact(exact_arm):
    linear = ident.regress(exact_arm, noise=[0.01, 0.01])
    found = ident.consistent_regression(linear, weight=1e-6)
    truth = linear.base.combinations @ PLANTED
    np.testing.assert_allclose(linear.base.combinations @ found.parameters, truth, atol=1e-8)
    assert found.terms["shoulder.viscous"] == pytest.approx(0.3, abs=1e-8)
    rebuilt = ident.joint_data(found.system, *excitation(2), np.zeros((200, 2)))
    own = rebuilt.matrix @ np.asarray(ident.inertial_parameters(found.system))
    friction = exact_arm.matrix[:, :, 20:] @ found.parameters[20:]
    np.testing.assert_allclose(own + friction, exact_arm.torques, atol=1e-6)


@pytest.mark.parametrize("weight", [1e-4, 1.0, 100.0])
def test_solution_is_positive_definite(weight):
    """Few and very noisy torques, of which the linear solution makes masses that are negative."""
    for seed in range(5):
        linear = ident.regress(arm_data(3.0, 12, seed))
        found = ident.consistent_regression(linear, weight=weight)
        for body in found.bodies.values():
            assert np.linalg.eigvalsh(body.pseudo_inertia())[0] > 0
        assert all(value > 0 for label, value in found.terms.items() if "offset" not in label)
    assert min(linear.values[:3]) < 0 or min(linear.values[6:10]) < 0


def test_minimum_agrees_with_log_cholesky(noisy_arm):
    """The other coordinates, another minimiser, another derivative."""
    weight = 0.5
    found = ident.consistent_regression(noisy_arm, weight=weight)
    data, system = noisy_arm.data, noisy_arm.data.system
    prior = jnp.stack([b.mass_properties.pseudo_inertia() for b in system.bodies])
    sizes = np.abs(noisy_arm.parameters[20:24])

    def cost(x):
        bodies = [
            rj.MassProperties.from_log_cholesky(x[:10]),
            rj.MassProperties.from_log_cholesky(x[10:20]),
        ]
        friction = sizes * jnp.exp(x[20:24])
        pi = jnp.concatenate([*(b.parameters() for b in bodies), friction, x[24:]])
        left = (data.matrix @ pi - data.torques) / jnp.asarray(noisy_arm.noise)[None]
        total = 0.5 * jnp.sum(left**2)
        for body, start in zip(bodies, prior, strict=True):
            ratio = jnp.linalg.solve(start, body.pseudo_inertia())
            total += weight * (jnp.trace(ratio) - jnp.linalg.slogdet(ratio)[1] - 4)
        return total + weight * jnp.sum(jnp.exp(x[20:24]) - x[20:24] - 1)

    start = np.concatenate(
        [*(b.mass_properties.log_cholesky() for b in system.bodies), np.zeros(6)]
    )
    slope = jax.jit(jax.value_and_grad(cost))
    result = minimize(
        lambda x: tuple(map(np.asarray, slope(x))),
        start,
        jac=True,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    left = (data.torques_of(found.parameters) - data.torques) / noisy_arm.noise
    reached = 0.5 * np.sum(left**2) + weight * found.divergence
    assert result.fun == pytest.approx(reached, rel=1e-10)
    np.testing.assert_allclose(np.exp(result.x[20:24]) * sizes, found.parameters[20:24], rtol=1e-5)
    np.testing.assert_allclose(np.exp(2 * result.x[0]), found.bodies["upper"].mass, rtol=1e-5)


def test_prior_does_not_depend_on_the_axes(noisy_arm):
    """The arm described in rotated frames gives the same bodies."""
    p = np.array([0.5, 0.5, 0.5, 0.5])
    bodies = []
    for body in planar_arm().bodies:
        turned = body.mass_properties.transformed(_matrix(p).T, jnp.zeros(3))
        bodies.append(rj.Body(body.name, body.mass, turned.inertia, body.position, p))
    system = rj.System(bodies, planar_arm().joints, planar_arm().forces)
    moved = excitation(2, 25)
    data = ident.joint_data(system, *moved, noisy_arm.data.torques, terms=FRICTION)
    other = ident.consistent_regression(ident.regress(data, noise=[0.5, 0.5]))
    found = ident.consistent_regression(noisy_arm)
    assert other.divergence == pytest.approx(found.divergence, rel=1e-9)
    for name, body in found.bodies.items():
        back = other.bodies[name].transformed(_matrix(p), jnp.zeros(3))
        np.testing.assert_allclose(back.parameters(), body.parameters(), atol=1e-9)


def _matrix(p):
    return rj.Quaternion().to_matrix(jnp.asarray(p))
