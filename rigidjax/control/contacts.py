"""Unilateral contacts: distances that an impact keeps from becoming negative."""

import abc
import math
from typing import ClassVar, Literal

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, is_traced, scalar_leaf, vector_leaf
from ..forces.joint_force import joint_name
from ..formulations import AbstractFormulation, Relative
from ..formulations.view import SystemView
from ..joints.axes import unit_vector
from ..joints.base import AbstractJoint
from ..sensors import JointCoordinate, Position


class AbstractContact(eqx.Module):
    """A distance that may not become negative, a function `when` of a `Transition`."""

    @abc.abstractmethod
    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        """Return the distance, m or rad."""

    @abc.abstractmethod
    def check(self, model: AbstractFormulation) -> None:
        """Raise `ValueError` if `model` lacks what the distance is measured of."""


class PlaneContact(AbstractContact):
    r"""Distance $n \cdot (x - o) - r$ of a sphere or point of a body from a fixed plane, m.

    It serves as `when` of a `Transition`, together with `rj.Restitution`:
    `rj.Transition(rj.PlaneContact("ball", radius=0.1), rj.Restitution(0.8))`.

    **Arguments:**

    - `body`: name of the body or of a `Frame`; `None` if there is only one body.
    - `point`: centre of the sphere, (3,) m, as in `rj.Position`.
    - `origin`, $o$, a point of the plane, (3,) m; `normal`, $n$, the direction away from it, (3,),
      of any length; space components.
    - `radius`, $r$, of the sphere, or of a disc or hoop that stays upright, m.

    **Raises:** `ValueError` for a zero normal, a negative radius, wrong shapes.
    """

    body: str | None = eqx.field(static=True)
    point: Float[Array, "3"]
    origin: Float[Array, "3"]
    normal: Float[Array, "3"]
    radius: Float[Array, ""]

    def __init__(
        self,
        body: str | None = None,
        point: ArrayInput = (0.0, 0.0, 0.0),
        origin: ArrayInput = (0.0, 0.0, 0.0),
        normal: ArrayInput = (0.0, 0.0, 1.0),
        radius: ArrayInput = 0.0,
    ):
        self.body = body
        self.point = vector_leaf(point, "PlaneContact(point=...)")
        self.origin = vector_leaf(origin, "PlaneContact(origin=...)")
        self.normal = vector_leaf(normal, "PlaneContact(normal=...)")
        self.radius = scalar_leaf(radius, "PlaneContact(radius=...)")
        if not is_traced(self.normal) and not np.any(np.asarray(self.normal)):
            raise ValueError("`PlaneContact(normal=...)` must not be zero.")
        if not is_traced(self.radius) and self.radius < 0:
            raise ValueError(f"`PlaneContact(radius=...)` must be >= 0; got {self.radius}.")

    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        """Return the distance, m."""
        centre = self._centre(view)
        normal = unit_vector(self.normal.astype(centre.dtype))
        return normal @ (centre - self.origin.astype(centre.dtype)) - self.radius.astype(
            centre.dtype
        )

    def check(self, model: AbstractFormulation) -> None:
        Position(self.body, self.point).check(model)

    def contact_point(self, view: SystemView) -> Float[Array, "3"]:
        """Return the point of the sphere nearest to the plane, (3,) m, space components."""
        centre = self._centre(view)
        normal = unit_vector(self.normal.astype(centre.dtype))
        return centre - self.radius.astype(centre.dtype) * normal

    def _centre(self, view: SystemView) -> Float[Array, "3"]:
        return view.sensors[Position(self.body, self.point)]


class JointStop(AbstractContact):
    r"""Distance of a joint coordinate from a stop, rad or m, positive within the range.

    It serves as `when` of a `Transition`, together with `rj.Restitution`:
    `rj.Transition(rj.JointStop("hinge", 0.5, "upper"), rj.Restitution(0.6))`.

    Angles beyond pi are those of `rj.Relative`, or of a model whose system unwraps them
    (`system.tracking(["hinge"])`).

    **Arguments:** `joint`, a joint or its name; `limit`, the coordinate at the stop, rad or m;
    `side`, `"upper"` for $q \le$ `limit`, `"lower"` for $q \ge$ `limit`; `component`, index of the
    coordinate if the joint has several.
    **Raises:** `ValueError` for another side, and in a run for an unknown joint, or for an angle
    beyond pi that the model does not unwrap.
    """

    joint: str = eqx.field(static=True)
    limit: Float[Array, ""]
    side: Literal["upper", "lower"] = eqx.field(static=True)
    component: int | None = eqx.field(static=True)
    _signs: ClassVar[dict[str, float]] = {"upper": -1.0, "lower": 1.0}

    def __init__(
        self,
        joint: str | AbstractJoint,
        limit: ArrayInput,
        side: Literal["upper", "lower"],
        component: int | None = None,
    ):
        if side not in self._signs:
            raise ValueError(f'`JointStop(side=...)` must be "upper" or "lower"; got {side!r}.')
        self.joint = joint_name(joint, "JointStop")
        self.limit = scalar_leaf(limit, "JointStop(limit=...)")
        self.side, self.component = side, component

    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        """Return the distance, rad or m."""
        q = view.sensors[JointCoordinate(self.joint, self.component)]
        return self._signs[self.side] * (q - self.limit.astype(q.dtype))

    def check(self, model: AbstractFormulation) -> None:
        joint, k = JointCoordinate(self.joint, self.component).coordinate(model)
        index = model.multibody.joint_index(self.joint)
        unwraps = isinstance(model, Relative) or index in model.multibody.tracked_joints
        if k < joint.num_translations or unwraps or is_traced(self.limit):
            return
        if abs(float(self.limit)) >= math.pi:
            raise ValueError(
                f"`JointStop({self.joint!r}, limit={float(self.limit):.6g})` lies beyond pi, but "
                "the model has angles between -pi and pi. Use `rj.Relative`, or a system that "
                f"unwraps the angle: `system.tracking([{self.joint!r}])`."
            )
