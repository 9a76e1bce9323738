"""Equations of index 1, 2 and 3: derived by automatic differentiation, against index 0."""

import itertools

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


@pytest.fixture(scope="module")
def motion():
    """A system and a state that its joints allow at `T`."""
    system = pendulum()
    start = system.reference_state()
    rng = np.random.default_rng(7)
    guess = rj.State(
        start.position, start.orientation, rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    )
    return system, rj.consistent_state(system, guess, T)


def test_vector_field_raises():
    model = rj.Absolute(pendulum(), index=3)
    y = jnp.zeros(model.num_unknowns)
    with pytest.raises(ValueError, match=r"`Absolute\(index=3\)` is a differential-algebraic"):
        model.vector_field(T, y)
    with pytest.raises(ValueError, match="which `Dopri8` does not integrate"):
        rj.simulate(model, model.system.reference_state(), 1.0)
    with pytest.raises(ValueError, match=r"must be 0, 1, 2 or 3; got 4"):
        rj.Absolute(pendulum(), index=4)
    with pytest.raises(ValueError, match="writes the equations of single bodies"):
        rj.EulerParameters(pendulum())
    with pytest.raises(ValueError, match="is for bodies without joints"):
        rj.NullSpace(pendulum(), rates="space")


def skating():
    """`pendulum` with one body that does not slip sideways."""
    system = pendulum()

    def slip(t, poses, twists):
        return (poses["b"][1][:, 1] @ twists["b"][0]) + 0.3 * twists["a"][1][2] + t

    skate = rj.VelocityConstraint(slip, ("a", "b"), name="skate")
    return rj.System(system.bodies, (*system.joints, skate), system.forces)


def loop():
    """Three bars on four hinges with parallel axes: constraints that others imply."""
    points = [(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.5, 1.0, 0.0), (1.0, 0.0, 0.0)]
    middle = (np.mean(pair, axis=0) for pair in itertools.pairwise(points))
    bars = [rj.Body(f"bar {k}", 1.0, (0.1, 0.1, 0.15), position=p) for k, p in enumerate(middle)]
    names = ["ground", *(bar.name for bar in bars), "ground"]
    hinges = [
        rj.Revolute(*names[k : k + 2], point, (0.0, 0.0, 1.0)) for k, point in enumerate(points)
    ]
    return rj.System(bars, hinges)


SYSTEMS = {
    "motion": pendulum,
    "velocities": skating,
    "loop": loop,
}


@pytest.mark.parametrize(
    "name, index", [("motion", 1), ("velocities", 1), ("loop", 1), ("loop", 2)]
)
@pytest.mark.exhaustive("velocities-1", "loop-1")
@pytest.mark.exhaustive("loop-2")
def test_product_with_the_mass_matrix(name, index):
    """Without the matrix and with it; the loop has constraints that the others imply."""
    system = SYSTEMS[name]()
    model = rj.Absolute(system, index=index)
    rng = np.random.default_rng(3)
    y = rng.normal(size=model.num_unknowns)
    state = rj.consistent_state(system, system.reference_state(), T)
    y[: model.layout.size] = model.encode(state, T)[: model.layout.size]
    term = rj.solvers.dae_term(model, state, T, check_start=False)
    y, rate = jnp.asarray(y), jnp.asarray(rng.normal(size=model.num_unknowns))
    expected = term.mass_matrix(T, y, None) @ rate
    np.testing.assert_allclose(term.product(T, y, rate, None), expected, rtol=0, atol=1e-12)
