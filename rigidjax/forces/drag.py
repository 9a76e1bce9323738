"""Resistance of a medium to the motion of a body."""

import equinox as eqx
from jaxtyping import Array, ArrayLike, Float

from ..checks import finite_leaf
from ..rotations.guarded import safe_sqrt
from ..rotations.matrix import to_body, to_space
from ..rotations.so3 import dot
from .base import AbstractForce, Bodies, Kinematics, Loads

Coefficient = Float[Array, ""] | Float[Array, "3"] | None


class Drag(AbstractForce):
    r"""Drag of a medium at rest, $f = -c_1 v - c_2 |v| v$ at the centre of mass and
    $\mu = -\gamma_1 \Omega - \gamma_2 |\Omega| \Omega$.

    First derivatives at rest are those of the linear parts (the second ones of the others are not
    continuous there).

    **Arguments:**

    - `body`: name of the body, or of a `Frame` on it: drag of its origin along its axes.
    - `linear`, $c_1$, N s/m; `quadratic`, $c_2$, N s^2/m^2; `angular_linear`, $\gamma_1$, N m s;
      `angular_quadratic`, $\gamma_2$, N m s^2: one number or (3,) along the body axes; `None` for
      what there is not.

    **Raises:** `ValueError` for a wrong shape, or if all four are left out.
    """

    body: str = eqx.field(static=True)
    linear: Coefficient
    quadratic: Coefficient
    angular_linear: Coefficient
    angular_quadratic: Coefficient

    def __init__(
        self,
        body: str,
        linear: ArrayLike | None = None,
        quadratic: ArrayLike | None = None,
        angular_linear: ArrayLike | None = None,
        angular_quadratic: ArrayLike | None = None,
    ):
        self.body = body
        self.linear = _coefficient(linear, "linear")
        self.quadratic = _coefficient(quadratic, "quadratic")
        self.angular_linear = _coefficient(angular_linear, "angular_linear")
        self.angular_quadratic = _coefficient(angular_quadratic, "angular_quadratic")
        given = (linear, quadratic, angular_linear, angular_quadratic)
        if all(value is None for value in given):
            raise ValueError(
                "`Drag` needs at least one of `linear`, `quadratic`, `angular_linear`, "
                "`angular_quadratic`; got none."
            )

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def loads(self, t: Float[Array, ""], bodies: Bodies, kinematics: Kinematics) -> Loads:
        R, v = kinematics.rotations[0], kinematics.velocities[0]
        isotropic = all(c is None or c.ndim == 0 for c in (self.linear, self.quadratic))
        force = _resistance(self.linear, self.quadratic, v if isotropic else to_body(R, v))
        if not (isotropic or force is None):
            force = to_space(R, force)
        omega = kinematics.angular_velocities[0]
        moment = _resistance(self.angular_linear, self.angular_quadratic, omega)
        return Loads(_row(force), moments=_row(moment))


def _row(vector):
    """The loads of one body."""
    return None if vector is None else vector[None]


def _coefficient(value, argument: str) -> Coefficient:
    if value is None:
        return None
    name = f"Drag({argument}=...)"
    return finite_leaf(value, name, (), (3,))


def _resistance(linear, quadratic, rate):
    """$-c_1 v - c_2 |v| v$, `None` without coefficients."""
    parts = []
    if linear is not None:
        parts.append(linear * rate)
    if quadratic is not None:
        parts.append(quadratic * safe_sqrt(dot(rate, rate)) * rate)
    return -sum(parts[1:], parts[0]) if parts else None
