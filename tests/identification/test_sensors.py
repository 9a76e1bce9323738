"""Sensors against momentum and energy balances, kinematics by differentiation, closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Measurements
from rigidjax.rotations.euler_map import euler_map
from rigidjax.sensors import unwrap_measured_angles

GRAVITY = np.array([0.3, -9.7, 1.1])
STIFFNESS, DAMPING = 5.0, 0.4
POINT = np.array([0.2, -0.1, 0.3])
BASE = np.array([0.1, 0.2, -0.3])
AXIS = np.array([0.0, 0.6, 0.8])


def motion_law(t):
    return 4.0 + 0.5 * jnp.sin(3.0 * t)


def arm():
    """A cylindrical joint with a motor and a spring, and a driven hinge."""
    inertia = np.array([[0.3, 0.02, 0.01], [0.02, 0.25, -0.03], [0.01, -0.03, 0.2]])
    turn = np.array([np.cos(0.4), 0.0, np.sin(0.4), 0.0])
    bodies = [
        rj.Body("fore", 1.5, inertia, (0.5, 0.0, 0.1), turn),
        rj.Body("tool", 0.8, 0.2 * inertia, (1.5, 0.6, 0.4)),
    ]
    joints = [
        rj.Cylindrical("ground", "fore", BASE, AXIS, name="slide"),
        rj.Revolute("fore", "tool", (1.4, 0.5, 0.2), (0.2, 0.1, 1.0), motion_law, name="drive"),
    ]
    forces = [
        rj.Gravity(GRAVITY),
        rj.TorsionSpring("slide", STIFFNESS, DAMPING, component=0),
        rj.Motor("slide", lambda t, q, rate: 3.0 - 0.2 * rate, component=1),
    ]
    return rj.System(bodies, joints, forces)


SENSORS = {
    "point": rj.Position("tool", POINT),
    "accelerometer": rj.Accelerometer("tool", POINT),
    "length": rj.JointCoordinate("slide", 0),
    "angle": rj.JointCoordinate("slide", 1),
    "drive": rj.JointCoordinate("drive"),
    "length rate": rj.JointRate("slide", 0),
    "angle rate": rj.JointRate("slide", 1),
    "drive rate": rj.JointRate("drive"),
    "slide torque": rj.JointTorque("slide", 1),
    "drive torque": rj.JointTorque("drive"),
    "force": rj.ReactionForce("slide"),
    "moment": rj.ReactionMoment("slide"),
}
T = jnp.array(0.7)


def read(model, t, y):
    return {key: sensor.predict(model, t, y) for key, sensor in SENSORS.items()}


@pytest.fixture(scope="module")
def model():
    return unwrap_measured_angles(rj.NullSpace(arm()), list(SENSORS.values()))


@pytest.fixture(scope="module")
def unknowns(model):
    """A pose and velocities that the joints allow, far from the reference configuration."""

    @jax.jit
    def close_joints(y):
        return jax.lax.fori_loop(0, 6, lambda _, y: model.project(T, y), y)

    y = model.start(model.system.reference_state())
    rng = np.random.default_rng(3)
    y = close_joints(y + 0.3 * jnp.asarray(rng.normal(size=y.shape)))
    size = model.layout.num_positions
    y = y.at[size : size + 2].set(jnp.array([-0.8, 1.3]))
    assert float(model.drift(T, y)[0]) < 1e-13
    return y


@pytest.fixture(scope="module")
def reader(model):
    return jax.jit(lambda y: read(model, T, y))


@pytest.fixture(scope="module")
def readings(reader, unknowns):
    return reader(unknowns)


def test_readings_agree_in_absolute_coordinates(model, unknowns, readings):
    absolute = unwrap_measured_angles(rj.Absolute(arm(), rj.Directors()), list(SENSORS.values()))
    y = absolute.start(model.decode(T, unknowns), T)
    found = jax.jit(lambda y: read(absolute, T, y))(y)
    for key, value in readings.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-10, atol=1e-10, err_msg=key)


def test_angles_are_unwrapped(reader, unknowns, readings):
    found = reader(unknowns.at[-1].add(4 * np.pi))
    np.testing.assert_allclose(found["angle"], readings["angle"] + 4 * np.pi, rtol=1e-13)
    for key in ("length", "drive", "accelerometer"):
        np.testing.assert_allclose(found[key], readings[key], rtol=1e-12)
    assert float(readings["drive"]) > np.pi


def test_forward_and_reverse_mode_agree():
    """Derivatives of readings on one link, weighted by different numbers.

    Also at rest in the reference configuration, where angle and rate are zero.
    """
    body = arm().bodies[0]
    hinge = rj.Revolute("ground", "fore", BASE, AXIS, name="hinge")
    motor = rj.Motor("hinge", lambda t, q, rate: 3.0 * jnp.sin(q) - 0.2 * rate)
    model = rj.NullSpace(rj.System(body, [hinge], [rj.Gravity(GRAVITY), motor]))
    sensors = (rj.Accelerometer(None, POINT), rj.JointRate("hinge"), rj.ReactionForce("hinge"))
    rest, rng = model.start(model.system.reference_state()), np.random.default_rng(8)
    tangent = (jnp.asarray(1.3), jnp.asarray(rng.normal(size=rest.shape)))

    def function(mass, y):
        changed = eqx.tree_at(lambda m: m.system.bodies[0].mass, model, mass)
        return jnp.concatenate([s.predict(changed, T, y).ravel() for s in sensors])

    @jax.jit
    @jax.vmap
    def both(rate):
        y = rest.at[7].set(rate)
        values, change = jax.jvp(function, (body.mass, y), tangent)
        weights = jnp.linspace(-1.0, 2.0, len(values))
        of_mass, of_y = jax.vjp(function, body.mass, y)[1](weights)
        return weights @ change, tangent[0] * of_mass + tangent[1] @ of_y, change

    forward, reverse, change = both(jnp.array([0.0, 1.7]))
    assert np.all(np.isfinite(change)) and np.abs(change).min() > 1e-3
    np.testing.assert_allclose(forward, reverse, rtol=1e-11)


def test_pendulum_readings_in_closed_form():
    """Released from the horizontal: the rod pulls with 3 m g cos(phi)."""
    problem = rj.problems.simple_pendulum(1.0)
    ts = jnp.linspace(0.0, 5.0, 11)
    states = problem.reference(ts)
    model = rj.NullSpace(problem.system)
    hinge = problem.system.joints[0].name
    sensors = (rj.JointCoordinate(hinge), rj.Accelerometer(), rj.Position(None, (-1.0, 0, 0)))

    @jax.jit
    @jax.vmap
    def read_sensors(t, state):
        y = model.start(state, t)
        return tuple(sensor.predict(model, t, y) for sensor in sensors)

    angle, force, pivot = read_sensors(ts, states)
    x = states.position[:, 0]
    np.testing.assert_allclose(angle, np.arctan2(x[:, 1], x[:, 0]), atol=1e-12)
    expected = np.stack([3 * 9.81 * x[:, 1], 0 * ts, 0 * ts], axis=1)
    np.testing.assert_allclose(force, expected, atol=1e-11)
    np.testing.assert_allclose(pivot, 0, atol=1e-13)


def test_sensors_of_loop_joints():
    """The rate is the difference of the angular velocities along the axis."""
    problem = rj.problems.four_bar()
    system = problem.system
    (loop,) = system.topology.loops
    name = system.joints[loop].name
    model = rj.NullSpace(system)
    y = model.start(problem.state0)
    joint = system.joints[loop]
    rows = {body.name: i for i, body in enumerate(system.bodies)}
    omega = jnp.stack(
        [euler_map(p) @ w for p, w in zip(problem.state0.orientation,
                                         problem.state0.angular_velocity, strict=True)]
    )  # fmt: skip

    def of(body):
        return jnp.zeros(3) if body == "ground" else omega[rows[body]]

    axis = joint.axis / jnp.sqrt(jnp.sum(joint.axis**2))
    expected = axis @ (of(joint.child) - of(joint.parent))
    assert abs(float(expected)) > 0.1
    pair = (rj.JointRate(name), rj.JointCoordinate(name))
    found = jax.jit(lambda y: [s.predict(model, jnp.array(0.0), y) for s in pair])(y)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    np.testing.assert_allclose(found[1], 0.0, atol=1e-12)


def test_calibration_of_an_accelerometer():
    """A body at rest reads gravity upwards, in its own axes, through bias, scale and mounting."""
    half = np.sqrt(0.5)
    body = rj.Body("box", 2.0, (1.0, 1.0, 1.0), orientation=(half, half, 0.0, 0.0))
    ground = rj.Weld("ground", "box")
    model = rj.NullSpace(rj.System(body, [ground], rj.Gravity((0.0, 0.0, -9.81))))
    y = model.start(model.system.reference_state())
    t = jnp.array(0.0)
    plain = rj.Accelerometer("box", (1.0, 2.0, 3.0)).predict(model, t, y)
    np.testing.assert_allclose(plain, [0.0, 9.81, 0.0], atol=1e-12)
    # Sensor axes turned by a quarter about the third one: its first axis is the body's second.
    sensor = rj.Accelerometer(
        bias=(0.1, 0.2, 0.3), scale=(1.1, 1.0, 1.0), misalignment=(0.0, 0.0, np.pi / 2)
    )
    turned = sensor.predict(model, t, y)
    np.testing.assert_allclose(turned, [1.1 * 9.81 + 0.1, 0.2, 0.3], atol=1e-12)


def test_sensors_of_a_fixed_point_body():
    """At the fixed point a top feels gravity alone; elsewhere the spin as well."""
    potential = rj.GravityPotential((0.0, 0.0, 0.5), (0.0, 0.0, -9.81))
    model = rj.NullSpace(rj.FixedPointBody((0.3, 0.3, 0.1), potential))
    state = rj.State(angular_velocity=(0.0, 0.0, 5.0))
    y = model.start(state)
    t = jnp.array(0.0)
    np.testing.assert_allclose(rj.Accelerometer().predict(model, t, y), [0, 0, 9.81], atol=1e-12)
    out = rj.Accelerometer(point=(0.2, 0.0, 0.0)).predict(model, t, y)
    np.testing.assert_allclose(out, [-5.0, 0.0, 9.81], atol=1e-12)
    axial = rj.NullSpace(rj.FixedPointBody((0.3, 0.3, 0.1), rj.AxialGravityPotential(2.0)))
    with pytest.raises(ValueError, match=r"which the potential `AxialGravityPotential` of this"):
        rj.Accelerometer().check(axial)


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        (rj.Position("tol"), r"no body called 'tol'\. Did you mean 'tool'"),
        (rj.Accelerometer(), r"`Accelerometer\(body=\.\.\.\)` must name one of the bodies"),
        (rj.JointCoordinate("slides"), r"no joint called 'slides'\. Did you mean 'slide'"),
        (rj.JointRate("slide"), r"`JointRate\(component=\.\.\.\)` is needed: the Cylindrical"),
        (rj.JointRate("slide", 2), r"must be below 2, the number of coordinates of .*; got 2"),
        (rj.JointTorque("slide", 0), r"has neither an actuator, such as `rj.Motor`, nor a prescr"),
        (rj.ReactionForce("x"), r"no joint called 'x'\. The joints are"),
        (rj.ReactionMoment("drives"), r"Did you mean 'drive'"),
    ],
)
def test_unknown_names_raise(sensor, message):
    with pytest.raises(ValueError, match=message):
        sensor.check(rj.NullSpace(arm()))


def test_invalid_arguments_raise():
    free = rj.NullSpace(rj.System(rj.Body("a", 1.0, (1.0, 1.0, 1.0))))
    with pytest.raises(ValueError, match=r"`JointCoordinate` measures a joint; this model has no"):
        rj.JointCoordinate("hinge").check(free)
    ball = rj.System(free.system.bodies, [rj.Spherical("ground", "a", (0, 0, 0), name="ball")])
    with pytest.raises(ValueError, match=r"measures a length or an angle; the Spherical 'ball'"):
        rj.JointRate("ball").check(rj.NullSpace(ball))
    with pytest.raises(ValueError, match=r"follows free angles; the Spherical 'ball' has none"):
        ball.tracking(["ball"])
    with pytest.raises(ValueError, match=r"`Position\(point=\.\.\.\)` must have shape \(3,\)"):
        rj.Position("a", (1.0, 2.0))
    with pytest.raises(ValueError, match=r"`Accelerometer\(bias=\.\.\.\)` must be finite"):
        rj.Accelerometer("a", bias=(np.nan, 0.0, 0.0))
    with pytest.raises(TypeError, match=r"`JointTorque\(joint=\.\.\.\)` takes a joint or its name"):
        rj.JointTorque(3)
    with pytest.raises(ValueError, match=r"needs a name of its own"):
        samples = np.zeros((2, 3))
        two = {rj.Position("a"): samples, rj.Position("a", (1.0, 0.0, 0.0)): samples}
        Measurements([0.0, 1.0], two)


def test_sensors_are_hashable():
    same = {rj.Position("a", (1.0, 0, 0)): 1}
    assert same[rj.Position("a", (1.0, 0, 0))] == 1
    assert rj.Position("a", (2.0, 0, 0)) not in same
    assert rj.Gyroscope() == rj.Gyroscope() and rj.Gyroscope(bias=BASE) != rj.Gyroscope()
    assert eqx.tree_equal(rj.Delayed(rj.Gyroscope(), 0.1), rj.Delayed(rj.Gyroscope(), 0.1))
    assert rj.Position("a", (1.0, 0, 0), name="marker").name == "marker"
