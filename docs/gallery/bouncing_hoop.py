"""A hoop with backspin: it bounces, slides on the ground, and comes back."""

import numpy as np

import rigidjax as rj
from rigidjax.viewer import box

radius, tube, n = 0.3, 0.02, 32
around, across = (2 * np.pi * k.ravel() / n for k in np.meshgrid(*[np.arange(n)] * 2))
far = radius - tube + tube * np.cos(across)
ring = np.stack([far * np.cos(around), tube * np.sin(across), far * np.sin(around)], axis=1)
a, b = (k.ravel() for k in np.meshgrid(np.arange(n), n * np.arange(n)))
right, above = (a + 1) % n, (b + n) % n**2
upper, lower = (right + b, a + above, right + above), (a + b, a + above, right + b)
faces = np.concatenate([np.stack(corners, axis=-1) for corners in (lower, upper)])
inertia = 0.5 * radius**2 * np.array([1, 2, 1])
hoop = rj.Body("hoop", 1.0, inertia)
system = rj.System(hoop, rj.Gravity((0, 0, -9.81)))
bounce = rj.Transition(rj.PlaneContact("hoop", radius=radius), rj.Restitution(0.75, friction=0.25))
state = rj.State(position=(0, 0, 1.0), velocity=(2.2, 0, 0), angular_velocity=(0, -14.0, 0))
ts = np.linspace(0, 2.6, 261)
sol = rj.simulate(rj.NullSpace(system), state, 2.6, ts=ts, transitions=[bounce], max_transitions=20)
spokes = [box((2 * radius - tube, tube, tube)), box((tube, tube, 2 * radius - tube))]
shown = rj.view(sol, shapes={"hoop": [rj.Mesh(ring, faces), *spokes]})
