"""What the sensors of joints have in common."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, scalar_leaf
from ..forces.joint_force import checked_component, joint_name
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
    bias: Float[Array, ""]
    scale: Float[Array, ""]
    label: str | None = eqx.field(static=True)
    quantity: eqx.AbstractClassVar[str]
    """What is measured, in the name of the sensor."""
    value_shape: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self,
        joint: str | AbstractJoint,
        component: int | None = None,
        bias: ArrayInput = 0.0,
        scale: ArrayInput = 1.0,
        name: str | None = None,
    ):
        self._mount(joint, component, bias, scale, name)

    def _mount(self, joint, component, bias, scale, name) -> None:
        """Set the attributes that all sensors on a coordinate have."""
        kind = type(self).__name__
        self.joint = joint_name(joint, kind)
        self.component = checked_component(component, kind)
        self.bias = scalar_leaf(bias, f"{kind}(bias=...)")
        self.scale = scale_leaf(scale, f"{kind}(scale=...)", ())
        self.label = name

    def reading(self, ideal: Float[Array, ""]) -> Float[Array, ""]:
        r"""Return the reading $s\,v + b$ of an ideal value $v$."""
        return self.scale.astype(ideal.dtype) * ideal + self.bias.astype(ideal.dtype)

    def ideal_value(self, reading: ArrayInput) -> np.ndarray:
        """Return the value of a reading (known, not traced), the inverse of `reading`."""
        return (np.asarray(reading) - np.asarray(self.bias)) / np.asarray(self.scale)

    @property
    def name(self) -> str:
        if self.label is not None:
            return self.label
        of = f"{self.quantity} of {self.joint}"
        return of if self.component is None else f"{of} [{self.component}]"

    def coordinate(self, model: AbstractFormulation) -> tuple[AbstractJoint, int]:
        """The joint and the number of its coordinate.

        **Errors:** `ValueError` for an unknown name (with the nearest one), a joint without length
        or angle, a component that is missing or that there is not.
        """
        sensor = type(self).__name__
        system = jointed_system(model, sensor)
        joint = system.joints[system.joint_index(self.joint)]
        of = f"the {type(joint).__name__} {self.joint!r}"
        if joint.num_translations == 0 and not joint.has_angle:
            raise ValueError(f"`{sensor}` measures a length or an angle; {of} has none.")
        count = num_coordinates(joint)
        if self.component is None and count > 1:
            raise ValueError(
                f"`{sensor}(component=...)` is needed: {of} has {count} coordinates, numbered from "
                "0, lengths before angles."
            )
        if self.component is not None and self.component >= count:
            raise ValueError(
                f"`{sensor}(component=...)` must be below {count}, the number of coordinates of "
                f"{of}; got {self.component}."
            )
        return joint, self.component or 0

    def check(self, model: AbstractFormulation) -> None:
        self.coordinate(model)

    def unit_in(self, model: AbstractFormulation) -> str:
        joint, k = self.coordinate(model)
        of_angle, of_length = self.unit.split(" or ")
        return of_length if k < joint.num_translations else of_angle


def jointed_system(model: AbstractFormulation, sensor: str) -> System:
    """The system of a model with joints; `ValueError` for one without."""
    system = model.system
    if not has_joints(system):
        raise ValueError(f"`{sensor}` measures a joint; this model has no joints.")
    return system


def num_coordinates(joint: AbstractJoint) -> int:
    """Number of coordinates of a joint, prescribed ones included."""
    at = jax.eval_shape(lambda: RelativePose(jnp.zeros(3), jnp.eye(3), jnp.zeros(())))
    return jax.eval_shape(joint.coordinates, at).shape[0]


def joint_motion(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns, name: str
) -> tuple[RelativePose, Float[Array, "6"]]:
    """Relative pose and twist of a joint, in its frame."""
    model = model.prepare()
    prepared, (_, places, twists) = model.prepared, model.motion(t, y)
    relative = joint_twists(prepared, places, twists)
    index = prepared.system.joint_index(name)
    group = next(g for g, group in enumerate(prepared.groups) if index in group.indices)
    k = prepared.groups[group].indices.index(index)
    return jax.tree.map(lambda leaf: leaf[k], (places[group].relative, relative[group]))
