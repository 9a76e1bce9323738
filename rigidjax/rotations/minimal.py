"""The base class of parametrizations by three independent coordinates."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import so3
from .base import AbstractRotation, Rates, check_rates, reduced_mass, reduced_momentum
from .conversion import half_rotation_matrix, spurrier_klumpp
from .euler_map import euler_map


class AbstractMinimalRotation(AbstractRotation):
    r"""A parametrization by three independent coordinates: no constraint, but a singularity.

    A subclass must implement `to_quaternion`, `from_quaternion` and `singularity`; all other
    methods follow by differentiation. It may override methods by closed forms, which are faster,
    above all `rate`.
    """

    num_coordinates: ClassVar[int] = 3
    num_constraints: ClassVar[int] = 0

    def to_matrix(self, a: Vector3) -> Matrix3:
        r"""Return the rotation matrix of the quaternion."""
        return euler_map(self.to_quaternion(a))

    def tangent(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $H$ from the derivative of the quaternion, $(0, \Omega) = 2\,\bar p\,\dot p$."""
        check_rates(rates)
        p, inverse = self.to_quaternion(a), so3.conjugate(self.to_quaternion(a))

        def angular_velocity(p_dot):
            product = (inverse, p_dot) if rates == "body" else (p_dot, inverse)
            return 2.0 * so3.multiply(*product)[1:]

        directions = jnp.eye(3, dtype=p.dtype)
        rates_of_p = [jax.jvp(self.to_quaternion, (a,), (column,))[1] for column in directions]
        return jnp.stack([angular_velocity(p_dot) for p_dot in rates_of_p], axis=1)

    def null_space(self, a: Vector3, rates: Rates = "body") -> Matrix3:
        r"""Return $T = H^{-1}$ by cofactors: cross products of the columns of $H$."""
        u, v, w = jnp.unstack(self.tangent(a, rates), axis=1)
        rows = jnp.stack([so3.cross(v, w), so3.cross(w, u), so3.cross(u, v)])
        return rows / so3.dot(u, rows[0])

    def rate(self, a: Vector3, omega: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\dot a = T\,\Omega$."""
        return self.null_space(a, rates) @ omega

    def angular_velocity(self, a: Vector3, a_dot: Vector3, rates: Rates = "body") -> Vector3:
        r"""Return $\Omega = H\,\dot a$, rad/s."""
        return self.tangent(a, rates) @ a_dot

    def singularity_function(self, a: Vector3) -> Scalar:
        r"""Return the distance to a singularity that no step can cross."""
        return self.singularity(a)

    def center(self) -> Vector3:
        r"""Return zero, the identity."""
        return jnp.zeros(3)

    def half_rotation(self, a: Vector3) -> Matrix3:
        r"""Return $F$ with $R(a) = F F$ by way of Euler parameters.

        **Source:** Geradin-Rixen (275).
        """
        return half_rotation_matrix(self.to_quaternion(a))

    def from_matrix(self, R: Matrix3) -> Vector3:
        r"""Return the coordinates of a rotation matrix by way of its quaternion."""
        return self.from_quaternion(so3.normalize(spurrier_klumpp(R)))

    def constraint(self, a: Vector3, rates: Rates = "body") -> Float[Array, "0"]:
        r"""Return no constraint, shape (0,)."""
        check_rates(rates)
        return jnp.zeros((0,), a.dtype)

    def constraint_jacobian(self, a: Vector3, rates: Rates = "body") -> Float[Array, "0 3"]:
        r"""Return the gradient of no constraint, shape (0, 3)."""
        check_rates(rates)
        return jnp.zeros((0, 3), a.dtype)

    def mass_matrix(self, a: Vector3, inertia: Vector3 | Matrix3) -> Matrix3:
        r"""Return $M = H^T I H$, kg m^2; singular or unbounded at the singularity."""
        return reduced_mass(self.tangent(a), inertia)

    def momentum(self, a: Vector3, a_dot: Vector3, inertia: Vector3 | Matrix3) -> Vector3:
        r"""Return $H^T I H \dot a$."""
        return reduced_momentum(self.tangent(a), a_dot, inertia)

    def project(self, a: Vector3) -> Vector3:
        r"""Return the coordinates unchanged."""
        return a

    def project_rate(
        self, a: Vector3, a_dot: Vector3, inertia: Vector3 | Matrix3 | None = None
    ) -> Vector3:
        r"""Return the rates unchanged."""
        return a_dot
