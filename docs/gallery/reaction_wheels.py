"""A satellite turns by its reaction wheels: motors accelerate three wheels, and brake them again."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.viewer import box

half, aim = np.sqrt(0.5), (0.9, 1.4, -2.2)
positions = [(0.06, -0.06, 0), (-0.06, 0.06, 0), (0.05, 0.05, -0.06)]
turns = [(half, 0, half, 0), (half, -half, 0, 0), (1, 0, 0, 0)]
bodies, joints, motors = [rj.Body("bus", 9.0, (0.11, 0.1, 0.13))], [], []
for k, name in enumerate(("wheel x", "wheel y", "wheel z")):
    pose = {"position": positions[k], "orientation": turns[k]}
    bodies.append(rj.Body.cylinder(name, 0.075, 0.03, mass=4.0, **pose))
    joints.append(rj.Revolute("bus", name, positions[k], np.eye(3)[k], name=name))

    def torque(t, angle, rate, k=k):
        return -0.07 * aim[k] * jnp.sin(np.pi * t / 2)

    motors.append(rj.Motor(name, torque))
system = rj.System(bodies, joints, motors)
sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 4.0, ts=np.linspace(0, 4, 241))
floor, wing = (0.3, 0.3, 0.02), (0.3, 0.5, 0.008)
parts = [box(floor, (0, 0, -0.1)), box(wing, (0, 0.43, -0.1)), box(wing, (0, -0.43, -0.1))]
parts += [box((0.02, 0.02, 0.2), (x, y, 0)) for x in (-0.14, 0.14) for y in (-0.14, 0.14)]
shown = rj.view(sol, shapes={"bus": parts})
