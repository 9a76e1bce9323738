"""A force that acts at a material point of one body."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..bodies.body import Body
from ..rotations.so3 import cross
from .base import (
    AbstractForce,
    Kinematics,
    Wrench,
    body_index,
    evaluated,
    one_body,
    symmetric_part,
    to_body,
    to_space,
    vector_law,
    vector_leaf,
)


class PointForce(AbstractForce):
    r"""A force on one body, constant or a function of time, applied at a material point.

    **Arguments:**

    - `body`: name of the body.
    - `point`: where it acts, from the centre of mass, (3,), body components, m.
    - `force`: (3,) N, or a function `force(t) -> (3,)`; an Equinox module keeps its parameters
      as leaves.
    - `frame`: axes of the components of the force, `"space"` or `"body"` (a follower force).

    **Raises:** `ValueError` for a wrong shape, also of what the function returns, or frame.
    """

    body: str = eqx.field(static=True)
    point: Float[Array, "3"]
    force: Any
    frame: Literal["space", "body"] = eqx.field(static=True)

    def __init__(
        self,
        body: str,
        point: ArrayLike,
        force: ArrayLike | Callable[[Float[Array, ""]], Float[Array, "3"]],
        frame: Literal["space", "body"] = "space",
    ):
        if frame not in ("body", "space"):
            raise ValueError(f'`PointForce(frame=...)` must be "space" or "body"; got {frame!r}.')
        self.body = body
        self.point = vector_leaf(point, "PointForce(point=...)")
        self.force = vector_law(force, "PointForce(force=...)", ())
        self.frame = frame

    @property
    def is_linear(self) -> bool:
        return True

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def wrenches(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Wrench, ...]:
        index = body_index(bodies, self.body)
        force_body, force_space = self._force(t, kinematics.rotations[index])
        return one_body(len(bodies), index, (force_space, cross(self.point, force_body)))

    def virials(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Float[Array, "3 3"] | None, ...]:
        index = body_index(bodies, self.body)
        force_body, _ = self._force(t, kinematics.rotations[index])
        virial = symmetric_part(jnp.outer(force_body, self.point))
        return tuple(virial if i == index else None for i in range(len(bodies)))

    def potential_energy(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> Float[Array, ""]:
        return jnp.zeros((), self.point.dtype)

    def _force(self, t, R):
        value = evaluated(self.force, "PointForce(force=...)", t)
        if self.frame == "body":
            return value, to_space(R, value)
        return to_body(R, value), value
