"""Uniform gravity on every body."""

from typing import ClassVar

import jax.numpy as jnp

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, vector_leaf
from .base import AbstractForce, Bodies, Kinematics, Loads


class Gravity(AbstractForce):
    r"""Uniform gravity, $f = m\,b$ at every centre of mass.

    **Arguments:** `vector`, $b$, (3,), space components, m/s^2, such as (0, 0, -9.81).
    """

    vector: Vector3

    depends_on_translation: ClassVar[bool] = False

    def __init__(self, vector: ArrayInput):
        self.vector = vector_leaf(vector, "Gravity(vector=...)")

    @property
    def is_linear(self) -> bool:
        return True

    def body_names(self) -> tuple[str, ...]:
        return ()

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        return Loads(bodies.masses[:, None] * self.vector[None])

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        return -jnp.sum(bodies.masses[:, None] * self.vector[None] * kinematics.positions)
