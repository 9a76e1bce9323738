"""Springs and motors on joint coordinates: powers, revolutions, energies of runs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forces.multibody import BODIES, POINT
from formulations import cases
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.mechanics.kinematics.poses import (
    assemble_poses,
    differentiate_along_motion,
    joint_frames_at,
    kinematics_for_forces,
)
from rigidjax.mechanics.kinematics.trees import body_twists
from rigidjax.mechanics.stacked.system import PreparedSystem
from rigidjax.rotations import euler_map

AXIS, ACROSS = np.array([1.0, 2.0, 2.0]) / 3, np.array([2.0, 1.0, -2.0]) / 3
T, TURN = jnp.array(0.4), np.eye(3)
HUB, ARM = BODIES
PITCH = 0.7


about = lambda axis, angle: Rotation.from_rotvec(angle * TURN[axis]).as_matrix()  # noqa: E731

# Joints, and the relative pose of their frames as a function of their coordinates.
JOINTS = (
    rj.Revolute("hub", "1", POINT, AXIS),
    rj.Prismatic("hub", "2", AXIS, point=POINT),
    rj.Cylindrical("hub", "3", POINT, AXIS),
    rj.Screw("hub", "4", POINT, AXIS, PITCH),
    rj.Universal("hub", "5", POINT, AXIS, ACROSS),
    rj.Planar("hub", "6", POINT, AXIS),
)
POSES = (
    lambda q: (np.zeros(3), about(2, q[0])),
    lambda q: (q[0] * TURN[2], TURN),
    lambda q: (q[0] * TURN[2], about(2, q[1])),
    lambda q: (PITCH * q[0] / (2 * np.pi) * TURN[2], about(2, q[0])),
    lambda q: (np.zeros(3), about(0, q[0]) @ about(1, q[1])),
    lambda q: (np.array([q[0], q[1], 0.0]), about(2, q[2])),
)
LAWS = {
    "spring": lambda j, k: rj.TorsionSpring(j, 2.0 + k, 0.0, 0.4, k),
    "damper": lambda j, k: rj.TorsionSpring(j, 0.0, 0.3 + k, 0.0, k),
    "motor": lambda j, k: rj.Motor(j, lambda t, q, w: t + q * w, k),
}


def draw_poses(rng):
    """Poses of the hub and of what it carries, by the definition of the coordinates."""
    R0, R_hub0 = (np.asarray(euler_map(body.orientation)) for body in (ARM, HUB))
    R_hub, x_hub = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
    turned, chosen = R_hub @ R_hub0.T, []
    positions, rotations = [x_hub], [R_hub]
    for joint, relative in zip(JOINTS, POSES, strict=True):
        q = rng.uniform(-1.2, 1.2, joint.num_rates)
        d, Q = relative(q)
        F = np.asarray(joint.frame())
        R = turned @ F @ Q @ F.T @ R0
        point = x_hub + turned @ (POINT - np.asarray(HUB.position)) + turned @ F @ d
        positions.append(point - R @ R0.T @ (POINT - np.asarray(ARM.position)))
        rotations.append(R)
        chosen.append(q)
    return np.stack(positions), np.stack(rotations), chosen


@pytest.mark.exhaustive
def test_power_is_the_rate_of_the_energy():
    """The power of springs is the loss of energy, of dampers c q'^2, of motors Q q'."""
    bodies = [
        rj.Body(name, body.mass, body.inertia, body.position, body.orientation)
        for name, body in (("hub", HUB), *((joint.child, ARM) for joint in JOINTS))
    ]
    systems = [
        rj.System(bodies, JOINTS, [law(j, k) for j in JOINTS for k in range(j.num_rates)])
        for law in LAWS.values()
    ]
    rng = np.random.default_rng(5)
    x, R, chosen = draw_poses(rng)
    prepared = PreparedSystem(systems[0])
    nu = rng.normal(size=prepared.num_rates)

    @jax.jit
    def evaluate(x, R, nu):
        poses = assemble_poses(prepared, x, R, jnp.zeros(0))
        joint_frames = joint_frames_at(prepared, poses)
        twists = body_twists(prepared, T, poses, joint_frames, nu)
        bodies = kinematics_for_forces(prepared, poses, joint_frames, twists)

        def energy(t, poses):
            seen = kinematics_for_forces(prepared, poses, joint_frames_at(prepared, poses), twists)
            return systems[0].potential_energy(t, seen)

        _, rate = differentiate_along_motion(energy, T, poses, twists)
        powers = []
        for system in systems:
            rates = jnp.concatenate([twists.linear, twists.angular], axis=1)
            powers.append(jnp.sum(system.wrenches(T, bodies) * rates))
        found = [bodies.joints[j.name] for j in JOINTS]
        return powers, rate, [joint.coordinates for joint in found], [j.rates for j in found]

    (lost, damped, driven), rate, q, w = evaluate(x, R, nu)
    for found, given in zip(q, chosen, strict=True):
        assert cases.error(found, given) < 1e-13
    assert abs(rate) > 0.1
    assert cases.error(jnp.concatenate(w), nu[6:]) < 1e-13
    assert cases.error(lost, -rate) < 1e-13
    c = [0.3 + jnp.arange(len(rates), dtype=rates.dtype) for rates in w]
    assert cases.error(damped, -sum(jnp.sum(c * w * w) for c, w in zip(c, w, strict=True))) < 1e-13
    work = sum(jnp.sum((T + q * w) * w) for q, w in zip(q, w, strict=True))
    assert cases.error(driven, work) < 1e-13


class Control(eqx.Module):
    """A law with a parameter."""

    gain: jax.Array

    def __call__(self, t, coordinate, rate):
        return -self.gain * rate


def test_arguments_of_motor_laws():
    """A law is a number, a function of time, or a function of the state, by its required
    parameters.
    """
    coordinate, rate = jnp.array(0.3), jnp.array(1.2)
    value = lambda torque: rj.Motor("j", torque).generalised_force(T, coordinate, rate)  # noqa: E731
    assert value(2.5) == 2.5
    assert value(jnp.sin) == jnp.sin(T)
    assert value(lambda t, scale=3.0: scale * t) == 3.0 * T
    assert value(lambda t, q, w: t + 10 * q + 100 * w) == T + 10 * coordinate + 100 * rate
    assert value(Control(jnp.array(0.5))) == -0.5 * rate
    assert len(jax.tree.leaves(rj.Motor("j", Control(jnp.array(0.5))))) == 1
    assert rj.Motor("j", jnp.sin).is_linear
