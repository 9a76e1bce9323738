"""Uniform gravity on every body."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..checks import ArrayInput
from .base import AbstractForce, Kinematics, Wrench, no_virials, vector_leaf


class Gravity(AbstractForce):
    r"""Uniform gravity, $f = m\,b$ at every centre of mass.

    **Arguments:** `vector`, $b$, (3,), space components, m/s^2; (0, 0, -9.81) points down the
    third axis.
    """

    vector: Float[Array, "3"]

    def __init__(self, vector: ArrayInput):
        self.vector = vector_leaf(vector, "Gravity(vector=...)")

    @property
    def is_linear(self) -> bool:
        return True

    def body_names(self) -> tuple[str, ...]:
        return ()

    def wrenches(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Wrench, ...]:
        return tuple((body.mass * self.vector, None) for body in bodies)

    def virials(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Float[Array, "3 3"] | None, ...]:
        return no_virials(len(bodies))

    def potential_energy(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> Float[Array, ""]:
        energy = jnp.zeros((), self.vector.dtype)
        for body, x in zip(bodies, kinematics.positions, strict=True):
            energy = energy - body.mass * jnp.sum(self.vector * x)
        return energy
