"""Two bodies connected by a ball joint, the first one to the ground by a spring."""

import math

import numpy as np

from ..bodies import Body
from ..forces import Spring
from ..joints import Spherical
from ..mechanics import System
from ..state import State
from .linkages import matrix
from .problem import Problem

INERTIA = (41.6, 11.6, 50.0)
MASSES = (10.0, 20.0)
ARMS = ((1.0, 2.0, -3.0), (5.0, -6.0, -7.0))
STIFFNESS = 1.0e4
RATES = ((3.0, 2.0, 1.0), (24.0, 15.0, 12.0))

# Positions, orientations, velocities and body rates at the end, from `tools/exact`.
_ENDS = {
    "two_bodies": (
        (
            (-0.4731820945776324, -2.60794437371935, -1.276794205885481),
            (-3.6987919294051803, 2.027353997849082, 10.948996788515016),
        ),
        (
            (0.5292158748990053, 0.8460236377953891, 0.0644516342911256, -0.004533087638639653),
            (0.6409312693606258, 0.45029686100745614, -0.27150835906209797, -0.5592164660326228),
        ),
        (
            (131.82779193988995, -62.775580151326785, -102.16838679601743),
            (-8.282088505988593, -248.6667533190851, 13.14905055422472),
        ),
        (
            (-66.6938176278234, 79.41387962478746, -4.2877564000615),
            (-33.17951233171259, 59.58248749899549, -0.9504259292139777),
        ),
    ),
    "two_bodies_slow": (
        (
            (0.08129033842920617, 0.24578310540300385, -0.13268089564533686),
            (1.106573562236287, -12.287422287566299, -2.1961006291769656),
        ),
        (
            (-0.8293728292287297, 0.5555429951350768, -0.052051201008897395, 0.028343661849024124),
            (-0.31006229313523664, -0.12220000894387437, 0.2889467235824209, -0.8974621569296499),
        ),
        (
            (0.9868015540123499, 10.820511578013573, -17.12521399575031),
            (8.842227006708498, 15.158966287477876, -19.0761229608262),
        ),
        (
            (2.741066302076236, 2.219249903762816, -4.595069732345912),
            (-0.43601477918635423, 0.5866404751674852, 1.2932680414994095),
        ),
    ),
}
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
    first, second = (R @ np.array(arm) for arm in ARMS)
    rates = np.array(RATES) / slower
    swings = [R @ np.cross(w, arm) for w, arm in zip(rates, ARMS, strict=True)]
    zero = np.zeros(3)
    state0 = State(
        np.stack([zero, first - second]),
        np.stack([turn, turn]),
        np.stack([zero, swings[0] - swings[1]]),
        rates,
    )
    bodies = [Body(f"body {i + 1}", MASSES[i], INERTIA, state0.position[i], turn) for i in range(2)]
    joint = Spherical("body 1", "body 2", first)
    spring = Spring("ground", "body 1", zero, zero, STIFFNESS, length=0.0)
    system = System(bodies, [joint], spring)
    return Problem(name, title, system, state0, t1, _SOURCE + where, end_state=State(*_ENDS[name]))
