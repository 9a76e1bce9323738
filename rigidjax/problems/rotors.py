"""A pendulum on a driven turntable, and a satellite with wheels."""

import equinox as eqx
import numpy as np

from ..annotations import Scalar
from ..bodies import Body
from ..checks import as_leaf
from ..forces import Gravity
from ..joints import Revolute, Spherical
from ..mechanics import System
from ..state import State
from .linkages import in_body, link
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


CARRIER = ((120.0, 100.0, 80.0), 200.0)  # inertia, kg m^2, and mass, kg
WHEEL = (0.1, 0.2, 5.0)  # inertia about its axis and across it, kg m^2, and mass, kg
_WHEEL_POSITIONS = ((0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.5))


def dual_spin_satellite(wheels: int = 3, spin: float = 300.0) -> Problem:
    r"""Build a free body with wheels on its axes that spin without friction; 20 s.

    Without external forces, energy, both momenta and the angular momentum of every wheel about its
    axle are conserved.

    **Arguments:** `wheels`, 1 to 3, the first one along the third body axis; `spin` of the first
    wheel relative to the body, rad/s; the second and third wheel have a half and a third of it.
    """
    wheels = int(wheels)
    if not 1 <= wheels <= 3:
        raise ValueError(f"`dual_spin_satellite(wheels=...)` must be 1, 2 or 3; got {wheels}.")
    inertia, mass = CARRIER
    bodies, joints = [Body("carrier", mass, inertia)], []
    omega = np.array([0.1, -0.2, 0.3])
    positions, rates = [np.zeros(3)], [omega]
    axial, across, wheel_mass = WHEEL
    for k in range(wheels):
        axis = np.eye(3)[2 - k]
        position = np.array(_WHEEL_POSITIONS[2 - k])
        name = f"wheel {k + 1}"
        bodies.append(Body(name, wheel_mass, across + (axial - across) * axis, position))
        joints.append(Revolute("carrier", name, position, axis))
        positions.append(position)
        rates.append(omega + spin / (k + 1) * axis)
    masses = np.array([mass] + [wheel_mass] * wheels)
    x = np.stack(positions)
    center = masses @ x / masses.sum()
    system = System(bodies, joints)
    reference = system.reference_state()
    state0 = State(
        reference.position, reference.orientation, np.cross(omega, x - center), np.stack(rates)
    )
    return Problem(
        "dual_spin_satellite",
        f"Satellite with {wheels} wheel{'s' if wheels > 1 else ''}",
        system,
        state0,
        20.0,
        "made for this package",
    )
