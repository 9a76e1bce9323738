"""Spring and damper along the line between two points."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..checks import ArrayInput, as_leaf, check_all, float_array, is_finite
from ..rotations.guarded import safe_divide, safe_sqrt
from ..rotations.so3 import dot
from .base import AbstractForce, Kinematics, Wrench, scalar_leaf, vector_leaf
from .load import Load, check_ends, end_of, virials_of, wrenches_of


class Spring(AbstractForce):
    r"""A spring and a viscous damper along the line between two points.

    The tension is $k\,(l - l_0) + c\,\dot l$ with the distance $l$ of the points. Where they
    coincide the line has no direction: there is no force, and where $l_0 = 0$ the spring (but not
    the damper) is smooth.

    **Arguments:**

    - `a`, `b`: names of bodies; `"ground"` is the inertial frame.
    - `a_point`, `b_point`: where it is attached, (3,) m, space components, in the reference
      configuration.
    - `stiffness`, $k$, N/m; `damping`, $c$, N s/m.
    - `length`, $l_0$, without load, m; `None` for the distance in the reference configuration.

    **Raises:** `ValueError` for a wrong shape, a negative length, or one body twice.
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    a_point: Float[Array, "3"]
    b_point: Float[Array, "3"]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]
    length: Float[Array, ""] | None

    def __init__(
        self,
        a: str,
        b: str,
        a_point: ArrayInput,
        b_point: ArrayInput,
        stiffness: ArrayInput,
        damping: ArrayInput = 0.0,
        length: ArrayInput | None = None,
    ):
        self.a, self.b = check_ends("Spring", a, b)
        self.a_point = vector_leaf(a_point, "Spring(a_point=...)")
        self.b_point = vector_leaf(b_point, "Spring(b_point=...)")
        self.stiffness = scalar_leaf(stiffness, "Spring(stiffness=...)")
        self.damping = scalar_leaf(damping, "Spring(damping=...)")
        self.length = None
        if length is not None:
            name = "Spring(length=...)"
            rule = (lambda x: x >= 0, f"`{name}` must not be negative.")
            self.length = as_leaf(check_all(float_array(length, name, ()), [is_finite(name), rule]))

    def body_names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.a, self.b) if name != "ground")

    def wrenches(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Wrench, ...]:
        return wrenches_of(len(bodies), self._loads(bodies, kinematics))

    def virials(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Float[Array, "3 3"] | None, ...]:
        return virials_of(len(bodies), self._loads(bodies, kinematics))

    def potential_energy(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> Float[Array, ""]:
        a, b = self._ends(bodies, kinematics)
        square, free = _square(b.point - a.point), self._free_length()
        stretch = safe_sqrt(square) - free
        # At zero the derivatives of the root are left out; those of the square are right if l0 = 0.
        twice = jnp.where(square > 0, stretch * stretch, square + free * free)
        return 0.5 * self.stiffness * twice

    def _ends(self, bodies, kinematics):
        return (
            end_of(self.a, self.a_point, bodies, kinematics),
            end_of(self.b, self.b_point, bodies, kinematics),
        )

    def _free_length(self):
        if self.length is not None:
            return self.length
        return safe_sqrt(_square(self.b_point - self.a_point))

    def _loads(self, bodies, kinematics) -> tuple[Load, Load]:
        a, b = self._ends(bodies, kinematics)
        gap = b.point - a.point
        line = safe_divide(gap, safe_sqrt(_square(gap)))
        rate = dot(line, b.velocity - a.velocity)
        # k (l - l0) n with l n = gap, which needs no direction if l0 = 0.
        pull = self.stiffness * (gap - self._free_length() * line) + self.damping * rate * line
        return (
            Load(pull, a.arm, None, a.rotation, a.index),
            Load(-pull, b.arm, None, b.rotation, b.index),
        )


def _square(v):
    return dot(v, v)
