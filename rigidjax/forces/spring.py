"""Spring and damper along the line between two points."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, nonnegative_leaf, scalar_leaf, vector_leaf
from ..rotations.guarded import safe_divide, safe_sqrt
from ..rotations.so3 import dot
from .base import AbstractForce, Bodies, Kinematics, Loads
from .cable import one_sided_tension
from .ends import Ends, check_ends, ends_at


class Spring(AbstractForce):
    r"""A spring and a viscous damper along the line between two points.

    The tension is $k\,(l - l_0) + c\,\dot l$ with the distance $l$ of the points. If the points
    coincide, the line has no direction and there is no force. With $l_0 = 0$ the spring (but not
    the damper) is smooth there.

    With `tension_only=True` it is a cord, which is slack below its length: the tension is
    $p + \min(\max(c\,\dot l, -p), p)$ with the pull $p = k \max(l - l_0, 0)$. It is never negative,
    continuous, and has a kink where the cord becomes taut; the potential energy is $p^2 / 2k$. A
    cord over several points is a `Cable`.

    **Arguments:**

    - `a`, `b`: names of bodies or of frames on them; `"ground"` is the inertial frame.
    - `a_point`, `b_point`: the attachment points, (3,) m, space components, in the reference
      configuration; `None` for the origin of the frame, or the centre of mass.
    - `stiffness`, $k$, N/m; `damping`, $c$, N s/m.
    - `length`, $l_0$, unloaded length, m; `None` for the distance in the reference configuration.
    - `tension_only`: whether it pulls only.

    **Errors:** `ValueError` for a wrong shape, a negative length, a negative stiffness or damping
    of a cord, or one body twice.
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    a_point: Vector3 | None
    b_point: Vector3 | None
    stiffness: Scalar
    damping: Scalar
    length: Scalar | None
    tension_only: bool = eqx.field(static=True)

    def __init__(
        self,
        a: str,
        b: str,
        a_point: ArrayInput | None,
        b_point: ArrayInput | None,
        stiffness: ArrayInput,
        damping: ArrayInput = 0.0,
        length: ArrayInput | None = None,
        *,
        tension_only: bool = False,
    ):
        self.a, self.b = check_ends("Spring", a, b)
        points = {"a_point": a_point, "b_point": b_point}
        self.a_point, self.b_point = (
            None if value is None else vector_leaf(value, f"Spring({name}=...)")
            for name, value in points.items()
        )
        # A cord cannot push, as a negative stiffness or damping would demand.
        leaf = nonnegative_leaf if tension_only else scalar_leaf
        self.stiffness = leaf(stiffness, "Spring(stiffness=...)")
        self.damping = leaf(damping, "Spring(damping=...)")
        self.length = None if length is None else nonnegative_leaf(length, "Spring(length=...)")
        self.tension_only = tension_only

    def body_names(self) -> tuple[str, ...]:
        return self.a, self.b

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        ends = self._ends(bodies, kinematics)
        offset = ends.points[1] - ends.points[0]
        line = safe_divide(offset, safe_sqrt(_square(offset)))
        rate = dot(line, ends.velocities[1] - ends.velocities[0])
        if self.tension_only:
            stretch = dot(line, offset) - self._free_length(bodies)
            pull = one_sided_tension(self.stiffness * stretch, self.damping * rate) * line
            return Loads(jnp.stack([pull, -pull]), ends.arms)
        # k (l - l0) n with l n = offset, which needs no direction if l0 = 0.
        pull = (
            self.stiffness * (offset - self._free_length(bodies) * line)
            + self.damping * rate * line
        )
        return Loads(jnp.stack([pull, -pull]), ends.arms)

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        points = self._ends(bodies, kinematics).points
        square, free = _square(points[1] - points[0]), self._free_length(bodies)
        stretch = safe_sqrt(square) - free
        if self.tension_only:
            return 0.5 * self.stiffness * jnp.maximum(stretch, 0.0) ** 2
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

    def _free_length(self, bodies: Bodies) -> Scalar:
        if self.length is not None:
            return self.length
        first, second = self._points(bodies)
        return safe_sqrt(_square(second - first))


def _square(v: Vector3) -> Scalar:
    return dot(v, v)
