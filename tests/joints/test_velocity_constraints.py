"""Nonholonomic constraints: a sleigh and a sphere on a turntable, against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.initial.local_coordinates import independent_rates

G = 9.81
UP = jnp.array([0.0, 0.0, 1.0])
GRAVITY = rj.Gravity((0.0, 0.0, -G))

# Chaplygin's sleigh: a skate behind the centre of mass, moment of inertia about the vertical.
MASS, INERTIA, ARM = 2.0, 0.3, 0.4
TURNING = INERTIA + MASS * ARM**2


class Skate(eqx.Module):
    """The velocity across a blade that is `arm` behind the centre of mass."""

    arm: jax.Array

    def __call__(self, t, poses, twists):
        (_, R), (v, omega) = poses["sleigh"], twists["sleigh"]
        return (R.T @ v + jnp.cross(omega, -self.arm * jnp.eye(3)[0]))[1]


def sleigh():
    body = rj.Body("sleigh", MASS, (0.1, 0.2, INERTIA))
    ice = rj.Planar("ground", "sleigh", (0, 0, 0), (0, 0, 1), name="ice")
    skate = rj.VelocityConstraint(Skate(jnp.array(ARM)), "sleigh", name="skate")
    return rj.System(body, [skate, ice])


def gliding(system, u=1.0, omega=2.0, slip=0.0):
    """Along the blade with u, turning with omega."""
    return eqx.tree_at(
        lambda s: (s.velocity, s.angular_velocity),
        system.reference_state(),
        (jnp.array([[u, ARM * omega + slip, 0]]), jnp.array([[0, 0, omega]])),
    )


def exact_rates(t, u=1.0, omega=2.0):
    """u and omega at a time: u' = arm omega^2, and the energy is conserved."""
    c = np.sqrt(u**2 + TURNING / MASS * omega**2)
    phase = MASS * ARM * c / TURNING * t + np.arctanh(u / c)
    return c * np.tanh(phase), c * np.sqrt(MASS / TURNING) / np.cosh(phase)


def test_sleigh_in_closed_form():
    """Accelerations and the force of the ice, in a state with u = 1, omega = 2."""
    system = sleigh()
    model = rj.NullSpace(system)
    assert system.num_dof == 2
    y = model.encode(gliding(system))
    found = model.accelerations(0.0, y)
    omega_dot = -MASS * ARM * 2.0 / TURNING
    across = ARM * omega_dot + 2.0
    np.testing.assert_allclose(found.angular[0], [0, 0, omega_dot], atol=1e-13)
    # The centre turns about a point: u' - omega arm omega along the blade.
    np.testing.assert_allclose(found.linear[0], [0, across, 0], atol=1e-13)
    skate = model.reactions(0.0, y)["skate"]
    assert skate.bodies == ("sleigh",)
    np.testing.assert_allclose(skate.force, [[0, MASS * across, 0]], atol=1e-13)
    np.testing.assert_allclose(skate.moment, [[0, 0, -ARM * MASS * across]], atol=1e-13)
    np.testing.assert_allclose(skate.multipliers, [-MASS * across], atol=1e-13)


def test_equations_with_multipliers_agree():
    """They hold along the motion of index 0; with a slip the row of the skate shows it."""
    system, slip = sleigh(), 0.01
    plain, model = rj.Absolute(system), rj.Absolute(system, index=3)
    state = gliding(system)
    y = model.encode(state)
    t = jnp.zeros(())
    rate = jnp.asarray(plain.vector_field(t, plain.encode(state)))
    rate = jnp.concatenate([rate, jnp.zeros(model.num_algebraic)])
    residual = eqx.filter_jit(lambda y: model.residual(t, y, rate))
    np.testing.assert_allclose(residual(y), 0.0, atol=1e-12)
    first = model.layout.num_positions
    sliding = residual(y.at[first + 1].add(slip))
    # Joints and the quaternion come before it.
    row = model.layout.size + model.num_multipliers - 1
    np.testing.assert_allclose(sliding[row], -slip, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"rtol": 1e-10, "atol": 1e-10},
        # It satisfies the constraint without a projection.
        {"solver": rj.solvers.MuntheKaas(rj.solvers.RK4()), "dt": 0.005},
    ],
    ids=["projected", "Lie group"],
)
def test_motion_of_a_sleigh(options):
    model = rj.NullSpace(sleigh())
    run = rj.simulate(model, gliding(model.system), 1.0, **options)
    u, omega = exact_rates(1.0)
    np.testing.assert_allclose(run.states.angular_velocity[-1, 0, 2], omega, rtol=1e-9)
    speed = jnp.sqrt(jnp.sum(run.states.velocity[-1, 0] ** 2))
    np.testing.assert_allclose(speed, np.hypot(u, ARM * omega), rtol=1e-9)
    np.testing.assert_allclose(run.energy[-1], run.energy[0], rtol=1e-9)
    assert max(np.max(run.position_drift), np.max(run.velocity_drift)) < 1e-13


def ball_on_a_turntable(rate):
    """A solid sphere of radius 0.1 on a driven table, through a constraint between the two."""

    def no_slip(t, poses, twists):
        (x, R), (v, omega) = poses["ball"], twists["ball"]
        (x_t, R_t), (v_t, omega_t) = poses["table"], twists["table"]
        below = -0.1 * UP
        of_table = v_t + jnp.cross(R_t @ omega_t, x + below - x_t)
        return v + jnp.cross(R @ omega, below) - of_table

    ball = rj.Body.sphere("ball", 0.1, mass=MASS, position=(0.6, 0.2, 0.1))
    table = rj.Body.cylinder("table", 2.0, 0.1, mass=5.0, position=(0, 0, -0.05))
    joints = [
        rj.Revolute("ground", "table", (0, 0, 0), (0, 0, 1), motion=lambda t: rate * t),
        rj.VelocityConstraint(no_slip, ["ball", "table"], name="no slip"),
    ]
    return rj.System([ball, table], joints, GRAVITY)


def test_a_ball_on_a_turntable_circles_at_two_sevenths_of_its_rate():
    system = ball_on_a_turntable(1.4)
    velocity = jnp.array([[0.3, -0.2, 0.0], [0.0, 0.0, 0.0]])
    guess = eqx.tree_at(lambda s: s.velocity, system.reference_state(), velocity)
    state = rj.consistent_state(system, guess)
    model = rj.Relative(system)
    assert float(model.drift(0.0, model.encode(state))[1]) < 1e-14
    found = model.accelerations(0.0, model.encode(state)).linear[0]
    v = np.asarray(state.velocity[0])
    assert np.abs(v[:2]).max() > 0.1
    np.testing.assert_allclose(found, 2 / 7 * 1.4 * np.cross(UP, v), atol=1e-12)


def test_initial_states_and_invalid_arguments():
    system = sleigh()
    sliding = gliding(system, slip=0.1)
    with pytest.raises(ValueError, match="velocities of the state violate the joint 'skate'"):
        rj.NullSpace(system).encode(sliding)
    state = rj.consistent_state(system, sliding)
    np.testing.assert_allclose(state.position, sliding.position, atol=0)
    slip = Skate(jnp.array(ARM))(
        0.0, {"sleigh": (state.position[0], jnp.eye(3))},
        {"sleigh": (state.velocity[0], state.angular_velocity[0])},
    )  # fmt: skip
    np.testing.assert_allclose(slip, 0.0, atol=1e-15)
    with pytest.raises(ValueError, match="affine in the twists"):
        rj.VelocityConstraint(lambda t, poses, twists: twists["a"][0] ** 2, "a")
    with pytest.raises(ValueError, match="number or a vector"):
        rj.VelocityConstraint(lambda t, poses, twists: jnp.eye(3), "a")
    with pytest.raises(TypeError, match="function of time, poses and twists"):
        rj.VelocityConstraint(3.0, "a")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="at least one body"):
        rj.VelocityConstraint(lambda t, poses, twists: 0.0, ())
    with pytest.raises(ValueError, match="no body called 'sled'"):
        rj.System(rj.Body("sleigh", 1.0, (1, 1, 1)),
                  [rj.VelocityConstraint(lambda t, poses, twists: 0.0, "sled")])  # fmt: skip
    with pytest.raises(ValueError, match="no discrete form of .*`VelocityConstraint`"):
        rj.simulate(rj.NullSpace(system), state, 0.1, solver=rj.solvers.EnergyMomentum(), dt=0.1)
    with pytest.raises(ValueError, match="which a `VelocityConstraint` does not have"):
        rj.solvers.GeneralizedAlpha().check_model(rj.Absolute(system, index=3))
    with pytest.raises(ValueError, match="acts on velocities alone"):
        independent_rates(rj.NullSpace(system), state)
