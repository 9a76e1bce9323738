"""A pendulum on a driven turntable."""

import equinox as eqx
import numpy as np

from ..annotations import Scalar
from ..bodies import Body
from ..checks import as_leaf
from ..forces import Gravity
from ..joints import Revolute, Spherical
from ..mechanics import System
from ..state import State
from .links import in_body, link
from .problem import Problem

RADIUS, LENGTH = 1.0, 0.8


class SteadyTurn(eqx.Module):
    """Angle of a turntable that rotates at a constant `rate`, rad."""

    rate: Scalar

    def __init__(self, rate: float):
        self.rate = as_leaf(np.asarray(rate, float))

    def __call__(self, t: Scalar) -> Scalar:
        return self.rate * t


def turntable(rate: float = 2.0) -> Problem:
    r"""Build a turntable driven at constant rate, with a rod on a ball joint at its rim; 5 s.

    The rod of 1 kg and 0.8 m starts below the rim, rotating with the table. Because the table is
    driven, the energy $E$ is not conserved, but $E - \omega L_3$ of the rod is, where $L_3$ is its
    angular momentum about the axis.

    **Arguments:** `rate` of the table, rad/s.
    """
    disc = Body.cylinder("table", RADIUS, 0.05, mass=20.0)
    rim = np.array([RADIUS, 0.0, 0.0])
    rod = link("rod", rim, rim - (0.0, 0.0, LENGTH), thickness=0.04)
    joints = [
        Revolute("ground", "table", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), SteadyTurn(rate)),
        Spherical("table", "rod", rim),
    ]
    system = System([disc, rod], joints, Gravity((0.0, 0.0, -9.81)))
    reference = system.reference_state()
    spin = np.array([0.0, 0.0, rate])
    state0 = State(
        reference.position,
        reference.orientation,
        np.cross(spin, np.asarray(reference.position, float)),
        np.stack([spin, in_body(rod.orientation, spin)]),
    )
    return Problem(
        "turntable", "Pendulum on a driven turntable", system, state0, 5.0, "made for this package"
    )
