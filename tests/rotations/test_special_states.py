"""Special states of parametrizations: derivatives there, the distance to them; single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations import cases

from rigidjax.rotations import EulerAngles, Quaternion, so3

SINGLE = jnp.float32
few_rotations = pytest.mark.parametrize("rotation", cases.FEW, ids=cases.name)


def special_states(rotation):
    """Return zero rotation and rotations by pi about three axes, where the parametrization covers
    them.
    """
    turns = [[1.0, 0.0, 0.0, 0.0]]
    if cases.name(rotation) not in ("RodriguesParameters", "LinearParameters"):
        turns += [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.6, 0.0, 0.8]]
    a = jax.vmap(rotation.from_quaternion)(jnp.array(turns))
    if isinstance(rotation, EulerAngles):
        # Singular states of this sequence have a separate test.
        a = a[np.asarray(jax.vmap(rotation.singularity)(a) > 1e-3)]
        a = jnp.concatenate([a, rotation.center()[None]])
    return a


def test_derivatives_at_special_states(rng):
    """Two derivatives at zero rotation and at angle pi: finite, forward = reverse = differences.

    Along random directions: a derivative that is not finite shows in every direction.
    """
    rotation = Quaternion()
    a = special_states(rotation)
    u, v = jnp.asarray(rng.normal(size=(2, *a.shape)))
    listed = cases.functions(rotation, "space")

    def everything(a):
        return jnp.concatenate([jnp.ravel(function(a)) for function in listed.values()])

    @jax.jit
    @jax.vmap
    def derivatives(a, u, v):
        def first(a):
            return jax.jvp(everything, (a,), (u,))[1]

        forward, second = jax.jvp(first, (a,), (v,))
        values, pull_back = jax.vjp(everything, a)
        weights = jnp.cos(jnp.arange(values.size))
        return forward, second, weights @ forward - pull_back(weights)[0] @ u

    first, second, difference = derivatives(a, u, v)
    assert jnp.isfinite(first).all()
    assert jnp.isfinite(second).all()
    assert jnp.abs(difference).max() < 1e-11 * (1.0 + jnp.abs(first).max())
    # At pi the logarithm and the half rotation of the smaller angle are cut.
    cut = ("from_matrix", "from_quaternion", "project")
    smooth = np.concatenate(
        [np.full(np.size(function(a[0])), k not in cut) for k, function in listed.items()]
    )
    h = 1e-4
    differences = (derivatives(a + h * v, u, v)[0] - derivatives(a - h * v, u, v)[0]) / (2.0 * h)
    scale = 1.0 + jnp.abs(second).max()
    assert jnp.abs(differences - second)[:, smooth].max() < 1e-6 * scale


@few_rotations
def test_singularity_has_finite_derivatives(rotation):
    """At the centre too, where it is the cone over the angle: the derivative there is zero."""
    a = jnp.concatenate([rotation.center()[None], special_states(rotation)])
    for derivative in (jax.jacfwd(rotation.singularity), jax.hessian(rotation.singularity)):
        assert jnp.isfinite(jax.jit(jax.vmap(derivative))(a)).all()


@pytest.mark.parametrize("rotation", cases.SOME, ids=cases.name)
def test_singularity_and_center(rotation, rng):
    center = rotation.center()
    assert center.shape == (rotation.num_coordinates,)
    farthest = {"Quaternion": np.inf, "RotationVector": 2.0 * np.pi}.get(
        cases.name(rotation), 0.5 * np.pi
    )
    np.testing.assert_allclose(rotation.singularity(center), farthest, rtol=1e-15)
    assert rotation.singularity_function(center) > 0.0
    a = cases.coordinates(rotation, rng, 50)
    angle = np.asarray(jax.jit(jax.vmap(rotation.singularity))(a))
    assert (angle > 0.0).all()
    assert (angle <= farthest).all()
    if rotation in cases.VECTORIAL:
        # Distance and rotation angle add up to the singular angle.
        log = jax.jit(jax.vmap(lambda a: so3.log_quaternion(rotation.to_quaternion(a))))
        turned = np.linalg.norm(log(a), axis=1)
        np.testing.assert_allclose(angle + turned, farthest, rtol=1e-12)
        assert (jax.jit(jax.vmap(rotation.singularity_function))(a) > 0.0).all()


def test_singularity_changes_sign_where_a_step_can_cross():
    for sequence, singular in (("ZXZ", np.pi), ("ZXZ", 0.0), ("ZYX", np.pi / 2)):
        rotation = EulerAngles(sequence)
        before = rotation.singularity_function(jnp.array([0.3, singular - 1e-3, 0.1]))
        after = rotation.singularity_function(jnp.array([0.3, singular + 1e-3, 0.1]))
        np.testing.assert_allclose(abs(before), 1e-3, rtol=1e-6)
        assert before * after < 0.0
    vector, linear = cases.VECTORIAL[0], cases.VECTORIAL[3]
    axis = jnp.array([0.6, 0.0, 0.8])
    assert vector.singularity_function((2.0 * jnp.pi - 1e-3) * axis) > 0.0
    assert vector.singularity_function((2.0 * jnp.pi + 1e-3) * axis) < 0.0
    for turns in (0.9, 1.1, 1.4, 1.6, 2.2):
        expected = 2.0 * np.pi * abs(turns - (1 if turns < 1.5 else 2))
        np.testing.assert_allclose(vector.singularity(2.0 * jnp.pi * turns * axis), expected)
    assert linear.singularity_function(0.999 * axis) > 0.0
    assert linear.singularity_function(1.001 * axis) < 0.0
    assert linear.singularity(1.001 * axis) < 0.0


@pytest.mark.float32
@few_rotations
def test_single_precision_is_preserved(rotation, rng):
    @jax.jit
    def evaluate(p):
        a = rotation.from_quaternion(p)
        both = (cases.functions(rotation, rates, SINGLE) for rates in ("body", "space"))
        return [{key: function(a) for key, function in listed.items()} for listed in both]

    for results in evaluate(cases.quaternions(rng, 1, 1.2)[0].astype(SINGLE)):
        for key, result in results.items():
            assert result.dtype == SINGLE, key


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
