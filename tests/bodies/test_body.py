"""Body and FixedPointBody: construction, messages, transforms, equations of motion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations.test_operation_counts import count
from scipy.spatial.transform import Rotation

from rigidjax.bodies import (
    AbstractPotential,
    AxialGravityPotential,
    Body,
    ConstantMoment,
    FixedPointBody,
    GravityPotential,
    LinearDrag,
    QuadraticDrag,
    angular_momentum,
    euler_equations,
    moment_from_gradient,
    rotate_inertia,
    solve_inertia,
)
from rigidjax.checks import check, check_all, float_array

MOMENTS = (2.0, 3.0, 4.0)
GOOD = {"name": "a", "mass": 1.0, "inertia": MOMENTS}


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"name": 3}, TypeError, r"Body\(name=...\)` must be a string; got 3"),
        ({"name": "ground"}, ValueError, 'other than "ground"'),
        ({"name": ""}, ValueError, "non-empty name"),
        ({"mass": -1.0}, ValueError, r"Body\(mass=...\)` must be positive, in kg. Got -1"),
        ({"mass": 0.0}, ValueError, r"has inertia must be positive, in kg. Got 0\.$"),
        ({"mass": np.nan}, ValueError, r"Body\(mass=...\)` must be finite"),
        ({"mass": np.inf}, ValueError, r"Body\(mass=...\)` must be finite"),
        ({"mass": (1.0,)}, ValueError, r"mass=...\)` must have shape \(\); got shape \(1,\)"),
        ({"mass": "heavy"}, TypeError, "must be real numbers; got 'heavy'"),
        ({"mass": None}, TypeError, "must be real numbers; got None"),
        ({"mass": 1j}, TypeError, "complex"),
        ({"inertia": (1.0, 2.0)}, ValueError, r"shape \(3,\) or \(3, 3\); got shape \(2,\)"),
        ({"inertia": ((1.0, 2.0), (1.0,))}, ValueError, "rectangular array"),
        ({"inertia": (1.0, -1.0, 1.0)}, ValueError, "must not be negative"),
        ({"inertia": (1.0, np.nan, 1.0)}, ValueError, r"inertia=...\)` must be finite"),
        ({"inertia": np.full((3, 3), np.nan)}, ValueError, r"inertia=...\)` must be finite"),
        ({"inertia": np.eye(3) + 0.1 * np.eye(3, k=1)}, ValueError, "must be symmetric"),
        ({"position": (0.0, 0.0)}, ValueError, r"position=...\)` must have shape \(3,\)"),
        ({"velocity": (0.0, 0.0, np.nan)}, ValueError, r"velocity=...\)` must be finite"),
        ({"angular_velocity": 1.0}, ValueError, r"angular_velocity=...\)` must have shape \(3,\)"),
        ({"orientation": (0.0, 0.0, 0.0, 0.0)}, ValueError, "zero quaternion"),
        ({"orientation": (np.nan, 0.0, 0.0, 0.0)}, ValueError, "orientation=...\\)` must be fin"),
        ({"orientation": (1.0, 0.01, 0.0, 0.0)}, ValueError, "unit quaternion.*divide it"),
        ({"orientation": (1.0, 0.0, 0.0)}, ValueError, r"must have shape \(4,\)"),
    ],
)
def test_invalid_arguments_raise(change, error, match):
    with pytest.raises(error, match=match):
        Body(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"mass": -1.0}, "must be positive, in kg"),
        ({"orientation": (0.0, 0.0, 0.0, 0.0)}, "zero quaternion"),
        ({"orientation": (1.0, 0.01, 0.0, 0.0)}, "unit quaternion"),
        ({"position": (np.inf, 0.0, 0.0)}, r"position=...\)` must be finite"),
        ({"inertia": np.eye(3) + 0.1 * np.eye(3, k=1)}, "must be symmetric"),
    ],
)
def test_invalid_traced_arguments_raise(change, match):
    key, value = next(iter(change.items()))
    build = eqx.filter_jit(lambda v: getattr(Body(**{**GOOD, key: v}), key))
    with pytest.raises(eqx.EquinoxRuntimeError, match=match):
        build(jnp.asarray(value))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"inertia": (1.0, 1.0, 0.0)}, ValueError, r"must be positive \(definite\)"),
        ({"inertia": np.diag([1.0, 1.0, 0.0])}, ValueError, r"must be positive \(definite\)"),
        ({"potential": 3.0}, TypeError, r"potential=...\)` must be a function or a module; got 3"),
        ({"moment": (1.0, 0.0, 0.0)}, TypeError, r"moment=...\)` must be a function or a module"),
    ],
)
def test_invalid_fixed_point_arguments_raise(arguments, error, match):
    with pytest.raises(error, match=match):
        FixedPointBody(**{"inertia": MOMENTS, **arguments})


def test_invalid_return_shapes_raise():
    with pytest.raises(ValueError, match=r"must return shape \(3,\).*got shape \(2,\)"):
        FixedPointBody(MOMENTS, moment=lambda t, R, omega: omega[:2])
    with pytest.raises(ValueError, match=r"`potential\(R\)` must return a scalar.*shape \(3,\)"):
        FixedPointBody(MOMENTS, potential=lambda R: R[0])


@pytest.mark.float32
def test_leaves_and_defaults():
    body = Body("a", 1, (2, 3, 4))
    leaves = jax.tree.leaves(body)
    assert len(leaves) == 6
    assert all(leaf.dtype == jnp.result_type(float) for leaf in leaves)
    np.testing.assert_array_equal(body.orientation, [1, 0, 0, 0])
    assert body.inertia_tensor.shape == (3, 3)
    # Arrays of less precision are widened, so that a body has one precision.
    single = Body("a", 1.0, np.array(MOMENTS, np.float32), jnp.zeros(3, jnp.float16))
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {jnp.result_type(float)}
    np.testing.assert_array_equal(single.inertia, np.array(MOMENTS, np.float32))


def test_nearly_unit_quaternion_is_normalised():
    p = np.array([0.5, 0.5, 0.5, 0.5]) * (1 + 9e-7)
    body = Body("a", 1.0, MOMENTS, orientation=p)
    np.testing.assert_allclose(jnp.linalg.norm(body.orientation), 1.0, rtol=1e-15)
    with pytest.raises(ValueError, match="unit quaternion"):
        Body("a", 1.0, MOMENTS, orientation=p * (1 + 1e-6))


def test_tree_operations_skip_checks():
    body = Body(**GOOD)
    bad = eqx.tree_at(lambda b: b.mass, body, jnp.array(-1.0))
    assert bad.mass == -1.0
    mapped = jax.tree.map(lambda x: None, body)
    assert mapped.mass is None
    leaves, structure = jax.tree.flatten(body)
    assert jax.tree.unflatten(structure, [object()] * len(leaves)).name == "a"
    halves = eqx.partition(FixedPointBody(MOMENTS, moment=LinearDrag(1.0)), eqx.is_array)
    assert eqx.combine(*halves).moment.coefficient == 1.0


def test_construction_under_transforms():
    def energy(mass, inertia):
        body = Body("a", mass, inertia, angular_velocity=(1.0, 2.0, 3.0))
        return body.kinetic_energy(body.velocity + 1.0, body.angular_velocity)

    inertia = jnp.array(MOMENTS)
    expected = 0.5 * (2.0 * 3 + 2 + 3 * 4 + 4 * 9)
    np.testing.assert_allclose(jax.jit(energy)(2.0, inertia), expected)
    batch = jax.jit(jax.vmap(energy, (0, None)))(jnp.array([2.0, 2.0]), inertia)
    np.testing.assert_allclose(batch, [expected, expected])
    gradient = jax.jit(jax.grad(energy, argnums=(0, 1)))(2.0, inertia)
    np.testing.assert_allclose(gradient[0], 1.5)
    np.testing.assert_allclose(gradient[1], [0.5, 2.0, 4.5])
    # Also with the moments put together from traced and known numbers.
    mixed = jax.jit(lambda i: Body("a", 1.0, [i, 3.0, 4.0]).inertia)(2.0)
    np.testing.assert_allclose(mixed, MOMENTS)


def test_second_derivative_through_the_quaternion_check():
    p = jnp.array([0.5, 0.5, 0.5, 0.5])
    hessian = jax.jit(jax.hessian(lambda p: Body("a", 1.0, MOMENTS, orientation=p).orientation[0]))(
        p
    )
    # Second derivative of p0/|p|.
    q, e = np.asarray(p), np.eye(4)[0]
    expected = 3 * 0.5 * np.outer(q, q) - np.outer(e, q) - np.outer(q, e) - 0.5 * np.eye(4)
    np.testing.assert_allclose(hessian, expected, atol=1e-14)


def test_checks_pass_values_through():
    assert check(3.0, lambda x: x > 0, "positive") == 3.0
    assert float_array([1, 2], "x").dtype == jnp.result_type(float)
    with pytest.raises(ValueError, match=r"below two\. Got 3"):
        check_all(3.0, [(lambda x: x > 0, "positive."), (lambda x: x < 2, "below two.")])

    @eqx.filter_jit
    def check_traced(x):
        return check_all(x, [(lambda x: x > 0, "positive."), (lambda x: x < 2, "below two.")])

    assert check_traced(jnp.array(1.0)) == 1.0
    with pytest.raises(eqx.EquinoxRuntimeError, match="below two"):
        check_traced(jnp.array(3.0))
    with pytest.raises(eqx.EquinoxRuntimeError, match="positive"):
        check_traced(jnp.array(-3.0))


# --- equations of motion -----------------------------------------------------------------------


@pytest.fixture
def state(rng):
    R = jnp.asarray(Rotation.random(rng=rng).as_matrix())
    return 0.3, R, jnp.asarray(rng.normal(size=3))


def test_euler_equations_in_both_forms(state, rng):
    _, R, omega = state
    mu = jnp.asarray(rng.normal(size=3))
    moments = jnp.array(MOMENTS)
    tensor = rotate_inertia(moments, R)
    for inertia, full in ((moments, jnp.diag(moments)), (tensor, tensor)):
        for moment in (None, mu):
            applied = 0.0 if moment is None else moment
            expected = np.linalg.solve(full, applied - np.cross(omega, full @ omega))
            found = euler_equations(inertia, omega, moment)
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(angular_momentum(inertia, omega), full @ omega, rtol=1e-14)
        np.testing.assert_allclose(
            solve_inertia(inertia, mu), np.linalg.solve(full, mu), rtol=1e-13, atol=1e-14
        )


ARITHMETIC = {"add", "sub", "mul", "div", "neg", "dot_general", "sqrt", "integer_pow"}


def count_operations(function, *arguments):
    """Scalar arithmetic operations of a traced function."""
    found = count(jax.make_jaxpr(function)(*arguments).jaxpr)
    return sum(found[name] for name in ARITHMETIC)


def test_operation_counts(state):
    t, R, omega = state
    moments = jnp.array(MOMENTS)
    # Lang's Table 1 counts the same 12 for the rates.
    assert count_operations(euler_equations, moments, omega) == 12
    assert count_operations(euler_equations, moments, omega, omega) == 15
    free = FixedPointBody(MOMENTS)
    assert free.is_free
    assert count_operations(free.angular_acceleration, t, R, omega) == 12
    top = FixedPointBody(MOMENTS, AxialGravityPotential(1.0))
    assert not top.is_free
    assert count_operations(top.angular_acceleration, t, R, omega) == 18
    assert count_operations(GravityPotential((0, 0, 1), (0, 0, 1)).moment, R) == 24


class Spring(AbstractPotential):
    """A user's own potential without closed-form moment."""

    stiffness: jax.Array

    def __call__(self, R):
        return self.stiffness * (R[0, 1] ** 2 + R[2, 0] * R[1, 1])

    def gradient(self, R):
        return jax.grad(self.__call__)(R)

    def moment(self, R):
        return moment_from_gradient(R, self.gradient(R))


POTENTIALS = {
    "axial": AxialGravityPotential(3.0),
    "gravity": GravityPotential((0.1, 0.2, 0.3), (1.0, 2.0, -9.81)),
    "function": lambda R: jnp.sin(R[0, 1]) + R[2, 2] ** 2 * R[1, 0],
    "module": Spring(jnp.array(2.0)),
}


@pytest.mark.parametrize("name", POTENTIALS)
def test_power_of_the_moment_is_the_loss_of_potential_energy(name, state):
    t, R, omega = state
    body = FixedPointBody(MOMENTS, POTENTIALS[name])
    w = omega
    skew = jnp.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    _, rate = jax.jvp(body.potential_energy, (R,), (R @ skew,))
    power = body.applied_moment(t, R, omega) @ omega
    np.testing.assert_allclose(power, -rate, rtol=1e-13, atol=1e-14)
    gradient = jax.grad(body.potential_energy)(R)
    np.testing.assert_allclose(body.potential.gradient(R), gradient, atol=1e-14)


def test_gravity_potentials_agree(state):
    _, R, _ = state
    axial = AxialGravityPotential(1.5 * 9.81)
    general = GravityPotential((0.0, 0.0, 1.5), (0.0, 0.0, -9.81))
    np.testing.assert_allclose(axial(R), general(R), rtol=1e-14)
    np.testing.assert_allclose(axial.moment(R), general.moment(R), atol=1e-14)
    # Moment of gravity at the centre of mass.
    general = GravityPotential((0.1, 0.2, 0.3), (1.0, 2.0, 3.0))
    expected = np.cross([0.1, 0.2, 0.3], np.asarray(R).T @ np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(general.moment(R), expected, atol=1e-14)


def test_energy_rate_is_the_power_of_the_further_moment(state):
    t, R, omega = state
    drag = QuadraticDrag(0.2)
    body = FixedPointBody(MOMENTS, AxialGravityPotential(3.0), drag)
    w = omega
    skew = jnp.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    omega_dot = body.angular_acceleration(t, R, omega)
    _, rate = jax.jvp(
        lambda R, omega: body.kinetic_energy(omega) + body.potential_energy(R),
        (R, omega),
        (R @ skew, omega_dot),
    )
    np.testing.assert_allclose(rate, -0.2 * np.linalg.norm(omega) ** 3, rtol=1e-12)
    np.testing.assert_allclose(body.angular_momentum(omega), jnp.array(MOMENTS) * omega)


def test_potential_and_moment_add_up(state):
    t, R, omega = state
    w = np.asarray(omega)
    np.testing.assert_allclose(LinearDrag(2.0)(t, R, omega), -2 * w)
    np.testing.assert_allclose(LinearDrag((1.0, 2.0, 3.0))(t, R, omega), -w * [1, 2, 3])
    np.testing.assert_allclose(
        QuadraticDrag(2.0)(t, R, omega), -2 * np.linalg.norm(w) * w, rtol=1e-14
    )
    np.testing.assert_allclose(ConstantMoment((1.0, 2.0, 3.0))(t, R, omega), [1, 2, 3])
    np.testing.assert_allclose(
        ConstantMoment((1.0, 2.0, 3.0), "space")(t, R, omega), np.asarray(R).T @ [1, 2, 3]
    )
    with pytest.raises(ValueError, match='must be "body" or "space"; got \'spcae\''):
        ConstantMoment((1.0, 2.0, 3.0), "spcae")
    with pytest.raises(ValueError, match=r"coefficient=...\)` must have shape \(\) or \(3,\)"):
        QuadraticDrag((1.0, 2.0))
    with pytest.raises(ValueError, match=r"first_moment=...\)` must have shape \(3,\)"):
        GravityPotential(1.0, (0.0, 0.0, -9.81))


@pytest.mark.float32
def test_quadratic_drag_has_derivatives_at_rest():
    drag = QuadraticDrag(0.5)
    zero = jnp.zeros(3)
    moment = lambda w: drag(0.0, jnp.eye(3), w)  # noqa: E731
    first = jax.jit(jax.jacfwd(moment))(zero)
    second = jax.jit(jax.jacfwd(jax.jacrev(moment)))(zero)
    np.testing.assert_array_equal(first, 0.0)
    np.testing.assert_array_equal(second, 0.0)


@pytest.mark.parametrize("moments", [(2.0, 2.0, 2.0), (2.0, 2.0, 3.0)])
@pytest.mark.parametrize("full", [False, True])
def test_second_derivatives_at_equal_moments(moments, full, state):
    t, R, omega = state
    inertia = jnp.diag(jnp.array(moments)) if full else jnp.array(moments)

    def cost(inertia):
        body = FixedPointBody(inertia, AxialGravityPotential(1.0))
        return (body.angular_acceleration(t, R, omega) ** 2).sum()

    assert np.isfinite(jax.jit(jax.hessian(cost))(inertia)).all()


def test_parameters_of_potential_and_moment_are_leaves(state):
    t, R, omega = state
    body = FixedPointBody(MOMENTS, lambda R: R[2, 2], LinearDrag(2.0))
    assert len(jax.tree.leaves(body)) == 2
    gradient = jax.grad(lambda b: b.angular_acceleration(t, R, omega)[0])(body)
    np.testing.assert_allclose(gradient.moment.coefficient, -omega[0] / 2)
    body = FixedPointBody(MOMENTS, Spring(jnp.array(2.0)))
    assert len(jax.tree.leaves(body)) == 2
