"""What the parametrizations by three independent coordinates have in common."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from . import so3
from .base import AbstractRotation, Rates, check_rates, reduced_mass
from .spurrier_klumpp import spurrier_klumpp


class AbstractMinimalRotation(AbstractRotation):
    r"""A parametrization by three independent coordinates: no constraint, but a singularity."""

    num_coordinates: ClassVar[int] = 3
    num_constraints: ClassVar[int] = 0

    def from_matrix(self, R: Float[Array, "3 3"]) -> Float[Array, "3"]:
        r"""Coordinates of a rotation matrix, by way of its quaternion (Spurrier and Klumpp)."""
        return self.from_quaternion(so3.normalize(spurrier_klumpp(R)))

    def constraint(self, a: Float[Array, "3"], rates: Rates = "body") -> Float[Array, "0"]:
        r"""No constraint: shape (0,)."""
        check_rates(rates)
        return jnp.zeros((0,), a.dtype)

    def constraint_jacobian(
        self, a: Float[Array, "3"], rates: Rates = "body"
    ) -> Float[Array, "0 3"]:
        r"""No constraint: shape (0, 3)."""
        check_rates(rates)
        return jnp.zeros((0, 3), a.dtype)

    def mass_matrix(
        self, a: Float[Array, "3"], inertia: Float[Array, "3"] | Float[Array, "3 3"]
    ) -> Float[Array, "3 3"]:
        r"""$M = H^T I H$, kg m^2; singular or unbounded at the singularity."""
        return reduced_mass(self.tangent(a), inertia)

    def project(self, a: Float[Array, "3"]) -> Float[Array, "3"]:
        r"""The coordinates themselves."""
        return a

    def project_rate(
        self,
        a: Float[Array, "3"],
        a_dot: Float[Array, "3"],
        inertia: Float[Array, "3"] | Float[Array, "3 3"] | None = None,
    ) -> Float[Array, "3"]:
        r"""The rates themselves."""
        return a_dot
