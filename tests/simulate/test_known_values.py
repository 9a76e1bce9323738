"""Values that are known, also those under `jax.grad` outside `jax.jit`, are checked at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

ARM = rj.Body.box("arm", (1.0, 0.1, 0.05), mass=1.0, position=(0.5, 0, 0))


def model_of(damping):
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, 1, 0), name="hinge", damping=damping)
    return rj.NullSpace(rj.System(ARM, hinge, rj.Gravity((0, 0, -9.81))))


def end(damping, shift=0.0, **options):
    model = model_of(damping)
    state = model.multibody.reference_state()._replace(position=jnp.array([[0.5 + shift, 0, 0]]))
    return rj.simulate(model, state, 0.1, **options).ys[-1].sum()


def test_bad_values_raise_before_the_run():
    for transformed in (jax.grad(end), lambda x: jax.jvp(end, (x,), (1.0,))):
        with pytest.raises(
            ValueError, match=r"`Revolute\(damping=...\)` must not be negative. Got"
        ):
            transformed(-0.1)


@pytest.mark.parametrize("options", [{}, {"throw": False}, {"dt": 1e-2}])
def test_a_start_that_violates_a_joint_raises(options):
    for function in (end, jax.grad(end)):
        with pytest.raises(ValueError, match="violate the joint 'hinge'.* Got 0.02"):
            function(0.1, 0.01, **options)
    batch = jax.vmap(lambda shift: end(0.1, shift, throw=False))(jnp.array([0.0, 0.01]))
    assert np.isfinite(batch[0]) and not np.isfinite(batch[1])


def test_derivatives_of_shapes():
    """Sides s, 2 s, 3 s: the mass is 6 d s^3, the sum of the moments of inertia 14 d s^5."""

    def sums(density, size):
        body = rj.Body.box("a", jnp.array([1.0, 2.0, 3.0]) * size, density=density)
        return body.mass + body.inertia.sum()

    expected = 6 + 14, 0.3 * (18 + 70)
    for mode in (jax.grad, jax.jacfwd):
        for wrap in (lambda f: f, jax.jit):
            by = wrap(mode(sums, (0, 1)))(0.3, 1.0)
            np.testing.assert_allclose(by, expected, rtol=1e-14)
    batch = jax.vmap(jax.grad(sums))(jnp.array([0.3, 0.6]), jnp.ones(2))
    np.testing.assert_allclose(batch, [20, 20], rtol=1e-14)
    second = jax.hessian(sums)(0.3, 1.0)
    np.testing.assert_allclose(second, 0.0, atol=1e-12)
