"""Test cases of one body on one joint or spring, with reference results of ADAMS."""

import math
from typing import NamedTuple

from ..bodies import Body
from ..checks import did_you_mean
from ..forces import AbstractForce, Gravity, Spring, TorsionSpring
from ..joints import AbstractJoint, Cylindrical, Distance, Prismatic, Revolute, Spherical, Universal
from ..mechanics import System
from .problem import Problem

_HALF = math.sqrt(0.5)
_SLENDER = (0.04, 0.1, 0.1)
GRAVITY = (0.0, 0.0, -9.80665)


CASES = (
    "revolute",
    "spherical",
    "prismatic",
    "cylindrical",
    "universal",
    "distance",
    "transpring",
    "rotspring",
)


class CaseParts(NamedTuple):
    """Body, joint and springs of a case, without gravity."""

    body: Body
    joint: AbstractJoint | None
    springs: list[AbstractForce]


def adams_case(name: str = "revolute") -> Problem:
    """Build a body of 1 kg and 4 m, released at rest under gravity; 5 s.

    The joint is 2 m from the centre of mass and called `"joint"`. Tables of the motion and the
    reactions by ADAMS are in Chrono's tests.

    **Arguments:** `name`, one of `"revolute"` (Chrono's case 01), `"spherical"` (02), `"prismatic"`
    (01), `"cylindrical"` (01), `"universal"` (01), `"distance"` (01), `"transpring"` (01, a spring
    of 10 N/m and 0.5 N s/m to the origin, where the body starts, instead of a joint) and
    `"rotspring"` (01, the hinge with a torsion spring of 200 N m/rad and 10 N m s/rad).
    **Source:** Project Chrono, unit tests of joints, with ADAMS decks and results.
    """
    if name not in CASES:
        hint = did_you_mean(name, CASES, f" There are: {', '.join(CASES)}.")
        raise ValueError(f"`adams_case(name={name!r})` does not exist.{hint}")
    body, joint, springs = make_parts(name)
    system = System(body, [] if joint is None else [joint], [Gravity(GRAVITY), *springs])
    return Problem(
        "adams_case",
        f"One body, case {name!r} of ADAMS",
        system,
        system.reference_state(),
        5.0,
        "Project Chrono, unit tests of joints (ADAMS)",
    )


def make_parts(case: str, body: str = "pendulum", joint: str = "joint") -> CaseParts:
    """Return the parts of a case; `body` and `joint` become their names."""
    ends, origin = ("ground", body), (0.0, 0.0, 0.0)
    third = (0.0, 0.0, 1.0)
    level, quarter = (1.0, 0.0, 0.0, 0.0), (_HALF, -_HALF, 0.0, 0.0)
    inertia, position, orientation = _SLENDER, (2.0, 0.0, 0.0), level
    made: AbstractJoint | None = None
    springs: list[AbstractForce] = []
    if case in ("revolute", "rotspring"):
        # The hinge axis is the third axis of a frame that ADAMS's input file turns by -90 degrees.
        made, orientation = Revolute(*ends, origin, (0.0, 1.0, 0.0), name=joint), quarter
        if case == "rotspring":
            springs = [TorsionSpring(joint, 200.0, 10.0)]
    elif case == "spherical":
        made, position = Spherical(*ends, (1.0, 2.0, 3.0), name=joint), (3.0, 2.0, 3.0)
        orientation = (math.cos(math.pi / 8), -math.sin(math.pi / 8), 0.0, 0.0)
    elif case == "prismatic":
        made = Prismatic(*ends, third, name=joint)
    elif case == "cylindrical":
        made = Cylindrical(*ends, origin, third, name=joint)
    elif case == "universal":
        made = Universal(*ends, origin, (1.0, 0.0, 0.0), third, name=joint)
        inertia, position, orientation = (0.1, 0.1, 0.04), (0.0, 2.0, 0.0), (_HALF, _HALF, 0.0, 0.0)
    elif case == "distance":
        made, position = Distance(*ends, origin, (0.0, 2.0, 0.0), name=joint), (0.0, 2.0, 0.0)
    else:
        springs = [Spring(*ends, origin, origin, 10.0, 0.5, length=0.0)]
        position = origin
    return CaseParts(Body(body, 1.0, inertia, position, orientation), made, springs)
