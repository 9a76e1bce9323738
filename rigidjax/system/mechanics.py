"""What a formulation needs to know of the bodies that it moves."""

import abc
from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float

from ..forces.base import Kinematics, Wrench

Inertia = Float[Array, "3"] | Float[Array, "3 3"]


class AbstractMechanics(eqx.Module):
    """Masses, inertias and applied wrenches, in poses and twists only.

    Knows no parametrization. Per-body values come as tuples with one entry for each body;
    where bodies cannot translate (`FixedPointBody`) the tuples of positions, velocities and
    masses are empty.
    """

    num_bodies: eqx.AbstractVar[int]
    translates: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def masses(self) -> Sequence[Float[Array, ""]]:
        """Masses, kg."""

    @abc.abstractmethod
    def inertias(self) -> Sequence[Inertia]:
        """Inertias about the reference point of each body, body axes, kg m^2."""

    @abc.abstractmethod
    def wrenches(self, t: Float[Array, ""], kinematics: Kinematics) -> Sequence[Wrench]:
        """Applied force (space components, N) and moment (body components, N m) of each body."""

    @abc.abstractmethod
    def virials(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> Sequence[Float[Array, "3 3"] | None]:
        r"""Symmetric part of $\sum f \otimes u$ of each body (see `AbstractForce.virials`), N m."""

    @abc.abstractmethod
    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        """Potential energy of the applied forces, J."""


def add(first: Float[Array, "3"] | None, second: Float[Array, "3"] | None):
    """Sum of two vectors either of which may be absent (`None`, exactly zero)."""
    if first is None:
        return second
    return first if second is None else first + second
