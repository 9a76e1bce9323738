"""Two balls thrown with equal velocity, one of them in air."""

import numpy as np

import rigidjax as rj


def thrown(*drag):
    ball = rj.Body.sphere("ball", 0.11, mass=0.43, velocity=(12, 0, 14))
    system = rj.System(ball, drag, rj.Gravity((0, 0, -9.81)))
    ts = np.linspace(0, 2.5, 101)
    return rj.simulate(rj.NullSpace(system), system.reference_state(), 2.5, ts=ts)


air = rj.Drag("ball", quadratic=0.011)
shown = rj.view(thrown(air), thrown(), labels=["in air", "in vacuum"])
