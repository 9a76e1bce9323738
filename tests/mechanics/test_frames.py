"""Frames on bodies: their Jacobians, sensors in them, their poses of a run and in files."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification.regression.regressor import (
    inertial_parameters,
    with_inertial_parameters,
)
from rigidjax.rotations import so3

TURN = np.array([0.3, -0.4, 0.5])
POINT = np.array([0.2, -0.1, 0.3])
OFFSET = jnp.array([0.05, 0.02, -0.03])
T = jnp.zeros(())


class Pull(rj.forces.AbstractForce):
    """A constant force in the origin of what it names: an energy that is linear in positions."""

    body: str = eqx.field(static=True)
    force: jax.Array

    def body_names(self):
        return (self.body,)

    def loads(self, t, bodies, kinematics):
        return rj.forces.Loads(self.force[None])

    @property
    def is_linear(self):
        return True

    def potential_energy(self, t, bodies, kinematics):
        return -self.force @ kinematics.positions[0]


def tool(**more):
    q = rj.convert(jnp.asarray(TURN), rj.RotationVector(), rj.Quaternion())
    return rj.Frame("tool", "arm", POINT, q, **more)


@pytest.fixture(scope="module")
def model():
    arm = rj.Body.box("arm", (0.4, 0.3, 0.2), mass=2.0, position=(0.5, 0.1, 0.2))
    other = rj.Body.sphere("other", 0.1, mass=1.0)
    return rj.NullSpace(rj.System([other, arm], (), rj.Gravity((0, 0, -9.81)), tool()))


@pytest.fixture(scope="module")
def state():
    p = rj.convert(jnp.array([0.2, 1.0, -0.7]), rj.RotationVector(), rj.Quaternion())
    unit = jnp.array([1.0, 0, 0, 0])
    rates = jnp.array([[0.1, 0.2, 0.3], [1.0, -0.5, 0.7]])
    return rj.State(rates + 1.0, jnp.stack([unit, p]), 2.0 * rates, rates)


@pytest.mark.exhaustive
def test_jacobian_of_a_frame(model, state):
    """It is the derivative of the frame's point and rotation; a point counts from the origin."""
    y, R_f = model.encode(state), np.asarray(tool().rotation)

    @eqx.filter_jit
    def both(y):
        rate = model.vector_field(T, y)
        (_, R), (x_dot, R_dot) = jax.jvp(
            lambda y: model.forward_kinematics(T, y)["tool"], (y,), (rate,)
        )
        of_tool = {axes: model.jacobian(T, y, "tool", OFFSET, axes) for axes in ("body", "space")}
        of_body = model.jacobian(T, y, "arm", POINT + R_f @ OFFSET)
        nu = model.layout.velocities(y)
        return x_dot + R_dot @ OFFSET, R.T @ R_dot, of_tool, of_body, nu, R

    velocity, spin, of_tool, of_body, nu, R = both(y)
    twist = of_tool["body"] @ nu
    np.testing.assert_allclose(twist[:3], velocity, atol=1e-13)
    np.testing.assert_allclose(twist[3:], [spin[2, 1], spin[0, 2], spin[1, 0]], atol=1e-13)
    np.testing.assert_allclose(of_tool["space"][3:], R @ of_tool["body"][3:], atol=1e-14)
    np.testing.assert_allclose(of_tool["body"][:3], of_body[:3], atol=1e-14)
    np.testing.assert_allclose(of_tool["body"][3:], R_f.T @ of_body[3:], atol=1e-14)


@pytest.mark.exhaustive
def test_sensors_in_a_frame_equal_mounted_sensors(model, state):
    R_f = np.asarray(tool().rotation)
    at = POINT + R_f @ OFFSET
    pairs = [
        (rj.Position("tool", OFFSET), rj.Position("arm", at)),
        (rj.Gyroscope("tool"), rj.Gyroscope("arm", misalignment=TURN)),
        (rj.Accelerometer("tool", OFFSET), rj.Accelerometer("arm", at, misalignment=TURN)),
    ]
    attitude = rj.Attitude("tool")
    y = model.encode(state)

    @eqx.filter_jit
    def read(y):
        found = [[sensor.predict(model, T, y) for sensor in pair] for pair in pairs]
        return found, attitude.predict(model, T, y), model.frame_poses(T, y)["tool"][1]

    found, p, R = read(y)
    for first, second in found:
        np.testing.assert_allclose(first, second, rtol=1e-12)
    np.testing.assert_allclose(rj.Quaternion().to_matrix(p), R, atol=1e-14)
    # The start that follows from what they measured is the state again.
    still = eqx.tree_at(lambda s: (s.orientation, s.angular_velocity), state,
                        (jnp.tile(jnp.eye(4)[:1], (2, 1)), jnp.zeros((2, 3))))  # fmt: skip
    again = attitude.start(model, pairs[1][0].start(model, still, found[1][0]), p)
    np.testing.assert_allclose(again.orientation[1], state.orientation[1], atol=1e-14)
    np.testing.assert_allclose(again.angular_velocity[1], state.angular_velocity[1], atol=1e-14)


@pytest.mark.exhaustive
def test_forces_on_a_frame_equal_mounted_forces(model, state):
    R_f, bodies = np.asarray(tool().rotation), model.system.bodies
    at, hook = POINT + R_f @ OFFSET, np.array([1.0, 0.2, 0.4])
    origin, centre = tool().in_space(bodies[1])[0], bodies[0].position
    F, mount = jnp.array([1.0, -2.0, 0.5]), (jnp.array([3.0, 2, 1, 3, 2, 1]), 0.2)
    pairs = [
        (rj.PointForce("tool", OFFSET, F), rj.PointForce("arm", at, F)),
        (rj.PointForce("tool", force=F), rj.PointForce("arm", at=origin, force=F)),
        (rj.PointForce("tool", OFFSET, F, "body"), rj.PointForce("arm", at, R_f @ F, "body")),
        (rj.PointForce("tool", at=hook, force=F), rj.PointForce("arm", at=hook, force=F)),
        (rj.Torque("tool", F), rj.Torque("arm", R_f @ F)),
        (rj.Spring("tool", "ground", None, hook, 9.0, 0.3),
         rj.Spring("arm", "ground", origin, hook, 9.0, 0.3)),
        (rj.Spring("other", "tool", None, None, 9.0, 0.3),
         rj.Spring("other", "arm", centre, origin, 9.0, 0.3)),
        (rj.Bushing("other", "tool", hook, *mount), rj.Bushing("other", "arm", hook, *mount)),
        (Pull("tool", F), rj.PointForce("arm", POINT, F)),
    ]  # fmt: skip

    @eqx.filter_jit
    def evaluate_force(force, state):
        system = rj.System(bodies, (), force, tool())
        seen = rj.NullSpace(system).kinematics(T, model.encode(state))
        energy = system.potential_energy(T, seen) if type(force) is rj.Spring else T
        return system.wrenches(T, seen), system.virials(T, seen), energy

    for first, second in pairs:
        for one, other in zip(
            evaluate_force(first, state), evaluate_force(second, state), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    # Forces of a kind on several frames are stacked.
    frames = [tool(), rj.Frame("hook", "other", OFFSET)]
    system = rj.System(bodies, (), [pairs[0][0], rj.PointForce("hook", force=2 * F)], frames)
    y = model.encode(state)
    both = eqx.filter_jit(lambda s: s.wrenches(T, model.kinematics(T, y)))(system)
    np.testing.assert_allclose(both[1], evaluate_force(pairs[0][0], state)[0][1], atol=1e-13)
    np.testing.assert_allclose(both[0, :3], 2 * F)
    np.testing.assert_allclose(both[0, 3:], np.cross(OFFSET, 2 * F), atol=1e-14)

    @jax.jit
    @jax.jacfwd
    def moment(point):
        moved = eqx.tree_at(lambda s: s.frames[0].point, rj.System(bodies, (), pairs[1][0], tool()),
                            point)  # fmt: skip
        return moved.wrenches(T, model.kinematics(T, y))[1, 3:]

    R = rj.Quaternion().to_matrix(state.orientation[1])
    np.testing.assert_allclose(moment(jnp.asarray(POINT)), -so3.skew(R.T @ F), atol=1e-14)


@pytest.mark.exhaustive
def test_energy_is_conserved_with_forces_on_frames(model, state):
    """To round-off in steps that conserve it, also of a law that says that it is linear."""
    spring = rj.Spring("other", "tool", None, None, 9.0, length=0.3)
    forces = [Pull("tool", jnp.array([1.0, -2.0, 0.5])), spring]
    loaded = rj.NullSpace(rj.System(model.system.bodies, (), forces, tool()))
    ts = jnp.linspace(0.0, 0.5, 6)
    run = rj.simulate(loaded, state, 0.5, ts=ts, solver=rj.solvers.EnergyMomentum(), dt=0.02)
    assert jnp.ptp(run.energy) < 1e-11
    assert jnp.ptp(jax.vmap(loaded.kinetic_energy)(run.ts, run.ys)) > 0.1


def test_poses_of_frames_of_a_run(model, state):
    run = rj.simulate(model, state, 0.1, ts=jnp.array([0.0, 0.1]))
    x, R = run.frames["tool"]
    arm = jax.vmap(rj.Quaternion().to_matrix)(run.states.orientation[:, 1])
    np.testing.assert_allclose(x, run.states.position[:, 1] + arm @ POINT, atol=1e-13)
    np.testing.assert_allclose(R, arm @ tool().rotation, atol=1e-13)
    data = run.to_xarray().sel(frame="tool")
    np.testing.assert_allclose(data.frame_position, x, atol=1e-13)
    turned = jax.vmap(rj.Quaternion().to_matrix)(jnp.asarray(data.frame_orientation.values))
    np.testing.assert_allclose(turned, R, atol=1e-13)


def test_frames_do_not_move_with_the_centre_of_mass(model):
    """As joints do, where a regression finds other centres of mass; joints are put at frames."""
    system = model.system
    before = system.frames[0].in_space(system.bodies[1])[0]
    moved = np.array(inertial_parameters(system)).reshape(2, 10)
    moved[1, 1:4] = 2.0 * np.array([0.01, 0.02, -0.01])
    moved[1, [4, 6, 9]] += 0.1
    new = with_inertial_parameters(system, moved.ravel())
    np.testing.assert_allclose(new.bodies[1].position - system.bodies[1].position,
                               [0.01, 0.02, -0.01], atol=1e-14)  # fmt: skip
    np.testing.assert_allclose(new.frames[0].in_space(new.bodies[1])[0], before, atol=1e-14)


def test_invalid_frames_raise(model, state):
    with pytest.raises(ValueError, match="no body or frame called 'tol'. Did you mean 'tool'"):
        model.jacobian(T, model.encode(state), "tol")
    with pytest.raises(ValueError, match="no body or frame called 'x'"):
        rj.Position("x").check(model)
    bodies = model.system.bodies
    with pytest.raises(ValueError, match="'arm' more than once"):
        rj.System(bodies, frames=rj.Frame("arm", "other"))
    with pytest.raises(ValueError, match="no body called 'leg'"):
        rj.System(bodies, frames=rj.Frame("foot", "leg"))
    with pytest.raises(ValueError, match="no body or frame called 'tol'. Did you mean 'tool'"):
        rj.System(bodies, forces=rj.PointForce("tol", force=OFFSET), frames=tool())
    with pytest.raises(ValueError, match=r"`Spring` acts between different bodies; \['tool', 'arm"):
        rj.System(bodies, (), rj.Spring("tool", "arm", None, None, 1.0), tool())
    with pytest.raises(TypeError, match=r"System\(frames=...\)` takes Frame objects"):
        rj.System(bodies, frames="tool")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match='other than "ground"'):
        rj.Frame("tool", "ground")
    with pytest.raises(TypeError, match=r"Frame\(name=...\)` must be a string"):
        rj.Frame(3, "arm")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"Frame\(point=...\)"):
        rj.Frame("tool", "arm", (1.0, 2.0))
    with pytest.raises(ValueError, match="unit quaternion"):
        rj.Frame("tool", "arm", orientation=(1.0, 1.0, 0, 0))
