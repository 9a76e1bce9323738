"""A stiff flyball governor: benchmark A05."""

import math

import numpy as np

from ..bodies import Body
from ..forces import AbstractForce, Gravity, Spring
from ..joints import Prismatic, Revolute
from ..mechanics import System
from ..state import State
from .links import in_body, turn_to
from .problem import Problem

DENSITY, BALL = 3000.0, 5.0
STIFFNESS, DAMPING, FREE_LENGTH = 8.0e5, 4.0e4, 0.5
SPIN = 2 * math.pi
_HINGE, _TOP, _LENGTH, _SECTION = 0.05, 1.0, 1.0, 0.01
_SLIDER, _HEIGHT = 0.1, 0.5


def flyball_governor() -> Problem:
    """Build two balls on rods that are hinged to a freely rotating shaft; 10 s.

    Stiff spring-dampers connect the rods to a slider. They relax in 1e-5 s to 1e-4 s, which
    requires an implicit solver such as `rj.solvers.Radau5`. A rod and the ball at its end are one
    body; its first body axis is along the rod. All bodies start with the rotation of the shaft, one
    revolution per second.

    **Source:** IFToMM library of computational benchmark problems, A05.
    """
    rod = Body.box("rod", (_LENGTH, _SECTION, _SECTION), density=DENSITY)
    rod_mass, rod_inertia = float(rod.mass), np.asarray(rod.inertia, float)
    shaft = Body.box(
        "shaft", (_SECTION, _SECTION, _LENGTH), density=DENSITY, position=(0.0, 0.0, _LENGTH / 2)
    )
    slider = Body.box("slider", (_SLIDER,) * 3, density=DENSITY, position=(0.0, 0.0, _HEIGHT))
    mass = rod_mass + BALL
    center = (0.5 * rod_mass + BALL) * _LENGTH / mass
    shift = rod_mass * (center - 0.5 * _LENGTH) ** 2 + BALL * (_LENGTH - center) ** 2
    inertia = rod_inertia + np.array([0.0, shift, shift])
    bodies, joints = [shaft, slider], []
    forces: list[AbstractForce] = [Gravity((0.0, 0.0, -9.81))]
    joints += [
        Revolute("ground", "shaft", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        Prismatic("shaft", "slider", (0.0, 0.0, 1.0)),
    ]
    for name, sign in (("arm 1", 1.0), ("arm 2", -1.0)):
        along = np.array([sign * math.cos(math.pi / 6), 0.0, -0.5])
        hinge = np.array([sign * _HINGE, 0.0, _TOP])
        bodies.append(Body(name, mass, inertia, hinge + center * along, turn_to(along)))
        joints.append(Revolute("shaft", name, hinge, (0.0, 1.0, 0.0)))
        below, middle = (sign * _HINGE, 0.0, _HEIGHT), hinge + 0.5 * _LENGTH * along
        forces.append(Spring("slider", name, below, middle, STIFFNESS, DAMPING, length=FREE_LENGTH))
    system = System(bodies, joints, forces)
    reference = system.reference_state()
    spin = np.array([0.0, 0.0, SPIN])
    state0 = State(
        reference.position,
        reference.orientation,
        np.cross(spin, np.asarray(reference.position, float)),
        np.stack([in_body(body.orientation, spin) for body in bodies]),
    )
    return Problem(
        "flyball_governor", "Stiff flyball governor", system, state0, 10.0, "IFToMM benchmark A05"
    )
