"""One body on one joint or spring, as solved with ADAMS."""

import difflib
import math
from typing import NamedTuple

from ..bodies import Body
from ..forces import AbstractForce, Gravity, Spring, TorsionSpring
from ..joints import (
    AbstractJoint,
    Cylindrical,
    Distance,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from ..system import System
from .problem import Problem

_HALF = math.sqrt(0.5)
_TILT = math.pi / 8
_SLENDER = (0.04, 0.1, 0.1)


class _Case(NamedTuple):
    """Centre of mass and orientation of the body at the start; its joint; its inertia."""

    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float]
    joint: AbstractJoint | None
    inertia: tuple[float, float, float] = _SLENDER


def _cases() -> dict[str, _Case]:
    origin, level = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    along, quarter = (2.0, 0.0, 0.0), (_HALF, -_HALF, 0.0, 0.0)
    a, b = "ground", "pendulum"
    # The third axis of the joint frames that the decks turn by -90 degrees about the first.
    hinge = Revolute(a, b, origin, (0.0, 1.0, 0.0), name="joint")
    eighth = (math.cos(_TILT), -math.sin(_TILT), 0.0, 0.0)
    ball = Spherical(a, b, (1.0, 2.0, 3.0), name="joint")
    slide = Prismatic(a, b, (0.0, 0.0, 1.0), name="joint")
    tube = Cylindrical(a, b, origin, (0.0, 0.0, 1.0), name="joint")
    cross = Universal(a, b, origin, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="joint")
    rod = Distance(a, b, origin, (0.0, 2.0, 0.0), name="joint")
    return {
        "revolute": _Case(along, quarter, hinge),
        "spherical": _Case((3.0, 2.0, 3.0), eighth, ball),
        "prismatic": _Case(along, level, slide),
        "cylindrical": _Case(along, level, tube),
        "universal": _Case((0.0, 2.0, 0.0), (_HALF, _HALF, 0.0, 0.0), cross, (0.1, 0.1, 0.04)),
        "distance": _Case((0.0, 2.0, 0.0), level, rod),
        "transpring": _Case(origin, level, None),
        "rotspring": _Case(along, quarter, hinge),
    }


def adams_case(name: str = "revolute") -> Problem:
    """A body of 1 kg and 4 m, released at rest under gravity; 5 s.

    The joint is 2 m from the centre of mass and called `"joint"`; ADAMS's tables of motion and
    reactions are in Chrono's tests.

    **Arguments:** `name`: `"revolute"` (Chrono's case 01), `"spherical"` (02), `"prismatic"` (01),
    `"cylindrical"` (01), `"universal"` (01), `"distance"` (01); `"transpring"` (01), no joint, a
    spring from the origin, where it starts, 10 N/m and 0.5 N s/m; `"rotspring"` (01), the hinge
    with 200 N m/rad and 10 N m s/rad.
    **Source:** Project Chrono, unit tests of joints, with ADAMS decks and results.
    """
    cases = _cases()
    if name not in cases:
        near = difflib.get_close_matches(str(name), cases, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(cases)}."
        raise ValueError(f"`adams_case(name={name!r})` does not exist. {hint}")
    case = cases[name]
    body = Body("pendulum", 1.0, case.inertia, case.position, case.orientation)
    forces: list[AbstractForce] = [Gravity((0.0, 0.0, -9.80665))]
    if name == "transpring":
        zero = (0.0, 0.0, 0.0)
        forces.append(Spring("ground", "pendulum", zero, zero, 10.0, 0.5, length=0.0))
    if name == "rotspring":
        forces.append(TorsionSpring("joint", 200.0, 10.0))
    system = System(body, () if case.joint is None else [case.joint], forces)
    return Problem(
        "adams_case",
        f"One body, case {name!r} of ADAMS",
        system,
        system.reference_state(),
        5.0,
        "Project Chrono, unit tests of joints (ADAMS)",
    )
