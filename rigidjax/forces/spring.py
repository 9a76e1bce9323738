"""Spring and damper along the line between two points."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..checks import (
    ArrayInput,
    as_leaf,
    check_all,
    finite_rule,
    float_array,
    scalar_leaf,
    vector_leaf,
)
from ..rotations.guarded import safe_divide, safe_sqrt
from ..rotations.so3 import dot
from .base import AbstractForce, Bodies, Kinematics, Loads
from .ends import Ends, check_ends, ends_at


class Spring(AbstractForce):
    r"""A spring and a viscous damper along the line between two points.

    The tension is $k\,(l - l_0) + c\,\dot l$ with the distance $l$ of the points. If the points
    coincide, the line has no direction and there is no force. With $l_0 = 0$ the spring (but not
    the damper) is smooth there.

    **Arguments:**

    - `a`, `b`: names of bodies or of frames on them; `"ground"` is the inertial frame.
    - `a_point`, `b_point`: the attachment points, (3,) m, space components, in the reference
      configuration; `None` for the origin of the frame, or the centre of mass.
    - `stiffness`, $k$, N/m; `damping`, $c$, N s/m.
    - `length`, $l_0$, unloaded length, m; `None` for the distance in the reference configuration.

    **Errors:** `ValueError` for a wrong shape, a negative length, or one body twice.
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    a_point: Float[Array, "3"] | None
    b_point: Float[Array, "3"] | None
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]
    length: Float[Array, ""] | None

    def __init__(
        self,
        a: str,
        b: str,
        a_point: ArrayInput | None,
        b_point: ArrayInput | None,
        stiffness: ArrayInput,
        damping: ArrayInput = 0.0,
        length: ArrayInput | None = None,
    ):
        self.a, self.b = check_ends("Spring", a, b)
        points = {"a_point": a_point, "b_point": b_point}
        self.a_point, self.b_point = (
            None if value is None else vector_leaf(value, f"Spring({name}=...)")
            for name, value in points.items()
        )
        self.stiffness = scalar_leaf(stiffness, "Spring(stiffness=...)")
        self.damping = scalar_leaf(damping, "Spring(damping=...)")
        self.length = None
        if length is not None:
            name = "Spring(length=...)"
            rule = (lambda x: x >= 0, f"`{name}` must not be negative.")
            self.length = as_leaf(
                check_all(float_array(length, name, ()), [finite_rule(name), rule])
            )

    def body_names(self) -> tuple[str, ...]:
        return self.a, self.b

    def loads(self, t: Float[Array, ""], bodies: Bodies, kinematics: Kinematics) -> Loads:
        ends = self._ends(bodies, kinematics)
        offset = ends.points[1] - ends.points[0]
        line = safe_divide(offset, safe_sqrt(_square(offset)))
        rate = dot(line, ends.velocities[1] - ends.velocities[0])
        # k (l - l0) n with l n = offset, which needs no direction if l0 = 0.
        pull = (
            self.stiffness * (offset - self._free_length(bodies) * line)
            + self.damping * rate * line
        )
        return Loads(jnp.stack([pull, -pull]), ends.arms)

    def potential_energy(
        self, t: Float[Array, ""], bodies: Bodies, kinematics: Kinematics
    ) -> Float[Array, ""]:
        points = self._ends(bodies, kinematics).points
        square, free = _square(points[1] - points[0]), self._free_length(bodies)
        stretch = safe_sqrt(square) - free
        # At length zero the square root has no derivatives; this expression has the right ones if
        # l0 = 0.
        twice = jnp.where(square > 0, stretch * stretch, square + free * free)
        return 0.5 * self.stiffness * twice

    def _ends(self, bodies: Bodies, kinematics: Kinematics) -> Ends:
        return ends_at(self._points(bodies), bodies, kinematics)

    def _points(self, bodies: Bodies) -> Float[Array, "2 3"]:
        points = (self.a_point, self.b_point)
        return jnp.stack(
            [x if p is None else p for p, x in zip(points, bodies.positions, strict=True)]
        )

    def _free_length(self, bodies: Bodies) -> Float[Array, ""]:
        if self.length is not None:
            return self.length
        first, second = self._points(bodies)
        return safe_sqrt(_square(second - first))


def _square(v: Float[Array, "3"]) -> Float[Array, ""]:
    return dot(v, v)
