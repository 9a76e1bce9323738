"""Resistance of a medium to the motion of a body."""

import equinox as eqx
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar, Vector3
from ..checks import finite_leaf
from ..rotations.guarded import safe_sqrt
from ..rotations.matrix import to_body, to_space
from ..rotations.so3 import dot
from .base import AbstractForce, Bodies, Kinematics, Loads

Coefficient = Scalar | Vector3 | None


class Drag(AbstractForce):
    r"""Drag of a medium at rest, $f = -c_1 v - c_2 |v| v$ at the centre of mass and
    $\mu = -\gamma_1 \Omega - \gamma_2 |\Omega| \Omega$.

    At rest the quadratic parts have zero first derivatives and discontinuous second derivatives.

    **Arguments:**

    - `body`: name of the body, or of a `Frame`, whose origin and axes are then used.
    - `linear`, $c_1$, N s/m: a scalar or (3,) along the body axes; `None` for zero.
    - `quadratic`, $c_2$, N s^2/m^2: likewise.
    - `angular_linear`, $\gamma_1$, N m s: likewise.
    - `angular_quadratic`, $\gamma_2$, N m s^2: likewise.

    **Errors:** `ValueError` for a wrong shape, or if all four coefficients are left out.
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
        coefficients = (linear, quadratic, angular_linear, angular_quadratic)
        if all(value is None for value in coefficients):
            raise ValueError(
                "`Drag` needs at least one of `linear`, `quadratic`, `angular_linear`, "
                "`angular_quadratic`; got none."
            )

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        R, v = kinematics.rotations[0], kinematics.velocities[0]
        isotropic = all(c is None or c.ndim == 0 for c in (self.linear, self.quadratic))
        force = _resistance(self.linear, self.quadratic, v if isotropic else to_body(R, v))
        if not (isotropic or force is None):
            force = to_space(R, force)
        omega = kinematics.angular_velocities[0]
        moment = _resistance(self.angular_linear, self.angular_quadratic, omega)
        return Loads(_row(force), moments=_row(moment))


def _row(vector: Vector3 | None) -> Float[Array, "1 3"] | None:
    return None if vector is None else vector[None]


def _coefficient(value: ArrayLike | None, argument: str) -> Coefficient:
    if value is None:
        return None
    name = f"Drag({argument}=...)"
    return finite_leaf(value, name, (), (3,))


def _resistance(linear: Coefficient, quadratic: Coefficient, rate: Vector3) -> Vector3 | None:
    """Return $-c_1 v - c_2 |v| v$, `None` without coefficients."""
    parts = []
    if linear is not None:
        parts.append(linear * rate)
    if quadratic is not None:
        parts.append(quadratic * safe_sqrt(dot(rate, rate)) * rate)
    return -sum(parts[1:], parts[0]) if parts else None
