"""Bricard's overconstrained mechanism: benchmark A04."""

from ..forces import Gravity
from ..joints import Revolute
from ..mechanics import System
from .links import link
from .problem import Problem

_POINTS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
_AXES = ("y", "z", "x", "y", "z", "x")


def bricard(thickness: float = 0.0) -> Problem:
    """Build five rods of 1 m and 1 kg with six hinges, under gravity; 10 s.

    The mechanism has one degree of freedom because of its special geometry; counting constraints
    gives none. Thin rods reproduce the published motion.

    **Arguments:** `thickness` of the rods (square section), m; `Absolute` needs a positive one.
    **Source:** IFToMM library of computational benchmark problems, A04.
    """
    names = ["ground", *(f"rod {i + 1}" for i in range(5)), "ground"]
    bodies = [
        link(name, _POINTS[i], _POINTS[i + 1], thickness=thickness)
        for i, name in enumerate(names[1:-1])
    ]
    joints = [
        Revolute(names[i], names[i + 1], _POINTS[i], [float(axis == x) for x in "xyz"])
        for i, axis in enumerate(_AXES)
    ]
    system = System(bodies, joints, Gravity((0.0, -9.81, 0.0)))
    return Problem(
        "bricard",
        "Bricard's mechanism",
        system,
        system.reference_state(),
        10.0,
        "IFToMM benchmark A04",
    )
