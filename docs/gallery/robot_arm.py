"""A robot arm of six hinges: motors with a spring and a damper each follow a prescribed motion."""

import itertools

import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.problems.linkages import link

names = ["ground", "base", "upper arm", "elbow", "forearm", "wrist", "hand"]
axes, stiffness = "zyyxyx", (4000, 9000, 5000, 800, 400, 100)
x, z = (0, 0, 0, 0.15, 0.5, 0.6, 0.75), (0, 0.4, 0.9, 0.9, 0.9, 0.9, 0.9)
points = np.stack([x, np.zeros(7), z], axis=1)
bodies, joints = [], []
for k, (a, b) in enumerate(itertools.pairwise(points)):
    bodies.append(link(names[k + 1], a, b, mass=12 / (k + 1), thickness=0.12 - 0.015 * k))
    axis = np.eye(3)["xyz".index(axes[k])]
    joints.append(rj.Revolute(names[k], names[k + 1], a, axis, name=f"q{k}"))


def motor(k):
    def torque(t, angle, rate):
        wanted = (0.9 - 0.1 * k) * jnp.sin((0.7 + 0.25 * k) * t) ** 2
        return -stiffness[k] * (angle - wanted) - 0.05 * stiffness[k] * rate

    return rj.Motor(f"q{k}", torque)


system = rj.System(bodies, joints, map(motor, range(6)), rj.Gravity((0, 0, -9.81)))
start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.NullSpace(system), start, 6.0, ts=ts, rtol=1e-6, atol=1e-6)
shown = rj.view(sol)
