"""Potential energies of rotation and the moments that they exert."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import ArrayInput, finite_leaf
from ..signals.laws import as_law, check_shapes, law_result
from ..signals.switches import evaluate_law


class AbstractPotential(eqx.Module):
    r"""A potential energy $V(R)$ of a body's orientation.

    $R$ maps body to space components. The moment in body components is
    $\mu = -T(d)^T \nabla_d V$ with the null-space matrix $T$ of Lang (24).
    """

    @property
    def is_linear(self) -> bool:
        """Whether $V$ is a linear function of the entries of $R$; false by default.

        If it is, energy-conserving steps need no discrete gradient.
        """
        return False

    @abc.abstractmethod
    def __call__(self, R: Matrix3) -> Scalar:
        r"""Return the potential energy $V(R)$, J."""

    @abc.abstractmethod
    def gradient(self, R: Matrix3) -> Matrix3:
        r"""Return $\partial V/\partial R_{ij}$ for nine independent entries, (3, 3), J."""

    @abc.abstractmethod
    def moment(self, R: Matrix3) -> Vector3:
        r"""Return the moment $\mu$ with $\mu\cdot\Omega = -\dot V$, body, (3,) N m."""


class AutodiffPotential(AbstractPotential):
    """Any function of the rotation matrix as a potential, differentiated automatically.

    **Arguments:** `function(R) -> V`, R of shape (3, 3), V a scalar in J. The arrays of an Equinox
    module stay parameters; a plain function becomes static.
    """

    function: Any

    def __init__(self, function: Callable[[Matrix3], Scalar]):
        self.function = as_law(function, "AutodiffPotential(function=...)")
        check_shapes(self.__call__, (3, 3))

    def __call__(self, R: Matrix3) -> Scalar:
        subject = "`potential(R)` must return a scalar, the energy in J"
        return law_result(self.function(R), (), subject)

    def gradient(self, R: Matrix3) -> Matrix3:
        return evaluate_law(jax.grad(self.__call__), R)

    def moment(self, R: Matrix3) -> Vector3:
        return moment_from_gradient(R, self.gradient(R))


class GravityPotential(AbstractPotential):
    r"""Uniform gravity on a body with a fixed point, $V = -b \cdot R\,(m c)$.

    **Arguments:** `first_moment`, $m c$, mass times the centre of mass as seen from the fixed
    point, (3,) kg m, body components; `gravity`, $b$, (3,) m/s^2, space components (points down).
    """

    first_moment: Vector3
    gravity: Vector3

    def __init__(self, first_moment: ArrayInput, gravity: ArrayInput):
        name = "GravityPotential(first_moment=...)"
        self.first_moment = finite_leaf(first_moment, name, (3,))
        name = "GravityPotential(gravity=...)"
        self.gravity = finite_leaf(gravity, name, (3,))

    @property
    def is_linear(self) -> bool:
        return True

    def __call__(self, R: Matrix3) -> Scalar:
        b1, b2, b3 = self._gravity_in_body(R)
        c = self.first_moment
        return -(b1 * c[0] + b2 * c[1] + b3 * c[2])

    def gradient(self, R: Matrix3) -> Matrix3:
        return -self.gravity[:, None] * self.first_moment[None, :]

    def moment(self, R: Matrix3) -> Vector3:
        b1, b2, b3 = self._gravity_in_body(R)
        c1, c2, c3 = self.first_moment[0], self.first_moment[1], self.first_moment[2]
        return jnp.stack([c2 * b3 - c3 * b2, c3 * b1 - c1 * b3, c1 * b2 - c2 * b1])

    def _gravity_in_body(self, R: Matrix3) -> tuple[Array, ...]:
        b = self.gravity
        return tuple(R[0, i] * b[0] + R[1, i] * b[1] + R[2, i] * b[2] for i in range(3))


class AxialGravityPotential(AbstractPotential):
    r"""Gravity along $-e_3$ on a top with its centre of mass on $d_3$, $V = m g L\,R_{33}$.

    This is the potential of the heavy top of Lang's Example A and Betsch-Siebert 5.2. It needs two
    products where `GravityPotential` needs 24 operations, because the zeros are compile-time
    constants.

    **Arguments:** `weight_moment`, $m g L$, N m.
    """

    weight_moment: Scalar

    def __init__(self, weight_moment: ArrayInput):
        name = "AxialGravityPotential(weight_moment=...)"
        self.weight_moment = finite_leaf(weight_moment, name, ())

    @property
    def is_linear(self) -> bool:
        return True

    def __call__(self, R: Matrix3) -> Scalar:
        return self.weight_moment * R[2, 2]

    def gradient(self, R: Matrix3) -> Matrix3:
        return jnp.zeros_like(R).at[2, 2].set(self.weight_moment)

    def moment(self, R: Matrix3) -> Vector3:
        return jnp.stack(
            [
                self.weight_moment * R[2, 1],
                -(self.weight_moment * R[2, 0]),
                jnp.zeros((), jnp.result_type(self.weight_moment, R)),
            ]
        )


def moment_from_gradient(R: Matrix3, gradient: Matrix3) -> Vector3:
    r"""Return the moment of a potential, $\mu = -T(d)^T \nabla_d V$, from its gradient.

    From $\dot d_1 = \Omega_3 d_2 - \Omega_2 d_3$ and its cyclic permutations,
    $\mu_1 = \nabla_{d_3} V \cdot d_2 - \nabla_{d_2} V \cdot d_3$, and so on.

    **Arguments:** `R`, (3, 3), columns $d_i$; `gradient`, (3, 3), $\partial V/\partial R_{ij}$, J.
    **Returns:** shape (3,), N m, body components.
    **Source:** Lang (24), (25).
    """

    def dot(i: int, j: int) -> Scalar:
        return R[0, i] * gradient[0, j] + R[1, i] * gradient[1, j] + R[2, i] * gradient[2, j]

    return jnp.stack([dot(1, 2) - dot(2, 1), dot(2, 0) - dot(0, 2), dot(0, 1) - dot(1, 0)])
