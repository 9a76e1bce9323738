"""Equations of index 1, 2 and 3: derived by automatic differentiation, against index 0."""

import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

T = jnp.asarray(0.3)


def pendulum():
    """A free body with a second one on a ball joint and a third on a driven hinge."""
    bodies = [
        rj.Body("a", 2.0, (0.5, 0.7, 0.9), orientation=(0.5, 0.5, 0.5, 0.5)),
        rj.Body("b", 1.0, (0.3, 0.2, 0.4), position=(1.0, 0.2, -0.3)),
        rj.Body("c", 0.5, (0.1, 0.1, 0.15), position=(-0.5, 0.4, 0.1)),
    ]
    joints = [
        rj.Spherical("a", "b", (0.5, 0.1, 0.0)),
        rj.Revolute("a", "c", (-0.2, 0.2, 0.0), (0.0, 1.0, 1.0), motion=lambda t: 0.5 * jnp.sin(t)),
    ]
    push = rj.PointForce("b", (0.1, 0.0, 0.2), (1.0, 2.0, -1.0))
    return rj.System(bodies, joints, (rj.Gravity((0.0, 0.0, -9.81)), push))


def test_vector_field_raises():
    model = rj.Absolute(pendulum(), index=3)
    y = jnp.zeros(model.num_unknowns)
    with pytest.raises(ValueError, match=r"`Absolute\(index=3\)` is a differential-algebraic"):
        model.vector_field(T, y)
    with pytest.raises(ValueError, match="which `Dopri8` does not integrate"):
        rj.simulate(model, model.system.reference_state(), 1.0)
    with pytest.raises(ValueError, match="writes the equations of single bodies"):
        rj.EulerParameters(pendulum())


def test_product_with_the_mass_matrix():
    """Without the matrix and with it."""
    system = pendulum()
    model = rj.Absolute(system, index=1)
    rng = np.random.default_rng(3)
    y = rng.normal(size=model.num_unknowns)
    state = rj.consistent_state(system, system.reference_state(), T)
    y[: model.layout.size] = model.encode(state, T)[: model.layout.size]
    term = rj.solvers.dae_term(model, state, T, check_start=False)
    y, rate = jnp.asarray(y), jnp.asarray(rng.normal(size=model.num_unknowns))
    expected = term.mass_matrix(T, y, None) @ rate
    np.testing.assert_allclose(term.product(T, y, rate, None), expected, rtol=0, atol=1e-12)
