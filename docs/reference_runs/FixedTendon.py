"""A finger of two links: a tendon over pulleys on both joints pulls it back when it is stretched."""

import numpy as np

import rigidjax as rj

links = [
    rj.Body.box(name, (0.05, 0.05, 0.4), mass=0.5, position=(0, 0, z))
    for name, z in (("first", 0.2), ("second", 0.6))
]
joints = [
    rj.Revolute("ground", "first", (0, 0, 0), axis=(0, 1, 0), name="knuckle", damping=0.02),
    rj.Revolute("first", "second", (0, 0, 0.4), axis=(0, 1, 0), name="middle", damping=0.02),
]
tendon = rj.FixedTendon({"knuckle": 0.03, "middle": 0.02}, stiffness=4e3, damping=5.0)
system = rj.System(links, joints, tendon)
start, ts = rj.jointed_state(system, {"knuckle": 0.6, "middle": 0.9}), np.linspace(0, 3, 151)
sol = rj.simulate(system, start, 3.0, ts=ts)
shown = rj.view(sol)
