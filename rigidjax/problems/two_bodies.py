"""Two bodies connected by a ball joint, the first one to the ground by a spring."""

import math

import numpy as np

from ..bodies import Body
from ..forces import Spring
from ..joints import Spherical
from ..mechanics import System
from ..state import State
from .exact import two_bodies as exact
from .links import matrix
from .problem import Problem

_SOURCE = "Lang (null-space coordinates), section 7, Example C"


def two_bodies() -> Problem:
    r"""Build Lang's Example C: 10 kg and 20 kg, a ball joint, a spring of 1e4 N/m; 0.5 s.

    There is no gravity. The initial angular velocities are $(3, 2, 1)$ rad/s and $(24, 15, 12)$
    rad/s; the centre of mass of body 1 is at rest. The paper ends at 4 s, but errors grow by a
    factor of 1e4 in 0.5 s and of 1e23 in 4 s, so that a run in double precision is meaningless
    beyond about 1.2 s. Runs of `two_bodies_slow` can be compared at 4 s.

    **Source:** Lang, section 7, Example C and Figure 16.
    """
    return _two_bodies("two_bodies", "Two bodies on a ball joint and a spring", 1, 0.5, "")


def two_bodies_slow() -> Problem:
    """Build the bodies of `two_bodies` with a tenth of the initial angular velocities; 4 s.

    Errors grow by a factor of 1e4 in this time.
    """
    return _two_bodies(
        "two_bodies_slow",
        "Two bodies on a ball joint and a spring, slow",
        10,
        4.0,
        ", with a tenth of the rates",
    )


def _two_bodies(name: str, title: str, slower: int, t1: float, where: str) -> Problem:
    half = math.pi / 6
    turn = np.array([math.cos(half), math.sin(half), 0.0, 0.0])
    R = matrix(turn)
    first, second = (R @ np.array(arm) for arm in exact.ARMS)
    rates = np.array(exact.RATES) / slower
    swings = [R @ np.cross(w, arm) for w, arm in zip(rates, exact.ARMS, strict=True)]
    zero = np.zeros(3)
    state0 = State(
        np.stack([zero, first - second]),
        np.stack([turn, turn]),
        np.stack([zero, swings[0] - swings[1]]),
        rates,
    )
    bodies = [
        Body(f"body {i + 1}", exact.MASSES[i], exact.INERTIA, state0.position[i], turn)
        for i in range(2)
    ]
    joint = Spherical("body 1", "body 2", first)
    spring = Spring("ground", "body 1", zero, zero, exact.STIFFNESS, length=0.0)
    system = System(bodies, [joint], spring)
    return Problem(name, title, system, state0, t1, _SOURCE + where, end_state=exact.ENDS[name])
