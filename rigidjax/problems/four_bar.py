"""A four-bar linkage."""

import math

import numpy as np

from ..forces import Gravity
from ..joints import Revolute
from ..mechanics import System
from ..state import State
from .links import in_body, link
from .problem import Problem

CRANK, COUPLER, ROCKER, FRAME = 0.3, 0.9, 0.7, 1.0
_AXIS = (0.0, 0.0, 1.0)


def four_bar(rate: float = 10.0, thickness: float = 0.0) -> Problem:
    """Build a crank of 0.3 m, a coupler of 0.9 m and a rocker of 0.7 m, under gravity; 2 s.

    The pivots are 1 m apart; the links are uniform thin rods of 1 kg/m. The crank starts upright
    and rotates fully.

    **Arguments:** `rate`, initial rate of the crank, rad/s; `thickness` of the rods (square
    section), m; `Absolute` needs a positive one.
    """
    start, end = np.zeros(2), np.array([FRAME, 0.0])
    pin = np.array([0.0, CRANK])
    gap = end - pin
    distance = math.sqrt(gap @ gap)
    # The upper solution of the triangle of coupler, rocker and the line between their far ends.
    along = (COUPLER**2 - ROCKER**2 + distance**2) / (2 * distance)
    across = math.sqrt(COUPLER**2 - along**2)
    unit = gap / distance
    knee = pin + along * unit + across * np.array([-unit[1], unit[0]])
    points = [np.append(point, 0.0) for point in (start, pin, knee, end)]
    # Rates of coupler and rocker about the third axis, from pin' + w2 x coupler = w3 x rocker.
    turned = lambda v: np.array([-v[1], v[0]])  # noqa: E731
    columns = np.stack([-turned(knee - pin), turned(knee - end)], axis=1)
    others = np.linalg.solve(columns, rate * turned(pin))
    rates = np.array([rate, others[0], others[1]])
    spins = rates[:, None] * np.array(_AXIS)
    bodies = [
        link("crank", points[0], points[1], CRANK, thickness),
        link("coupler", points[1], points[2], COUPLER, thickness),
        link("rocker", points[3], points[2], ROCKER, thickness),
    ]
    arms = [points[1] / 2, (points[2] - points[1]) / 2, (points[2] - points[3]) / 2]
    bases = [np.zeros(3), np.cross(spins[0], points[1]), np.zeros(3)]
    joints = [
        Revolute("ground", "crank", points[0], _AXIS),
        Revolute("crank", "coupler", points[1], _AXIS),
        Revolute("coupler", "rocker", points[2], _AXIS),
        Revolute("ground", "rocker", points[3], _AXIS),
    ]
    system = System(bodies, joints, Gravity((0.0, -9.81, 0.0)))
    reference = system.reference_state()
    state0 = State(
        reference.position,
        reference.orientation,
        np.stack(
            [base + np.cross(w, arm) for base, w, arm in zip(bases, spins, arms, strict=True)]
        ),
        np.stack([in_body(body.orientation, w) for body, w in zip(bodies, spins, strict=True)]),
    )
    return Problem("four_bar", "Four-bar linkage", system, state0, 2.0, "made for this package")
