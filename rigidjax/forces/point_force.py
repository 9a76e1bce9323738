"""A force that acts at a material point of one body."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike

from ..annotations import Scalar, Vector3
from ..checks import vector_leaf
from ..rotations.matrix import to_body
from .base import AbstractForce, Bodies, Kinematics, Loads, evaluate_vector_law, vector_law


class PointForce(AbstractForce):
    r"""A force on one body, constant or a function of time, applied at a material point.

    **Arguments:**

    - `body`: name of the body, or of a `Frame` on it.
    - `at`: the point where it acts, (3,) m, space components in the reference configuration, like
      the points of joints, springs and bushings; or
    - `point`: the point from the centre of mass, (3,) m, body components; for a `Frame` from its
      origin, in its components. Without `at` and `point` the force acts at that origin.
    - `force`: (3,) N, or a function `force(t) -> (3,)`; an Equinox module keeps its parameters
      as leaves.
    - `frame`: axes of the components of the force, `"space"`, or `"body"` for a follower force; the
      latter are the axes of a `Frame` if `body` names one.

    **Errors:** `ValueError` for a wrong shape, also of the function's result, wrong axes, or both
    `point` and `at`.
    """

    body: str = eqx.field(static=True)
    point: Vector3 | None
    force: Any
    frame: Literal["space", "body"] = eqx.field(static=True)

    depends_on_translation: ClassVar[bool] = False
    at: Vector3 | None

    def __init__(
        self,
        body: str,
        point: ArrayLike | None = None,
        force: ArrayLike | Callable[[Scalar], Vector3] | None = None,
        frame: Literal["space", "body"] = "space",
        *,
        at: ArrayLike | None = None,
    ):
        if frame not in ("body", "space"):
            raise ValueError(f'`PointForce(frame=...)` must be "space" or "body"; got {frame!r}.')
        if force is None:
            raise TypeError("`PointForce(force=...)` is missing; the second argument is the point.")
        if point is not None and at is not None:
            raise ValueError(
                "`PointForce` takes its point as `at`, space components in the reference "
                "configuration, or as `point`, from the centre of mass in body components; got "
                "both."
            )
        if at is None and point is None:
            point = np.zeros(3)
        self.body = body
        self.point = None if point is None else vector_leaf(point, "PointForce(point=...)")
        self.at = None if at is None else vector_leaf(at, "PointForce(at=...)")
        self.force = vector_law(force, "PointForce(force=...)", ())
        self.frame = frame

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        value = evaluate_vector_law(self.force, "PointForce(force=...)", t)
        arm = self.point
        if self.at is not None:
            arm = to_body(bodies.rotations[0], self.at - bodies.positions[0])
        assert arm is not None
        return Loads(value[None], arm[None], axes=self.frame)
