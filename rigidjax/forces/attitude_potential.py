"""A potential energy of the rotation of one body."""

import equinox as eqx

from ..annotations import Scalar
from ..bodies.potentials import AbstractPotential
from ..rotations.matrix import relative
from .base import AbstractForce, Bodies, Kinematics, Loads


class AttitudePotential(AbstractForce):
    r"""A potential energy $V(R)$ of one body, like that of a `FixedPointBody`.

    **Arguments:** `body`, name of the body or of a `Frame` on it; `potential`, an
    `AbstractPotential`.
    """

    body: str = eqx.field(static=True)
    potential: AbstractPotential

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        R = kinematics.rotations[0]
        dyad = -relative(R, self.potential.gradient(R))
        return Loads(moments=self.potential.moment(R)[None], dyads=dyad[None])

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        return self.potential(kinematics.rotations[0])
