"""A Stewart platform: six legs, each extended by a motor with a spring and a damper."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.problems.linkages import link

angles = np.deg2rad([-20, 20, 100, 140, 220, 260])
base = np.stack([0.8 * np.cos(angles), 0.8 * np.sin(angles), 0 * angles], axis=1)
angles = np.deg2rad([-45, 45, 75, 165, 195, 285])
top = np.stack([0.4 * np.cos(angles), 0.4 * np.sin(angles), 0 * angles + 0.9], axis=1)
bodies = [rj.Body.cylinder("platform", 0.45, 0.06, mass=20.0, position=(0, 0, 0.9))]
joints, forces = [], [rj.Gravity((0, 0, -9.81))]
for k, (a, b) in enumerate(zip(base, top, strict=True)):
    low, high = f"tube {k}", f"rod {k}"
    along, across = b - a, np.cross(b - a, (0, 0, 1))
    bodies += [link(low, a, a + 0.5 * along, 2.0, 0.08), link(high, a + 0.4 * along, b, 1.0, 0.04)]
    joints += [
        rj.Universal("ground", low, a, axis1=across, axis2=np.cross(along, across)),
        rj.Prismatic(low, high, axis=along, point=a + 0.5 * along, name=f"leg {k}"),
        rj.Spherical(high, "platform", b),
    ]

    def push(t, q, v, k=k):
        return -2e4 * (q - 0.1 * jnp.sin(t) * jnp.sin(2 * t + k)) - 1e3 * v

    forces.append(rj.Motor(f"leg {k}", push))
system = rj.System(bodies, joints, forces)
sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 6.3, ts=np.linspace(0, 6.3, 253))
shown = rj.view(sol)
