"""Equilibria and linear models: closed forms, and differences of nonlinear motions."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems
from scipy.linalg import solve_continuous_are

import rigidjax as rj

G = 9.81
GRAVITY = systems.GRAVITY
CART, POLE, LENGTH = 1.2, 0.3, 0.8


def cart_pole(law=None, pole=POLE):
    """A cart on a rail with a rod that stands on it; the angle is zero upright."""
    cart = rj.Body.box("cart", (0.4, 0.2, 0.2), mass=CART)
    rod = rj.Body.rod("rod", LENGTH, mass=pole, position=(0, 0, LENGTH / 2))
    rail = rj.Prismatic("ground", "cart", axis=(1, 0, 0), name="rail")
    hinge = rj.Revolute("cart", "rod", (0, 0, 0), (0, 1, 0), name="hinge")
    motor = rj.Motor("rail", rj.Input("u") if law is None else law)
    return rj.System([cart, rod], [rail, hinge], [GRAVITY, motor])


def cart_pole_rates(x, u):
    """Textbook equations of the cart-pole, x = (position, angle, rates)."""
    l, inertia = LENGTH / 2, POLE * LENGTH**2 / 3
    q, w = x[1], x[3]
    M = jnp.array([[CART + POLE, POLE * l * jnp.cos(q)], [POLE * l * jnp.cos(q), inertia]])
    f = jnp.array([u[0] + POLE * l * w**2 * jnp.sin(q), POLE * G * l * jnp.sin(q)])
    return jnp.concatenate([x[2:], jnp.linalg.solve(M, f)])


def state_of(system, x):
    return rj.jointed_state(system, {"rail": x[0], "hinge": x[1]}, {"rail": x[2], "hinge": x[3]})


def test_cart_pole_at_rest_and_in_motion():
    system = cart_pole()
    model = rj.Relative(system)
    xs, us = np.array([[0, 0, 0, 0], [0.3, 0.7, -0.5, 2.0]]), np.array([0.0, 1.7])
    states = [state_of(system, x) for x in xs]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    linear = rj.linearize(model, 0.0, both, inputs={"u": us})
    assert linear.states == ("rail", "hinge", "rail.rate", "hinge.rate")
    assert linear.inputs == ("u",)
    for k, (x, u) in enumerate(zip(xs, us[:, None], strict=True)):
        A, B = jax.jacfwd(cart_pole_rates, (0, 1))(jnp.asarray(x), jnp.asarray(u))
        np.testing.assert_allclose(linear.A[k], A, atol=1e-11)
        np.testing.assert_allclose(linear.B[k], B, atol=1e-12)
        np.testing.assert_allclose(linear.f0[k], cart_pole_rates(x, u), atol=1e-12)
    one = rj.linearize(model, 0.0, states[1], inputs={"u": us[1]})
    np.testing.assert_allclose(one.A, linear[1].A, atol=1e-13)


def test_variations_of_rates_in_space():
    """Euler's equations of a free body in space components, linearised by hand at a moment."""
    inertia = np.array([0.3, 0.5, 0.7])
    body = rj.System(rj.Body("body", 1.0, inertia))
    omega = jnp.array([0.4, -1.0, 0.7])
    start = eqx.tree_at(lambda s: s.angular_velocity, body.reference_state(), omega[None])
    linear = rj.linearize(rj.NullSpace(body, rates="space"), 0.0, start)

    def rates(xi):
        # The rotation is exp(phi), so that J is R I R^T; exact to first order.
        R = jnp.eye(3) + jnp.cross(jnp.eye(3), xi[:3])
        J = R @ jnp.diag(inertia) @ R.T
        w = omega + xi[3:]
        return jnp.linalg.solve(J, -jnp.cross(w, J @ w))

    rows = np.r_[3:6, 9:12]
    A = np.asarray(linear.A)[np.ix_(rows, rows)]
    np.testing.assert_allclose(A[3:], jax.jacfwd(rates)(jnp.zeros(6)), atol=1e-12)
    cross = np.cross(np.eye(3), np.asarray(omega))
    np.testing.assert_allclose(A[:3], np.hstack([cross, np.eye(3)]), atol=1e-14)


def test_outputs_against_differences():
    """Sensors of rates, attitude and acceleration; the force acts on the last one at once."""
    system = cart_pole()
    model, x, u = rj.Relative(system), np.array([0.2, 0.5, 1.0, -0.8]), 2.0
    sensors: Any = [
        rj.Gyroscope("rod"), rj.Attitude("rod"), rj.Accelerometer("rod", (0.0, 0.0, 0.3))
    ]  # fmt: skip
    linear = rj.linearize(model, 0.0, state_of(system, x), inputs={"u": u}, outputs=sensors)
    assert linear.outputs[3] == "attitude of rod phi1" and linear.C.shape == (9, 4)

    @jax.jit
    def read(x, u):
        bound = rj.Relative(cart_pole(u))
        y = bound.encode(state_of(system, x))
        return [sensor.predict(bound, jnp.zeros(()), y) for sensor in sensors]

    def difference(plus, minus):
        return np.concatenate(
            [s.residual(a, b) for s, a, b in zip(sensors, plus, minus, strict=True)]
        )

    h = 1e-6
    C = [difference(read(x + h * e, u), read(x - h * e, u)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(linear.C.T, C, atol=1e-8)
    D = difference(read(x, u + h), read(x, u - h)) / (2 * h)
    np.testing.assert_allclose(linear.D[:, 0], D, atol=1e-8)
    assert np.abs(D[6:]).max() > 0.1


def test_regulator_of_the_cart_pole():
    """The gain of the Riccati equation stabilises; a policy gives the closed loop."""
    model = rj.Relative(cart_pole())
    upright = model.system.reference_state()
    linear = rj.linearize(model, 0.0, upright, inputs=["u"])
    assert not linear.is_stable
    A, B = np.asarray(linear.A), np.asarray(linear.B)
    K = jnp.asarray(B.T @ solve_continuous_are(A, B, np.eye(4), np.eye(1)))[0]

    def policy(t, view):
        q, v = view.coordinates, view.rates
        return -K @ jnp.stack([q["rail"][0], q["hinge"][0], v["rail"][0], v["hinge"][0]])

    closed = rj.linearize(model, 0.0, upright, inputs={"u": policy})
    assert closed.is_stable and closed.inputs == ()
    np.testing.assert_allclose(closed.A, A - B @ np.asarray(K)[None], atol=1e-12)


def test_states_of_actuators():
    plain = cart_pole()
    lag = rj.LaggedMotor("rail", rj.Input("u"), 0.2)
    system = rj.System(plain.bodies, plain.joints, [GRAVITY, lag])
    linear = rj.linearize(rj.Relative(system), 0.0, system.reference_state(), inputs=["u"])
    direct = rj.linearize(rj.Relative(plain), 0.0, plain.reference_state(), inputs=["u"])
    expected = np.block([[direct.A, direct.B], [np.zeros((1, 4)), -5.0 * np.eye(1)]])
    np.testing.assert_allclose(linear.A, expected, atol=1e-12)
    np.testing.assert_allclose(linear.B[:, 0], [0, 0, 0, 0, 5.0], atol=1e-14)
    assert linear.states[-1] == "rail.torque"


def test_constraints_on_velocities_leave_more_positions():
    """A blade on a plane: three positions, two velocities, of which one turns the blade."""

    def slip(t, poses, twists):
        (_, R), (v, _) = poses["sleigh"], twists["sleigh"]
        return R[:, 1] @ v

    body = rj.Body("sleigh", 2.0, (0.2, 0.2, 0.3))
    plane = rj.Planar("ground", "sleigh", (0, 0, 0), (0, 0, 1), name="plane")
    system = rj.System(body, [plane, rj.VelocityConstraint(slip, "sleigh")])
    moving = eqx.tree_at(
        lambda s: s.velocity, system.reference_state(), jnp.array([[1.5, 0.0, 0.0]])
    )
    position = rj.Position("sleigh")
    linear = rj.linearize(rj.NullSpace(system), 0.0, moving, outputs=[position])
    assert linear.A.shape == (5, 5) and linear.states[:3] == ("plane[0]", "plane[1]", "plane[2]")
    # A turned blade leads aside, at its speed.
    velocities = np.asarray(linear.C @ linear.A)
    np.testing.assert_allclose(velocities[:, 2], [0.0, 1.5, 0.0], atol=1e-12)


def test_invalid_arguments_raise():
    system = cart_pole()
    model, state = rj.Relative(system), system.reference_state()
    cases: Any = (
        (TypeError, {"outputs": ["gyro"]}, r"outputs=...\)` takes a sequence of sensors"),
        (ValueError, {"outputs": [rj.JointRate("rails")]}, "rails"),
        (ValueError, {"outputs": [rj.JointRate("rail")] * 2}, "more than once"),
        (ValueError, {"outputs": [rj.Delayed(rj.JointRate("rail"), 0.1)]}, "has a delay"),
        (ValueError, {"inputs": ["v"]}, "no input called 'v'"),
        (ValueError, {"inputs": {"u": (1.0, 2.0)}}, r"inputs=...\)\['u'\]` must have shape"),
        (ValueError, {"coordinates": "hinges"}, "takes joints with free rates; got 'hinges'"),
        (ValueError, {"coordinates": "hinge"}, "do not determine the others"),
        (
            ValueError,
            {"inputs": {"u": rj.SampledController(lambda t, view, s: (0.0, s), 0.1)}},
            "has no linear model in continuous time",
        ),
    )
    for kind, options, message in cases:
        with pytest.raises(kind, match=message):
            rj.linearize(model, 0.0, state, **options)
    with pytest.raises(TypeError, match="takes the time before the state"):
        rj.linearize(model, state, 0.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"state=...\)` takes a `State`; got ndarray"):
        rj.linearize(model, 0.0, np.zeros(4))  # pyright: ignore[reportArgumentType]
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    opened = eqx.tree_at(lambda s: s.position, states, states.position.at[1, 0, 2].add(0.1))
    with pytest.raises(ValueError, match="violate"):
        rj.linearize(model, 0.0, opened)
    linear = rj.linearize(model, 0.0, states)
    with pytest.raises(ValueError, match="Eigenvalues are those of one state"):
        _ = linear.eigenvalues
    four_bar = rj.NullSpace(rj.problems.four_bar(thickness=0.05).system)
    with pytest.raises(ValueError, match="needed for closed loops in a model with traced"):
        jax.jit(lambda m: rj.linearize(m, 0.0, m.system.reference_state()))(four_bar)
    needs_value = rj.Relative(cart_pole(rj.Input("u", default=None)))
    with pytest.raises(ValueError, match="'u' has no default; give its value"):
        rj.linearize(needs_value, 0.0, state, inputs=["u"])
    driven = rj.Prismatic("ground", "cart", axis=(1, 0, 0), motion=rj.Input("s"), name="rail")
    moved = rj.Relative(rj.System(system.bodies[0], [driven]))
    with pytest.raises(ValueError, match="prescribes the motion of 'rail'"):
        rj.linearize(moved, 0.0, moved.system.reference_state(), inputs=["s"])


def test_modes_of_a_damped_pendulum():
    J, d, g = 1.0 / 3.0 + 1e-4, 0.5, G
    system = systems.pendulum(damping=d).system
    found = rj.linearize(rj.Relative(system), 0.0, system.reference_state())
    wanted = np.roots([J, d, 0.5 * g])
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(wanted))
    np.testing.assert_allclose(found.frequencies, abs(wanted[0].imag))
    np.testing.assert_allclose(found.damping_ratios, d / (2 * np.sqrt(J * 0.5 * g)))
    assert found.is_stable and found.labels == ("hinge of rod",)


def test_equilibrium_of_a_pendulum():
    system, state, *_ = systems.case("pendulum")
    found = rj.equilibrium(systems.model("pendulum", rj.Relative), state)
    np.testing.assert_allclose(found.position, [[0, 0, -0.5]], atol=1e-10)
    upright = rj.jointed_state(system, {"hinge of rod": np.pi})
    assert not rj.linearize(systems.model("pendulum"), 0.0, upright).is_stable


def test_equilibrium_of_a_linkage():
    problem = rj.problems.four_bar(thickness=0.05)
    model, still = rj.NullSpace(problem.system), problem.state0.at_rest()
    state = rj.equilibrium(problem.system, still)
    found = model.accelerations(0.0, model.encode(state))
    np.testing.assert_allclose(found.angular, 0.0, atol=1e-8)
    with pytest.raises(TypeError, match="`linearize` takes a `NullSpace` or `Relative`"):
        rj.linearize(rj.Absolute(problem.system), 0.0, still)
    with pytest.raises(TypeError, match="`equilibrium` takes a `NullSpace` or `Relative`"):
        rj.equilibrium(rj.Absolute(problem.system), still)


def test_free_fall_has_no_equilibrium():
    with pytest.raises(ValueError, match="found none"):
        body = rj.System(rj.Body.box("box", (1, 1, 1), mass=1.0), forces=[GRAVITY])
        rj.equilibrium(rj.NullSpace(body), body.reference_state())


def test_equilibrium_under_jit_raises():
    problem = rj.problems.chain(1)
    model = rj.NullSpace(problem.system)
    with pytest.raises(ValueError, match="outside `jax.jit`"):
        jax.jit(lambda: rj.equilibrium(model, problem.system.reference_state()))()
