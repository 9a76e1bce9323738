"""Synthesis by gradients: a four-bar whose coupler point follows a line, optimised from a rough design."""

import jax.numpy as jnp
import numpy as np
import optimistix as optx

import rigidjax as rj


def run(x, ts):
    z = jnp.zeros(())
    a, b, c, d = (jnp.stack([p, z, q]) for p, q in ((z, z), (z, x[0]), (x[1], x[2]), (x[3], x[4])))
    tip, I = jnp.stack([x[5], z, x[6]]), (0.01, 0.01, 0.01)
    middles = {"crank": (a + b) / 2, "coupler": tip, "rocker": (c + d) / 2}
    bodies = [rj.Body(name, 1.0, I, position=point) for name, point in middles.items()]
    names, axis = ["ground", *middles, "ground"], (0, 1, 0)
    joints = [rj.Revolute(*names[k : k + 2], p, axis) for k, p in enumerate((b, c, d), 1)]
    drive = rj.Revolute("ground", "crank", a, axis, motion=lambda t: 2 * np.pi * t)
    system = rj.System(bodies, drive, joints)
    start = rj.consistent_state(system, system.reference_state())
    return rj.simulate(rj.NullSpace(system), start, 1.0, ts=ts, rtol=1e-6, atol=1e-6)


ts = jnp.linspace(0.5, 1.0, 26)
line = jnp.stack([1.6 * (ts - 0.5), 0 * ts + 0.8], axis=1)


def miss(x, _):
    return run(x, ts).states.position[:, 1, ::2] - line


rough = jnp.array([0.22, 0.45, 0.45, 0.42, 0.02, 0.75, 0.75])
found = optx.least_squares(miss, optx.LevenbergMarquardt(1e-5, 1e-5), rough).value
turn = np.linspace(0, 1, 121)
shown = rj.view(run(found, turn), run(rough, turn), labels=["found", "rough"], speed=0.25)
