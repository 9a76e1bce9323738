"""Unilateral contacts: distances that an impact keeps from becoming negative."""

import abc
import math
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, is_traced, scalar_leaf, vector_leaf
from ..forces.base import AbstractForce, Bodies, Kinematics, Loads
from ..forces.joint_force import joint_name
from ..forces.motor import Motor
from ..formulations import AbstractFormulation, Relative
from ..formulations.charts import Unknowns
from ..formulations.holding import rate_rows
from ..formulations.null_space import AbstractNullSpace
from ..formulations.view import SystemView
from ..joints.axes import unit_vector
from ..joints.base import AbstractJoint
from ..joints.replacing import FORCE_FIELDS
from ..mechanics.kinematics.trees import body_accelerations, body_twists, null_space
from ..rotations.matrix import to_body, to_space
from ..small_arrays import cross


class ContactMotion(NamedTuple):
    """Rate and acceleration of the distance of a contact, and the `gradient` (f,) of the rate on
    the generalised velocities."""

    rate: Scalar
    acceleration: Scalar
    gradient: Float[Array, " f"]


class AbstractContact(eqx.Module):
    """A distance that may not become negative, a function `when` of a `Transition`."""

    @abc.abstractmethod
    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        """Return the distance, m or rad."""

    @abc.abstractmethod
    def check(self, model: AbstractFormulation) -> None:
        """Raise `ValueError` if `model` lacks the body or joint that the distance refers to."""

    @abc.abstractmethod
    def can_rest(self, model: AbstractNullSpace) -> bool:
        """Return whether the contact can stay closed in a model."""

    @abc.abstractmethod
    def motion(
        self, model: AbstractNullSpace, t: Scalar, y: Unknowns, nu_dot: Float[Array, " f"]
    ) -> ContactMotion:
        """Return the motion of the distance for given generalised accelerations."""

    @abc.abstractmethod
    def size(self, view: SystemView) -> Scalar:
        """Return the size of the terms whose difference the distance is, m or rad."""

    @abc.abstractmethod
    def force(self, model: AbstractFormulation, effort: Scalar) -> AbstractForce:
        """Return the force that does the work `effort`, N or N m, times the rate of the distance.

        It keeps the contact closed.
        """


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
    point: Vector3
    origin: Vector3
    normal: Vector3
    radius: Scalar

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
        self._sensor.check(model)

    def contact_point(self, view: SystemView) -> Vector3:
        """Return the point of the sphere nearest to the plane, (3,) m, space components."""
        centre = self._centre(view)
        normal = unit_vector(self.normal.astype(centre.dtype))
        return centre - self.radius.astype(centre.dtype) * normal

    def can_rest(self, model: AbstractNullSpace) -> bool:
        return model.rates == "body"

    def motion(
        self, model: AbstractNullSpace, t: Scalar, y: Unknowns, nu_dot: Float[Array, " f"]
    ) -> ContactMotion:
        from ..sensors.base import locate_mount

        i, frame = locate_mount(model, self.body, "PlaneContact")
        at = model.configuration(t, y)
        prepared, poses, frames = at.prepared, at.poses, at.joint_frames
        p = self.point.astype(nu_dot.dtype)
        p = p if frame is None else frame.on_body(p)
        n = unit_vector(self.normal.astype(p.dtype))
        # The normal velocity of a sphere does not depend on its rotation about its centre.
        T, moment = null_space(prepared, poses, frames)[i], cross(p, to_body(poses.rotations[i], n))
        twists = body_twists(prepared, at.t, poses, frames, at.nu)
        change = body_accelerations(prepared, at.t, poses, at.nu, nu_dot)
        omega = twists.angular[i]
        centripetal = to_space(poses.rotations[i], cross(omega, cross(omega, p)))
        return ContactMotion(
            n @ twists.linear[i] + moment @ omega,
            n @ (change.linear[i] + centripetal) + moment @ change.angular[i],
            n @ T[:3] + moment @ T[3:],
        )

    def size(self, view: SystemView) -> Scalar:
        centre = self._centre(view)
        size = jnp.max(view.model.prepared_system.lengths)
        return size + jnp.max(jnp.abs(centre)) + jnp.max(jnp.abs(self.origin)) + self.radius

    def force(self, model: AbstractFormulation, effort: Scalar) -> AbstractForce:
        body = model.multibody.bodies[0].name if self.body is None else self.body
        normal = unit_vector(self.normal.astype(effort.dtype))
        return _NormalForce(str(body), self.point, normal, self.radius, effort)

    @property
    def _sensor(self) -> Any:
        from ..sensors.position import Position  # takes long to import, and few runs have contacts

        return Position(self.body, self.point)

    def _centre(self, view: SystemView) -> Vector3:
        return view.sensors[self._sensor]


class _NormalForce(AbstractForce):
    """The force `effort`, N, along `normal` on a sphere, at its point nearest to a plane."""

    body: str = eqx.field(static=True)
    point: Vector3
    normal: Vector3
    radius: Scalar
    effort: Scalar

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        arm = self.point - self.radius * to_body(kinematics.rotations[0], self.normal)
        return Loads((self.effort * self.normal)[None], arm[None])


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
    limit: Scalar
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

    @property
    def _sensor(self) -> Any:
        from ..sensors.joint_coordinate import JointCoordinate

        return JointCoordinate(self.joint, self.component)

    @property
    def _sign(self) -> float:
        return self._signs[self.side]

    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        """Return the distance, rad or m."""
        q = view.sensors[self._sensor]
        return self._sign * (q - self.limit.astype(q.dtype))

    def can_rest(self, model: AbstractNullSpace) -> bool:
        system, j = model.multibody, model.multibody.joint_index(self.joint)
        joint = system.joints[j]
        acts_on_rates = set(FORCE_FIELDS) <= set(vars(joint)) and not joint.is_driven
        return acts_on_rates and j not in system.topology.loops

    def motion(
        self, model: AbstractNullSpace, t: Scalar, y: Unknowns, nu_dot: Float[Array, " f"]
    ) -> ContactMotion:
        row, sign = rate_rows(model, self.joint, "JointStop")[self.component or 0], self._sign
        gradient = jnp.zeros_like(nu_dot).at[row].set(sign)
        return ContactMotion(sign * model.rates_of(y)[row], sign * nu_dot[row], gradient)

    def size(self, view: SystemView) -> Scalar:
        joint, k = self._sensor.coordinate(view.model)
        q = view.sensors[self._sensor]
        is_length = k < joint.num_translations
        size = jnp.max(view.model.prepared_system.lengths) if is_length else 1.0
        return size + jnp.abs(q) + jnp.abs(self.limit)

    def force(self, model: AbstractFormulation, effort: Scalar) -> AbstractForce:
        return Motor(self.joint, self._sign * effort, self.component)

    def check(self, model: AbstractFormulation) -> None:
        joint, k = self._sensor.coordinate(model)
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
