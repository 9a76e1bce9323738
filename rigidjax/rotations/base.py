"""The base class of parametrizations of SO(3)."""

import abc
from typing import TYPE_CHECKING, Literal, TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..annotations import Matrix, Matrix3, Scalar, Vector, Vector3

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

Rates: TypeAlias = Literal["body", "space"]


def check_rates(rates: str) -> None:
    """Raise `ValueError` unless `rates` is `"body"` or `"space"`."""
    if rates not in ("body", "space"):
        raise ValueError(f'`rates` must be "body" or "space"; got {rates!r}.')


def check_inertia(inertia: Array) -> None:
    """Raise `ValueError` unless `inertia` has shape (3,) or (3, 3)."""
    if inertia.shape not in ((3,), (3, 3)):
        raise ValueError(
            "`inertia` must have shape (3,), principal moments, or (3, 3), a symmetric tensor; "
            f"got shape {inertia.shape}."
        )


def reduced_mass(H: Float[Array, "3 n"], inertia: Vector3 | Matrix3) -> Matrix:
    r"""Return $H^T I H$ for principal moments or a full tensor of inertia, shape (n, n)."""
    check_inertia(inertia)
    return H.T @ (inertia[:, None] * H if inertia.ndim == 1 else inertia @ H)


def reduced_momentum(H: Float[Array, "3 n"], a_dot: Vector, inertia: Vector3 | Matrix3) -> Vector:
    r"""Return $H^T I H \dot a$, shape (n,), without computing the matrix."""
    check_inertia(inertia)
    omega = H @ a_dot
    return (inertia * omega if inertia.ndim == 1 else inertia @ omega) @ H


class AbstractRotation(eqx.Module):
    r"""A parametrization $a \mapsto R(a)$ of the rotation group SO(3).

    $R$ maps body components to space components. $\Omega$ is the angular velocity in body
    components and $\omega = R\,\Omega$ in space components, both in rad/s. The internal
    null-space matrix $T$ and the tangent operator $H$ are defined by $\dot a = T(a)\,\Omega$
    and $\Omega = H(a)\,\dot a$, so that $H T = 1$, and $G T = 0$ with the gradient $G$ of the
    internal constraints. `rates="space"` replaces $\Omega$ by $\omega$ in both definitions.

    Every method takes one set of coordinates of shape (n,); use `jax.vmap` for many.
    """

    num_coordinates: AbstractClassVar[int]
    num_constraints: AbstractClassVar[int]

    @abc.abstractmethod
    def to_matrix(self, a: Vector) -> Matrix3:
        r"""Return the rotation matrix $R(a)$, shape (3, 3)."""

    @abc.abstractmethod
    def from_matrix(self, R: Matrix3) -> Vector:
        r"""Return the coordinates $a$ with $R(a) = R$, shape (n,)."""

    @abc.abstractmethod
    def to_quaternion(self, a: Vector) -> Float[Array, "4"]:
        r"""Return the unit quaternion $p$, scalar first, of the same rotation, shape (4,)."""

    @abc.abstractmethod
    def from_quaternion(self, p: Float[Array, "4"]) -> Vector:
        r"""Return the coordinates of the rotation of the unit quaternion $p$, shape (n,)."""

    @abc.abstractmethod
    def rate(self, a: Vector, omega: Vector3, rates: Rates = "body") -> Vector:
        r"""Return the coordinate rates $\dot a = T(a)\,\Omega$, shape (n,), per s.

        Equal to `null_space(a, rates) @ omega`, but in scalar components, because every right-hand
        side evaluates it.
        """

    @abc.abstractmethod
    def null_space(self, a: Vector, rates: Rates = "body") -> Float[Array, "n 3"]:
        r"""Return the internal null-space matrix $T(a)$ with $\dot a = T\,\Omega$, (n, 3)."""

    @abc.abstractmethod
    def tangent(self, a: Vector, rates: Rates = "body") -> Float[Array, "3 n"]:
        r"""Return the tangent operator $H(a)$ with $\Omega = H\,\dot a$, shape (3, n)."""

    @abc.abstractmethod
    def angular_velocity(self, a: Vector, a_dot: Vector, rates: Rates = "body") -> Vector3:
        r"""Return the angular velocity $\Omega = H(a)\,\dot a$, or $\omega$, (3,) rad/s.

        Equal to `tangent(a, rates) @ a_dot`, but in scalar components.
        """

    @abc.abstractmethod
    def constraint(self, a: Vector, rates: Rates = "body") -> Float[Array, " m"]:
        r"""Return the internal constraints $g(a)$, zero on the manifold, shape (m,).

        `rates` affects the directors only, which constrain the rows of $R$ for body rates and the
        columns for space rates, so that $G T = 0$ off the manifold as well.
        """

    @abc.abstractmethod
    def constraint_jacobian(self, a: Vector, rates: Rates = "body") -> Float[Array, "m n"]:
        r"""Return the gradient $G = \partial g/\partial a$ of `constraint`, shape (m, n)."""

    @abc.abstractmethod
    def mass_matrix(self, a: Vector, inertia: Vector3 | Matrix3) -> Matrix:
        r"""Return $M(a)$ of the kinetic energy $\frac12 \dot a^T M \dot a$, (n, n) kg m^2."""

    def momentum(self, a: Vector, a_dot: Vector, inertia: Vector3 | Matrix3) -> Vector:
        r"""Return $M(a)\,\dot a$, shape (n,), kg m^2/s.

        Override it if the product is cheaper without the matrix.
        """
        return self.mass_matrix(a, inertia) @ a_dot

    @abc.abstractmethod
    def project(self, a: Vector) -> Vector:
        r"""Project onto the internal constraints; explicit and idempotent."""

    @abc.abstractmethod
    def project_rate(
        self, a: Vector, a_dot: Vector, inertia: Vector3 | Matrix3 | None = None
    ) -> Vector:
        r"""Return the nearest rates that are tangent to the internal constraints at `a`.

        **Arguments:** `a`, which satisfies the constraints; `a_dot`; `inertia`, kg m^2, whose mass
        matrix is the metric, or `None` for the unit matrix.
        """

    @abc.abstractmethod
    def singularity(self, a: Vector) -> Scalar:
        r"""Return the distance to the nearest singularity as an angle, rad; `inf` without one."""

    @abc.abstractmethod
    def singularity_function(self, a: Vector) -> Scalar:
        r"""Return a smooth dimensionless function of $a$ that is zero only at singularities.

        For event detection it changes its sign where a step can cross the singularity. It is 1 if
        there is no singularity.
        """

    @abc.abstractmethod
    def center(self) -> Vector:
        r"""Return the coordinates of a rotation as far as possible from every singularity."""

    @abc.abstractmethod
    def half_rotation(self, a: Vector) -> Matrix3:
        r"""Return the rotation $F$ about the same axis with $R(a) = F F$, shape (3, 3)."""

    def acceleration(
        self, a: Vector, omega: Vector3, omega_dot: Vector3, rates: Rates = "body"
    ) -> Vector:
        r"""Return the second derivatives $\ddot a = T\,\dot\Omega + \dot T\,\Omega$, (n,)."""
        a_dot = self.rate(a, omega, rates)
        _, a_ddot = jax.jvp(
            lambda a, omega: self.rate(a, omega, rates), (a, omega), (a_dot, omega_dot)
        )
        return a_ddot

    def angular_acceleration(
        self, a: Vector, a_dot: Vector, a_ddot: Vector, rates: Rates = "body"
    ) -> Vector3:
        r"""Return $\dot\Omega = H\,\ddot a + \dot H\,\dot a$, or $\dot\omega$, (3,) rad/s^2."""
        _, omega_dot = jax.jvp(
            lambda a, a_dot: self.angular_velocity(a, a_dot, rates), (a, a_dot), (a_dot, a_ddot)
        )
        return omega_dot
