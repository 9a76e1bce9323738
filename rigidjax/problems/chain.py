"""Chains of rods under gravity."""

from ..forces import Gravity
from ..joints import Revolute, Spherical
from ..mechanics import System
from .links import link
from .problem import Problem


def chain(n: int = 8, joint: str = "spherical") -> Problem:
    """Build a pendulum of `n` rods of 1 m and 1 kg, released at rest from the horizontal; 2 s.

    **Arguments:** `n`; `joint`, `"spherical"` (rods of 4 cm square section) or `"revolute"` (thin
    rods that move in the x-z plane).
    """
    n = int(n)
    if n < 1:
        raise ValueError(f"`chain(n=...)` must be 1 or more; got {n}.")
    if joint not in ("spherical", "revolute"):
        raise ValueError(f'`chain(joint=...)` must be "spherical" or "revolute"; got {joint!r}.')
    point = lambda i: (float(i), 0.0, 0.0)  # noqa: E731
    names = ["ground", *(f"rod {i + 1}" for i in range(n))]
    thickness = 0.04 if joint == "spherical" else 0.0
    bodies = [link(names[i + 1], point(i), point(i + 1), thickness=thickness) for i in range(n)]
    joints = [
        Spherical(names[i], names[i + 1], point(i))
        if joint == "spherical"
        else Revolute(names[i], names[i + 1], point(i), (0.0, 1.0, 0.0))
        for i in range(n)
    ]
    system = System(bodies, joints, Gravity((0.0, 0.0, -9.81)))
    return Problem(
        "chain",
        f"Chain of {n} rods, {joint} joints",
        system,
        system.reference_state(),
        2.0,
        "made for this package",
    )
