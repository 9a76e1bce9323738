"""A satellite turns by its reaction wheels: motors accelerate three wheels, and brake them again."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.viewer import box

axes, aim = np.eye(3), np.array([0.9, 1.4, -2.2])
positions = np.array([[0.06, -0.06, 0], [-0.06, 0.06, 0], [0.05, 0.05, -0.06]])
half = np.sqrt(0.5)
turns = [(half, 0, half, 0), (half, -half, 0, 0), (1, 0, 0, 0)]
bus = rj.Body("bus", 9.0, (0.11, 0.1, 0.13))
bodies = [bus] + [
    rj.Body.cylinder(f"wheel {name}", 0.075, 0.03, mass=4.0, position=position, orientation=turn)
    for name, turn, position in zip("xyz", turns, positions, strict=True)
]
joints = [
    rj.Revolute("bus", f"wheel {name}", position, axis, name=f"wheel {name}")
    for name, axis, position in zip("xyz", axes, positions, strict=True)
]


def torque(k):
    """Return a torque that turns the bus in 4 s from rest to rest, about `aim`."""
    return lambda t, angle, rate: -0.07 * aim[k] * jnp.sin(np.pi * t / 2)


motors = [rj.Motor(joint.name, torque(k)) for k, joint in enumerate(joints)]
system = rj.System(bodies, joints, motors)
sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 4.0, ts=np.linspace(0, 4, 241))
floor, wing = (0.3, 0.3, 0.02), (0.3, 0.5, 0.008)
parts = [box(floor, (0, 0, -0.1)), box(wing, (0, 0.43, -0.1)), box(wing, (0, -0.43, -0.1))]
parts += [box((0.02, 0.02, 0.2), (x, y, 0)) for x in (-0.14, 0.14) for y in (-0.14, 0.14)]
shown = rj.view(sol, shapes={"bus": parts})
