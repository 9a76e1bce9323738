"""A fit of a thrown hinge: tracked poses of two links in flight, overlaid with the fitted motion."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.rotations import so3

data = np.load("datasets/dair_tosses/elbow_flights.npz")
rows = data["state"][230, :16].astype(float)
ts, hinge, arm = np.arange(16) / 148.0, np.array([-0.035, 0.06, 0]), np.array([0.035, 0, 0])


def measured(row):
    turned = so3.multiply(row[:4], so3.exp_quaternion(row[7] * jnp.array([0.0, 1.0, 0.0])))
    second = row[4:7] + so3.rotate(row[:4], hinge) + so3.rotate(turned, arm)
    return rj.State(jnp.stack([row[4:7], second]), jnp.stack([row[:4], turned]))


size, joint = (0.1, 0.05, 0.05), rj.Revolute("0", "1", hinge, (0, 1, 0), name="hinge")
links = [rj.Body.box(str(k), size, mass=0.37, position=k * (hinge + arm)) for k in (0, 1)]
system = rj.System(links, joint, rj.Gravity((0, 0, -9.81)))
model, poses = rj.NullSpace(system), jax.vmap(measured)(rows)
values = {rj.Position("0"): rows[:, 4:7], rj.Attitude("0"): rows[:, :4]}
values |= {rj.JointCoordinate("hinge"): rows[:, 7]}
start = rj.identification.start_state(model)
fit = rj.identify(model, rj.Measurements(ts, values), start, state0=measured(rows[0]))
sol = rj.simulate(model, fit.states[0], ts[-1], ts=ts)
shown = rj.view(sol, (system, poses, ts), labels=["fit", "measured"])
