"""Moments that act on one body, as functions of time, orientation and angular velocity."""

import abc
from typing import Literal

import equinox as eqx
import jax.numpy as jnp

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import ArrayInput, finite_leaf


class AbstractMoment(eqx.Module):
    r"""A moment $\mu(t, R, \Omega)$ in body components, N m."""

    @abc.abstractmethod
    def __call__(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        r"""Return the moment in body components, shape (3,), N m.

        **Arguments:** `t`, s; `R`, body to space, (3, 3); `omega`, body components, rad/s.
        """


class ConstantMoment(AbstractMoment):
    """A moment whose components are constant in body or space axes.

    **Arguments:** `value`, (3,) N m; `frame`, `"body"` or `"space"`, the axes of the components.
    """

    value: Vector3
    frame: Literal["body", "space"] = eqx.field(static=True)

    def __init__(self, value: ArrayInput, frame: Literal["body", "space"] = "body"):
        if frame not in ("body", "space"):
            raise ValueError(
                f'`ConstantMoment(frame=...)` must be "body" or "space"; got {frame!r}.'
            )
        name = "ConstantMoment(value=...)"
        self.value = finite_leaf(value, name, (3,))
        self.frame = frame

    def __call__(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        if self.frame == "body":
            return self.value
        v = self.value
        return jnp.stack([R[0, i] * v[0] + R[1, i] * v[1] + R[2, i] * v[2] for i in range(3)])


class LinearDrag(AbstractMoment):
    r"""Viscous drag $\mu = -c\,\Omega$, component by component.

    **Arguments:** `coefficient`, $c$, a scalar or (3,) along the body axes, N m s.
    """

    coefficient: Scalar | Vector3

    def __init__(self, coefficient: ArrayInput):
        name = "LinearDrag(coefficient=...)"
        self.coefficient = finite_leaf(coefficient, name, (), (3,))

    def __call__(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        return -(self.coefficient * omega)


class QuadraticDrag(AbstractMoment):
    r"""Drag that grows with the square of the rate, $\mu = -c\,|\Omega|\,\Omega$.

    First and second derivatives at $\Omega = 0$ are zero (the second is not continuous there).

    **Arguments:** `coefficient`, $c$, a scalar or (3,) along the body axes, N m s^2.
    """

    coefficient: Scalar | Vector3

    def __init__(self, coefficient: ArrayInput):
        name = "QuadraticDrag(coefficient=...)"
        self.coefficient = finite_leaf(coefficient, name, (), (3,))

    def __call__(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        square = omega[0] * omega[0] + omega[1] * omega[1] + omega[2] * omega[2]
        moving = square > 0
        speed = jnp.where(moving, jnp.sqrt(jnp.where(moving, square, 1.0)), 0.0)
        return -(self.coefficient * speed * omega)
