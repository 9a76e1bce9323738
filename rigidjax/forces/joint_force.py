"""The base class of forces on the coordinate of a joint."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..annotations import Scalar
from ..joints.base import AbstractJoint
from ..rotations.matrix import to_body
from .base import AbstractForce, Bodies, JointKinematics, Kinematics, Loads


class AbstractJointForce(AbstractForce):
    r"""A generalised force $Q(t, q, \dot q)$ on one coordinate of a joint.

    It acts on the child at its joint point, as a force along or a moment about the axis of the
    coordinate; the opposite acts at the same point on the parent.
    """

    joint: eqx.AbstractVar[str]
    component: eqx.AbstractVar[int | None]

    depends_on_translation: ClassVar[bool] = False

    @abc.abstractmethod
    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        """Return the force, N, or moment, N m, on the coordinate."""

    def body_names(self) -> tuple[str, ...]:
        return ()

    def joint_names(self) -> tuple[str, ...]:
        return (self.joint,)

    def check_joint(self, joint: AbstractJoint) -> None:
        kind, subject = type(self).__name__, f"the {type(joint).__name__} {joint.name!r}"
        if joint.num_translations == 0 and not joint.has_angle:
            raise ValueError(f"`{kind}` acts on a length or an angle; {subject} has none.")
        if joint.num_rates == 0:
            raise ValueError(
                f"`{kind}` acts on a free coordinate; the motion of {subject} is prescribed, and "
                "its driving force is part of its reaction."
            )
        check_component(self.component, joint.num_rates, kind, subject)

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        (joint,), k = kinematics.joints, self.component or 0
        Q = self.generalised_force(t, joint.coordinates[k], joint.rates[k])
        return coordinate_loads(Q, joint, k, kinematics)


def coordinate_loads(Q: Scalar, joint: JointKinematics, k: int, kinematics: Kinematics) -> Loads:
    """Return the loads of a generalised force on coordinate `k` of a joint, N or N m."""
    force, moment = Q * joint.forces[k], Q * joint.moments[k]
    in_body = jax.vmap(to_body)
    moments = in_body(kinematics.rotations, jnp.stack([-moment, moment]))
    arms = in_body(kinematics.rotations, jnp.stack([joint.parent_arm, joint.child_arm]))
    return Loads(jnp.stack([-force, force]), arms, moments)


def check_component(component: int | None, count: int, kind: str, subject: str) -> None:
    """Raise `ValueError` unless a component selects one of `count` coordinates of a joint.

    **Arguments:** `kind`, the class of the object that acts on or measures it; `subject`, the
    joint in messages.
    """
    if component is None and count > 1:
        raise ValueError(
            f"`{kind}(component=...)` is needed: {subject} has {count} coordinates, numbered "
            "from 0, lengths before angles."
        )
    if component is not None and component >= count:
        raise ValueError(
            f"`{kind}(component=...)` must be below {count}, the number of coordinates of "
            f"{subject}; got {component}."
        )


def joint_name(joint: str | AbstractJoint, kind: str) -> str:
    """Return the name of a joint that is given by name or as an object."""
    if isinstance(joint, AbstractJoint):
        return joint.name
    if not isinstance(joint, str):
        raise TypeError(f"`{kind}(joint=...)` takes a joint or its name; got {joint!r}.")
    return joint


def checked_component(component: int | None, kind: str) -> int | None:
    """Return the checked index of a coordinate; `None` stays `None`."""
    if component is None:
        return None
    if isinstance(component, bool) or not isinstance(component, int) or component < 0:
        raise ValueError(
            f"`{kind}(component=...)` must be None or the number of a coordinate, 0, 1 or 2; "
            f"got {component!r}."
        )
    return component
