"""Models and solutions under plain JAX, without Equinox's filters, whatever functions they hold."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces import multibody
from joints import cases as joints

import rigidjax as rj

AXIS, ZERO = (0.0, 0.6, 0.8), (0.0, 0.0, 0.0)
TIME = jnp.array(0.3)


class Network(eqx.Module):
    """A law with parameters and with a function among its fields."""

    weights: jax.Array
    activation: object

    def __call__(self, t, coordinate, rate):
        return jnp.sum(self.weights * self.activation(jnp.stack([t, coordinate, rate])))


class Tug(rj.forces.AbstractForce):
    """A force of a user, with a function as a field that is not static."""

    law: object

    def body_names(self):
        return ("one",)

    def loads(self, t, bodies, kinematics):
        return rj.forces.Loads(jnp.stack([self.law(t), 0.0 * t, 0.0 * t])[None])


class Pull(Tug):
    body: str = "one"


def quadratic_motion(t):
    return 0.4 * t * t


JOINTS = {
    **joints.KINDS,
    "driven Revolute by a function": lambda a, b: rj.Revolute(a, b, ZERO, AXIS, quadratic_motion),
    "driven Prismatic by a partial": lambda a, b: rj.Prismatic(
        a, b, AXIS, functools.partial(jnp.multiply, 0.4)
    ),
}
HINGE = rj.Revolute("ground", "one", ZERO, AXIS, name="hinge")
FORCES = {
    "Motor, time": lambda: rj.Motor(HINGE, jnp.sin),
    "Motor, law": lambda: rj.Motor(HINGE, lambda t, q, v: -v),
    "Motor, partial": lambda: rj.Motor(
        HINGE, jax.tree_util.Partial(lambda k, t: k * t, jnp.ones(()))
    ),
    "Motor, network": lambda: rj.Motor(HINGE, Network(jnp.ones(3), jnp.tanh)),
    "Motor, series": lambda: rj.Motor(HINGE, rj.FourierSeries(2.0, [1.0])),
    "TorsionSpring": lambda: rj.TorsionSpring(HINGE, 2.0),
    "Torque": lambda: rj.Torque("one", lambda t, R, omega: -omega),
    "PointForce": lambda: rj.PointForce("two", ZERO, lambda t: jnp.ones(3) * t),
    "Potential": lambda: rj.Potential(lambda x, R: jnp.sum(x * x)),
    "Gravity": lambda: rj.Gravity((0.0, 0.0, -9.81)),
    "Spring": lambda: rj.Spring("one", "two", ZERO, AXIS, 2.0),
    "Bushing": lambda: rj.Bushing("one", "two", ZERO, 2.0),
    "Drag": lambda: rj.Drag("one", 0.3),
    "Tug": lambda: Tug(quadratic_motion),
}


def check(tree):
    """Every leaf is an array of floats, and what is static can be hashed and compared."""
    leaves, structure = jax.tree.flatten(tree)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves), structure
    assert all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    assert hash(structure) == hash(jax.tree.structure(tree))


@pytest.mark.parametrize("kind", JOINTS)
@pytest.mark.parametrize("forms", [rj.NullSpace, rj.Absolute])
def test_systems_with_every_joint_under_transformations(kind, forms):
    check(forms(rj.System(multibody.BODIES, JOINTS[kind]("one", "two"))))


@pytest.mark.parametrize("kind", FORCES)
def test_systems_with_every_force_under_transformations(kind):
    check(rj.NullSpace(rj.System(multibody.BODIES, HINGE, FORCES[kind]())))


def test_fixed_point_bodies():
    check(rj.FixedPointBody((3.0, 2.0, 1.0), lambda R: R[2, 2], lambda t, R, omega: -omega))


def pendulum(motion=None, torque=jnp.sin):
    """A driven arm with a link on it, and a motor on the link."""
    arm = rj.Revolute("ground", "one", ZERO, AXIS, motion, name="arm")
    link = rj.Revolute("one", "two", (0.5, 0.0, 0.0), AXIS, name="link")
    bodies = (
        rj.Body("one", 2.0, (0.5, 0.4, 0.3), (0.3, 0.0, 0.0)),
        rj.Body("two", 1.0, (0.2, 0.2, 0.3), (0.8, 0.0, 0.0)),
    )
    forces = [rj.Gravity((0.0, 0.0, -9.81)), rj.Motor(link, torque)]
    return rj.System(bodies, [arm, link], forces)


def top():
    return rj.FixedPointBody((2.0, 2.0, 1.0), lambda R: R[2, 2], lambda t, R, omega: -0.1 * omega)


DRIVEN = rj.NullSpace(pendulum(quadratic_motion))
TOP = rj.NullSpace(top())
SOLVERS = {
    "Dopri5": (diffrax.Dopri5(), DRIVEN),
    "SimoWong": (rj.solvers.SimoWong(), TOP),
    "EnergyMidpoint": (rj.solvers.EnergyMidpoint(), TOP),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_takes_models_and_returns_solutions(name):
    """Traced by plain JAX, without compiling: model and state in, the whole `Solution` out."""
    solver, model = SOLVERS[name]
    dt = None if name == "Dopri5" else 0.01

    def run(model, state):
        steps = {"rtol": 1e-6, "atol": 1e-6} if dt is None else {"dt": dt}
        return rj.simulate(model, state, 0.1, solver=solver, **steps)

    system = model.system
    state = (
        system.reference_state()
        if isinstance(system, rj.System)
        else rj.State(angular_velocity=(0.1, 0.2, 3.0))
    )
    found = jax.eval_shape(run, model, state)
    assert found.ts.shape == (1,)
    assert jax.tree.structure(found.model) == jax.tree.structure(model)


def test_every_problem():
    """As they are, without a function among their fields."""
    for name, build in rj.problems.all().items():
        check((name, rj.NullSpace(build().system))[1])


# One arm whose angle is prescribed: nothing is left to integrate but its position.
ARM = rj.NullSpace(rj.System(pendulum().bodies[0], pendulum(quadratic_motion).joints[0]))


Y = ARM.encode(ARM.system.reference_state())


def end(model):
    state = model.system.reference_state()
    return rj.simulate(model, state, 0.3, dt=0.3, solver=diffrax.Midpoint(), projection=False)


def test_batches_of_models():
    """`jit` of `vmap` and of `lax.map` over whole models, whole solutions returned."""
    models = jax.tree.map(lambda x: jnp.stack([x, x]), ARM)
    masses = jnp.array([1.0, 3.0])
    models = eqx.tree_at(lambda m: m.system.bodies[0].mass, models, masses)
    batch, mapped = jax.jit(lambda m: (jax.vmap(end)(m), jax.lax.map(end, m)))(models)
    assert isinstance(batch, rj.Solution) and isinstance(mapped, rj.Solution)
    np.testing.assert_array_equal(batch.model.system.bodies[0].mass, masses)
    np.testing.assert_allclose(batch.ys, mapped.ys, rtol=1e-12, atol=1e-12)
    # A midpoint step, p = p0 + h/2 (omega p) with omega = 0.8 t at t = h/2.
    half = 0.5 * 0.3 * 0.8 * 0.15 * np.array(AXIS)
    np.testing.assert_allclose(batch.ys[1, 0, 4:7], half, rtol=1e-12, atol=1e-12)


def test_derivatives_by_models():
    """`grad` and `jvp` over a whole model with a motion, in forms that JAX alone knows."""
    run = lambda model: jnp.sum(end(model).ys)  # noqa: E731
    gradient, (value, rate) = jax.eval_shape(
        lambda model: (jax.grad(run)(model), jax.jvp(run, (model,), (model,))), ARM
    )
    assert jax.tree.structure(gradient) == jax.tree.structure(ARM)
    assert value.shape == rate.shape == ()
    field = lambda model: jnp.sum(model.vector_field(TIME, Y) ** 2)  # noqa: E731
    direction = jax.tree.map(jnp.ones_like, ARM)
    gradient = jax.jit(jax.grad(field))(ARM)
    rate = jax.jit(lambda m: jax.jvp(field, (m,), (direction,))[1])(ARM)
    total = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(gradient))
    np.testing.assert_allclose(total, rate, rtol=1e-10)


def test_bound_methods_as_laws():
    """Bound methods of a model with arrays, which is not hashable."""
    # Half of the inertia about the hinge, 0.336 + 2 * 0.3^2, times the square of 0.8 t.
    energy = 0.5 * (0.336 + 0.18) * 0.24**2
    np.testing.assert_allclose(jax.jit(ARM.energy)(TIME, Y), energy, rtol=1e-12)


def test_invalid_fields_raise():
    match = (
        r"`Pull.body` is 'one', which is neither .* Declare the field as `eqx.field\(static=True"
    )
    with pytest.raises(TypeError, match=match):
        rj.System(multibody.BODIES, (), Pull(quadratic_motion))


def test_unhashable_functions_raise():
    class Law:
        __hash__ = None

        def __call__(self, t):
            return t

    with pytest.raises(TypeError, match=r"`Motor\(torque=...\)` must have a hash.*equinox.Module"):
        rj.Motor("hinge", Law())
