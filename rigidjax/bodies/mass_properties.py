"""Mass, centre of mass and inertia together, and the forms in which they are written."""

import abc
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import ArrayInput, as_leaf, check_all, finite_leaf, finite_rule, float_array
from .euler_equations import symmetric_components
from .inertia import (
    checked_inertia,
    euler_tensor,
    inertia_from_euler_tensor,
    inertia_tensor,
    principal_axes,
    rotate_inertia,
    shift_inertia,
)


class MassProperties(eqx.Module):
    r"""Mass, centre of mass, and inertia about the centre of mass, in one set of axes.

    Every class method `from_...` has an inverse method, so that any form can be converted to any
    other. Three forms contain all mass properties: the pseudo-inertia (4, 4), the ten inertial
    parameters, and the ten log-Cholesky parameters, for which every real vector is physical.

    **Arguments:** `mass`, kg; `center`, (3,) m from the origin of the axes; `inertia` about the
    centre of mass, principal (3,) or symmetric (3, 3), kg m^2; `physical=False` admits an inertia
    that no distribution of mass has, and zero mass.
    **Errors:** `ValueError` for wrong shapes, non-positive mass, non-physical inertia.
    """

    mass: Scalar
    center: Vector3
    inertia: Vector3 | Matrix3

    def __init__(
        self, mass: ArrayInput, center: ArrayInput, inertia: ArrayInput, *, physical: bool = True
    ):
        self.mass = checked_mass(mass, "MassProperties(mass=...)", or_none=not physical)
        name = "MassProperties(center=...)"
        self.center = finite_leaf(center, name, (3,))
        self.inertia = checked_inertia(inertia, "MassProperties(inertia=...)", physical)

    @classmethod
    def from_euler_tensor(
        cls, mass: ArrayInput, center: ArrayInput, euler: ArrayInput, *, physical: bool = True
    ) -> "MassProperties":
        """Convert from the Euler tensor about the centre of mass, (3,) or (3, 3), kg m^2."""
        value = as_leaf(float_array(euler, "from_euler_tensor(euler=...)", (3,), (3, 3)))
        return cls(mass, center, inertia_from_euler_tensor(value), physical=physical)

    @classmethod
    def from_pseudo_inertia(cls, pseudo: ArrayInput, *, physical: bool = True) -> "MassProperties":
        r"""Convert from the pseudo-inertia $\int (x, 1)(x, 1)^T dm$, shape (4, 4).

        It consists of the Euler tensor about the origin, $m c$ and $m$.

        **Source:** Wensing, Kim, Slotine, IEEE Robot. Autom. Lett. 3 (2018) 60.
        """
        value = as_leaf(float_array(pseudo, "from_pseudo_inertia(pseudo=...)", (4, 4)))
        mass, first = value[3, 3], value[:3, 3]
        center = first / mass
        central = value[:3, :3] - first[:, None] * center[None, :]
        return cls(mass, center, inertia_from_euler_tensor(central), physical=physical)

    @classmethod
    def from_parameters(cls, parameters: ArrayInput, *, physical: bool = True) -> "MassProperties":
        r"""Convert from the ten inertial parameters in which the dynamics is linear.

        $(m, m c_1, m c_2, m c_3, I_{11}, I_{12}, I_{22}, I_{13}, I_{23}, I_{33})$ with the inertia
        about the origin of the axes; kg, kg m, kg m^2. Pinocchio uses this order too.
        """
        p = as_leaf(float_array(parameters, "from_parameters(parameters=...)", (10,)))
        center = p[1:4] / p[0]
        about_origin = jnp.stack([p[4], p[5], p[7], p[5], p[6], p[8], p[7], p[8], p[9]])
        central = shift_inertia(about_origin.reshape(3, 3), -p[0], center)
        return cls(p[0], center, central, physical=physical)

    @classmethod
    def from_log_cholesky(cls, theta: ArrayInput) -> "MassProperties":
        r"""Convert from ten unbounded parameters, all values of which are physical.

        $\theta = (\alpha, d_1, d_2, d_3, s_{12}, s_{23}, s_{13}, t_1, t_2, t_3)$ gives the
        pseudo-inertia $U U^T$ with the upper triangular $U$ that is $e^\alpha$ times the rows
        $(e^{d_1}, s_{12}, s_{13}, t_1)$, $(0, e^{d_2}, s_{23}, t_2)$, $(0, 0, e^{d_3}, t_3)$ and
        $(0, 0, 0, 1)$. So $m = e^{2\alpha}$ and $t$ is the centre of mass.

        **Source:** Rucker, Wensing, IEEE Robot. Autom. Lett. 7 (2022) 6797.
        """
        x = as_leaf(float_array(theta, "from_log_cholesky(theta=...)", (10,)))
        mass = jnp.exp(2 * x[0])
        u1, u2, u3 = jnp.exp(x[1]), jnp.exp(x[2]), jnp.exp(x[3])
        s12, s23, s13 = x[4], x[5], x[6]
        a, b, c = u1 * u1 + s12 * s12 + s13 * s13, u2 * u2 + s23 * s23, u3 * u3
        d, e, f = s23 * u3, s13 * u3, s12 * u2 + s13 * s23
        # In components, because tr(E) 1 - E would cancel.
        entries = jnp.stack([b + c, -f, -e, -f, a + c, -d, -e, -d, a + b])
        return cls(mass, x[7:10], mass * entries.reshape(3, 3))

    @property
    def tensor(self) -> Matrix3:
        """Inertia about the centre of mass as a tensor (3, 3), kg m^2."""
        return inertia_tensor(self.inertia)

    def euler_tensor(self) -> Matrix3:
        """Return the Euler tensor about the centre of mass, (3, 3), kg m^2."""
        return euler_tensor(self.tensor)

    def principal(self) -> tuple[Vector3, Matrix3]:
        """Return principal moments (3,), ascending, and the rotation (3, 3) from their axes."""
        return principal_axes(self.tensor)

    def pseudo_inertia(self) -> Float[Array, "4 4"]:
        """Return the pseudo-inertia (4, 4) about the origin; see `from_pseudo_inertia`."""
        first = self.mass * self.center
        second = self.euler_tensor() + first[:, None] * self.center[None, :]
        top = jnp.concatenate([second, first[:, None]], axis=1)
        return jnp.concatenate([top, jnp.append(first, self.mass)[None, :]], axis=0)

    def parameters(self) -> Float[Array, "10"]:
        """Return the ten inertial parameters (10,); see `from_parameters`."""
        i = self.inertia_about(jnp.zeros_like(self.center))
        moments = jnp.stack([i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]])
        return jnp.concatenate([self.mass[None], self.mass * self.center, moments])

    def log_cholesky(self) -> Float[Array, "10"]:
        """Return the ten log-Cholesky parameters (10,); see `from_log_cholesky`.

        The Euler tensor must be positive definite: for a flat or thin body some parameters are
        minus infinity.
        """
        a, b, c, d, e, f = symmetric_components(self.euler_tensor() / self.mass)
        u3 = jnp.sqrt(c)
        s23, s13 = d / u3, e / u3
        u2 = jnp.sqrt(b - s23 * s23)
        s12 = (f - s13 * s23) / u2
        u1 = jnp.sqrt(a - s12 * s12 - s13 * s13)
        scale = 0.5 * jnp.log(self.mass)
        shape = jnp.stack([scale, jnp.log(u1), jnp.log(u2), jnp.log(u3), s12, s23, s13])
        return jnp.concatenate([shape, self.center])

    def inertia_about(self, point: Vector3) -> Matrix3:
        """Return the inertia about a point, (3, 3), kg m^2; `point`, (3,) m in these axes."""
        return shift_inertia(self.inertia, self.mass, point - self.center)

    def transformed(self, R: Matrix3, origin: Vector3) -> "MassProperties":
        """Return the mass properties in other axes.

        **Arguments:** `R`, (3, 3), from the old to the new components; `origin`, (3,) m, position
        of the old origin in the new axes.
        """
        new = (origin + R @ self.center, rotate_inertia(self.inertia, R))
        return eqx.tree_at(lambda m: (m.center, m.inertia), self, new)

    def combined(self, other: "MassProperties") -> "MassProperties":
        """Return the mass properties of two bodies that are fixed together, in common axes."""
        mass = self.mass + other.mass
        center = (self.mass * self.center + other.mass * other.center) / mass
        inertia = self.inertia_about(center) + other.inertia_about(center)
        return eqx.tree_at(lambda m: (m.mass, m.center, m.inertia), self, (mass, center, inertia))


def checked_mass(mass: ArrayInput, argument: str, or_none: bool = False) -> Scalar:
    """Return a mass, kg, checked to be finite and positive; `or_none` also allows zero."""
    rule = (lambda m: m >= 0) if or_none else (lambda m: m > 0)
    positive = rule, f"`{argument}` must be positive, in kg."
    return as_leaf(check_all(float_array(mass, argument, ()), [finite_rule(argument), positive]))


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
