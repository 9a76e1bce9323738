"""Two gears: the small one rotates twice as fast, in the opposite direction."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj

large = rj.Body.cylinder("large", 0.4, 0.08, mass=8.0)
small = rj.Body.cylinder("small", 0.2, 0.08, mass=2.0, position=(0.6, 0, 0))
joints = [
    rj.Revolute("ground", "large", (0, 0, 0), axis=(0, 0, 1), name="first"),
    rj.Revolute("ground", "small", (0.6, 0, 0), axis=(0, 0, 1), name="second"),
    rj.Coupling("second", by="first", ratio=-2.0),
]
system = rj.System(large, small, joints, rj.Motor("first", lambda t: 1.5 * jnp.cos(t)))

start, ts = system.reference_state(), np.linspace(0, 6, 241)
sol = rj.simulate(rj.NullSpace(system), start, 6.0, ts=ts)
shown = rj.view(sol)
