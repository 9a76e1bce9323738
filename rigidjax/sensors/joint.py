"""The base class of sensors on joints."""

import weakref
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, scalar_leaf
from ..forces.joint_force import check_component, checked_component, joint_name
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..joints.base import AbstractJoint
from ..joints.relative_pose import RelativePose
from ..mechanics import System, has_joints
from ..mechanics.kinematics.poses import joint_twists
from .base import AbstractReading, scale_leaf


class AbstractJointSensor(AbstractReading):
    """A sensor on one coordinate of a joint; its arguments are those of `JointCoordinate`."""

    joint: str = eqx.field(static=True)
    component: int | None = eqx.field(static=True)
    bias: Scalar
    scale: Scalar
    label: str | None = eqx.field(static=True)
    quantity: eqx.AbstractClassVar[str]
    """Name of the measured quantity, as used in the name of the sensor."""
    depends_on_translation: ClassVar[bool] = False
    value_shape: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self,
        joint: str | AbstractJoint,
        component: int | None = None,
        bias: ArrayInput = 0.0,
        scale: ArrayInput = 1.0,
        name: str | None = None,
    ):
        self._set_fields(joint, component, bias, scale, name)

    def _set_fields(
        self,
        joint: str | AbstractJoint,
        component: int | None,
        bias: ArrayInput,
        scale: ArrayInput,
        name: str | None,
    ) -> None:
        """Set the fields that all sensors on a coordinate have."""
        kind = type(self).__name__
        self.joint = joint_name(joint, kind)
        self.component = checked_component(component, kind)
        self.bias = scalar_leaf(bias, f"{kind}(bias=...)")
        self.scale = scale_leaf(scale, f"{kind}(scale=...)", ())
        self.label = name

    def reading(self, ideal: Scalar) -> Scalar:
        r"""Return the reading $s\,v + b$ of an ideal value $v$."""
        return self.scale.astype(ideal.dtype) * ideal + self.bias.astype(ideal.dtype)

    def ideal_value(self, reading: ArrayInput) -> np.ndarray:
        """Return the ideal value of a concrete reading, the inverse of `reading`."""
        return (np.asarray(reading) - np.asarray(self.bias)) / np.asarray(self.scale)

    @property
    def name(self) -> str:
        if self.label is not None:
            return self.label
        name = f"{self.quantity} of {self.joint}"
        return name if self.component is None else f"{name} [{self.component}]"

    def coordinate(self, model: AbstractFormulation) -> tuple[AbstractJoint, int]:
        """Return the joint and the index of its coordinate.

        **Errors:** `ValueError` for an unknown name (the message suggests the nearest one), a joint
        without a length or an angle, and a missing or invalid component.
        """
        sensor = type(self).__name__
        system = jointed_system(model, sensor)
        joint = system.joints[system.joint_index(self.joint)]
        subject = f"the {type(joint).__name__} {self.joint!r}"
        if joint.num_translations == 0 and not joint.has_angle:
            raise ValueError(f"`{sensor}` measures a length or an angle; {subject} has none.")
        check_component(self.component, num_coordinates(joint), sensor, subject)
        return joint, self.component or 0

    def check(self, model: AbstractFormulation) -> None:
        self.coordinate(model)

    def unit_in(self, model: AbstractFormulation) -> str:
        joint, k = self.coordinate(model)
        angle_unit, length_unit = self.unit.split(" or ")
        return length_unit if k < joint.num_translations else angle_unit


def jointed_system(model: AbstractFormulation, sensor: str) -> System:
    """Return the system of a model; `ValueError` for a model without joints."""
    system = model.system
    if not has_joints(system):
        raise ValueError(f"`{sensor}` measures a joint; this model has no joints.")
    return system


def num_coordinates(joint: AbstractJoint) -> int:
    """Return the number of coordinates of a joint, prescribed ones included."""
    if type(joint) not in _COUNTS:
        pose = jax.eval_shape(lambda: RelativePose(jnp.zeros(3), jnp.eye(3), jnp.zeros(())))
        _COUNTS[type(joint)] = jax.eval_shape(joint.coordinates, pose).shape[0]
    return _COUNTS[type(joint)]


# Numbers of coordinates, found by tracing, by class.
_COUNTS: weakref.WeakKeyDictionary[type[AbstractJoint], int] = weakref.WeakKeyDictionary()


def joint_motion(
    model: AbstractFormulation, t: Scalar, y: Unknowns, name: str
) -> tuple[RelativePose, Float[Array, "6"]]:
    """Return relative pose and twist of a joint, in components of its frame."""
    model = model.prepare()
    prepared, (_, placements, twists) = model.prepared_system, model.motion(t, y)
    relative = joint_twists(prepared, placements, twists)
    index = prepared.system.joint_index(name)
    group = next(g for g, group in enumerate(prepared.groups) if index in group.indices)
    k = prepared.groups[group].indices.index(index)
    return jax.tree.map(lambda leaf: leaf[k], (placements[group].relative, relative[group]))
