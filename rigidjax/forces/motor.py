"""Motor on the coordinate of a joint."""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import ArrayLike

from ..annotations import Scalar
from ..checks import scalar_leaf
from ..joints.base import AbstractJoint
from ..signals.laws import as_law, check_shapes, law_result
from ..signals.switches import evaluate_law
from .joint_force import AbstractJointForce, checked_component, joint_name


class Motor(AbstractJointForce):
    r"""A moment (on an angle) or a force (on a displacement) between the bodies of a joint.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `torque`: on the child, N m or N; a scalar, a function `torque(t)`, or a law
      `torque(t, coordinate, rate)`, distinguished by the number of positional parameters without
      defaults. An Equinox module keeps its parameters as leaves.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **Errors:** `ValueError` for a wrong shape, also of the function's result, a function with
    another number of parameters, or a wrong component; when the `System` is built, for a joint
    without a free length or angle, or a missing component.
    """

    joint: str = eqx.field(static=True)
    torque: Any
    component: int | None = eqx.field(static=True)
    num_arguments: int = eqx.field(static=True)

    def __init__(
        self,
        joint: str | AbstractJoint,
        torque: ArrayLike | Callable[..., Scalar],
        component: int | None = None,
    ):
        self.joint = joint_name(joint, "Motor")
        if callable(torque):
            self.num_arguments = _num_arguments(torque)
            self.torque = as_law(torque, "Motor(torque=...)")
            check_shapes(self.generalised_force, (), (), ())
        else:
            self.num_arguments = 0
            self.torque = scalar_leaf(torque, "Motor(torque=...)")
        self.component = checked_component(component, "Motor")

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        if self.num_arguments == 0:
            return self.torque
        arguments = (t, coordinate, rate)[: self.num_arguments]
        value = evaluate_law(self.torque, *arguments)
        return law_result(value, (), "The function `Motor(torque=...)` must return a scalar")


def _num_arguments(function: Callable[..., Any]) -> int:
    """Return 1 for a function of time, 3 for a law; `ValueError` for anything else."""
    try:
        parameters = inspect.signature(function).parameters.values()
        count = sum(
            p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
            for p in parameters
        )
    except ValueError:  # Some functions written in C have no signature.
        count = None
    if count not in (1, 3):
        raise ValueError(
            "`Motor(torque=...)` must be a function of (t) or of (t, coordinate, rate); got one "
            f"with {'unknown' if count is None else count} positional parameters without defaults."
        )
    return count
