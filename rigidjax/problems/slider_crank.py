"""A slider-crank mechanism in space."""

import numpy as np

from ..bodies import Body
from ..forces import Gravity
from ..joints import Prismatic, Revolute, Spherical, Universal
from ..mechanics import System
from ..state import State
from .links import in_body, turn_to
from .problem import Problem

_RATE = 6.0


def slider_crank() -> Problem:
    """Build a spatial slider-crank under gravity; 5 s.

    A ball joint connects crank and connecting rod, a universal joint the rod and the slider. The
    crank rotates about the first axis and starts upright with 6 rad/s. The slider moves parallel to
    this axis, below and beside the crank.

    **Source:** IFToMM library of computational benchmark problems, spatial rigid slider-crank.
    """
    pivot, slider_at = np.array([0.0, 0.1, 0.12]), np.array([0.2, 0.0, 0.0])
    pin = pivot + np.array([0.0, 0.0, 0.08])
    rod = slider_at - pin
    bodies = [
        Body("crank", 0.12, (1e-4, 1e-4, 1e-5), (pivot + pin) / 2),
        Body("rod", 0.5, (4e-4, 4e-3, 4e-3), (pin + slider_at) / 2, turn_to(rod)),
        Body("slider", 2.0, (1e-4, 1e-4, 1e-4), slider_at),
    ]
    first = np.array([1.0, 0.0, 0.0])  # along the slider, as in the submitted solutions
    joints = [
        Revolute("ground", "crank", pivot, (1.0, 0.0, 0.0)),
        Spherical("crank", "rod", pin),
        Prismatic("ground", "slider", (1.0, 0.0, 0.0), point=slider_at),
        Universal("slider", "rod", slider_at, first, np.cross(rod, first)),
    ]
    system = System(bodies, joints, Gravity((0.0, 0.0, -9.81)))
    reference = system.reference_state()
    spin = np.array([_RATE, 0.0, 0.0])
    swing = np.cross(spin, pin - pivot)
    # The rate of the slider follows from the constant length of the rod.
    speed = np.array([swing @ rod / rod[0], 0.0, 0.0])
    velocity = np.stack([swing / 2, (swing + speed) / 2, speed])
    across = np.cross(rod, speed - swing) / (rod @ rod)
    # The rotation of the rod about its line is determined by the universal joint, which permits no
    # rotation about the normal to both of its axes.
    normal = np.cross(first, np.cross(rod, first))
    rod_spin = across - rod * (across @ normal) / (rod @ normal)
    omega = np.stack([spin, np.zeros(3), np.zeros(3)])
    omega[1] = in_body(bodies[1].orientation, rod_spin)
    state0 = State(reference.position, reference.orientation, velocity, omega)
    return Problem(
        "slider_crank",
        "Spatial slider-crank",
        system,
        state0,
        5.0,
        "IFToMM benchmark, spatial rigid slider-crank",
    )
