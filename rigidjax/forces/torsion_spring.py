"""Spring and damper on the coordinate of a joint."""

import equinox as eqx
from jaxtyping import ArrayLike

from ..annotations import Scalar
from ..checks import scalar_leaf
from ..joints.base import AbstractJoint
from .base import Bodies, Kinematics
from .joint_force import AbstractJointForce, checked_component, joint_name


class TorsionSpring(AbstractJointForce):
    r"""A spring and a viscous damper on a joint, $Q = -k\,(q - q_0) - c\,\dot q$.

    On an angle it is a torsion spring, on the displacement of a slider a linear spring. Angles are
    unwrapped beyond pi: five revolutions wind the spring up by 10 pi. Only the second angle of a
    `Universal` stays in $(-\pi, \pi]$.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `stiffness`, $k$, N m/rad or N/m; `damping`, $c$, N m s/rad or N s/m.
    - `angle`, $q_0$, unloaded coordinate, rad or m; 0 is the reference configuration.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **Errors:** `ValueError` for a wrong shape or component; when the `System` is built, for a joint
    without a free length or angle, or a missing component.
    """

    joint: str = eqx.field(static=True)
    stiffness: Scalar
    damping: Scalar
    angle: Scalar
    component: int | None = eqx.field(static=True)

    def __init__(
        self,
        joint: str | AbstractJoint,
        stiffness: ArrayLike,
        damping: ArrayLike = 0.0,
        angle: ArrayLike = 0.0,
        component: int | None = None,
    ):
        self.joint = joint_name(joint, "TorsionSpring")
        self.stiffness = scalar_leaf(stiffness, "TorsionSpring(stiffness=...)")
        self.damping = scalar_leaf(damping, "TorsionSpring(damping=...)")
        self.angle = scalar_leaf(angle, "TorsionSpring(angle=...)")
        self.component = checked_component(component, "TorsionSpring")

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        return -self.stiffness * (coordinate - self.angle) - self.damping * rate

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        coordinate = kinematics.joints[0].coordinates[self.component or 0]
        return 0.5 * self.stiffness * (coordinate - self.angle) ** 2
