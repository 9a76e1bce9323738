"""A potential energy given by a function of the poses."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..bodies.body import Body
from ..bodies.potentials import AbstractPotential, moment_from_gradient
from ..rotations.matrix import relative
from ..signals.laws import as_law, check_shapes, law_result
from ..signals.switches import evaluate_law
from ..small_arrays import vmap_rows
from .base import AbstractForce, Bodies, Kinematics, Loads


class Potential(AbstractForce):
    r"""A potential energy of the poses of all bodies, differentiated automatically.

    **Arguments:** `function(positions, rotations) -> V`, positions (L, 3) in m and space
    components, rotations (L, 3, 3) from body to space, V a scalar in J. An Equinox module
    keeps its parameters as leaves.
    **Errors:** `TypeError` if it is not callable; `ValueError` if it does not return a scalar.
    """

    function: Any

    def __init__(self, function: Callable[..., Scalar]):
        if not callable(function):
            raise TypeError(
                "`Potential(function=...)` must be a function of (positions, rotations); "
                f"got {function!r}."
            )
        self.function = as_law(function, "Potential(function=...)")

    def body_names(self) -> tuple[str, ...]:
        return ()

    def check_bodies(self, bodies: Sequence[Body]) -> None:
        check_shapes(self._energy, (len(bodies), 3), (len(bodies), 3, 3))

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        R = kinematics.rotations
        gradient = jax.grad(self._energy, argnums=(0, 1))
        by_positions, by_rotations = evaluate_law(gradient, kinematics.positions, R)
        moments = vmap_rows(moment_from_gradient, R, by_rotations)
        return Loads(-by_positions, moments=moments, dyads=-vmap_rows(relative, R, by_rotations))

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        return self._energy(kinematics.positions, kinematics.rotations)

    def _energy(self, positions: Float[Array, "L 3"], rotations: Float[Array, "L 3 3"]) -> Scalar:
        energy = self.function(positions, rotations)
        return law_result(energy, (), "`Potential(function)` must return a scalar, the energy in J")


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
