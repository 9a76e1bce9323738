"""A rod on a horizontal hinge under gravity, and its angle by SciPy."""

import numpy as np
from scipy.integrate import solve_ivp

import rigidjax as rj

MASS, LENGTH, INERTIA, GRAVITY = 1.3, 0.4, 0.05, 9.81
ENCODER = rj.JointCoordinate("hinge")


def pendulum(x=LENGTH, z=0.0, forces=(), **options):
    """A rod whose centre of mass is at (x, 0, z) from its hinge, in the reference configuration."""
    rod = rj.Body("rod", MASS, (1e-3, INERTIA, INERTIA), (x, 0, z))
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), (0, 1, 0), name="hinge", **options)
    return rj.NullSpace(rj.System(rod, hinge, [rj.Gravity((0, 0, -GRAVITY)), *forces]))


def angles(ts, start=(0.0, 0.0), x=LENGTH, damping=0.0, armature=0.0):
    """Angles at the times `ts`, from angle and rate at zero, of a rod with z = 0."""

    def slope(t, y):
        moment = MASS * GRAVITY * x * np.cos(y[0]) - damping * y[1]
        return [y[1], moment / (INERTIA + MASS * x**2 + armature)]

    return solve_ivp(slope, (0, ts[-1]), start, t_eval=ts, rtol=1e-11, atol=1e-12).y[0]
