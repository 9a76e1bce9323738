"""Spring and damper on a sum of joint coordinates."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector
from ..checks import ArrayInput, as_leaf, check_all, finite_rule, float_array, scalar_leaf
from ..joints.base import AbstractJoint
from ..joints.constraint import check_single_coordinate
from ..joints.replacing import replace_fields
from .base import AbstractForce, Bodies, Kinematics, Loads
from .joint_force import coordinate_loads


class FixedTendon(AbstractForce):
    r"""A tendon over pulleys of fixed radii on joints, with a spring and a damper.

    Its length is a linear function of joint coordinates, $L = \sum_i r_i q_i$. The tension is
    $T = -k\,(L - L_0) - c\,\dot L$, and $r_i T$ acts on each joint; $L_0$ is the value in the range
    `length` that is nearest to $L$, so that the spring is slack there. Angles are unwrapped.

    **Arguments:**

    - `coefficients`, $r_i$ by the name of the joint, a `Revolute`, `Prismatic` or `Screw`: m per
      rad of an angle, no unit for a displacement. If $L$ is an angle, $r_i$ of an angle has no
      unit, and below rad stands for m, and N m for N.
    - `stiffness`, $k$, N/m; `damping`, $c$, N s/m.
    - `length`, the unloaded length, m, or its range `(low, high)`; 0 is the reference
      configuration.

    **Errors:** `ValueError` for no joints, a wrong shape, or a range whose ends are exchanged; when
    the `System` is built, for joints without a free coordinate or with several.
    **Source:** MuJoCo, XML reference, `tendon/fixed`.
    """

    joints: tuple[str, ...] = eqx.field(static=True)
    coefficients: Vector
    stiffness: Scalar
    damping: Scalar
    length: Float[Array, "2"]

    def __init__(
        self,
        coefficients: Mapping[str, ArrayInput],
        stiffness: ArrayInput,
        damping: ArrayInput = 0.0,
        length: ArrayInput = 0.0,
    ):
        if not isinstance(coefficients, Mapping) or not coefficients:
            raise ValueError(
                "`FixedTendon(coefficients=...)` takes a dict of numbers by joint; got "
                f"{coefficients!r}."
            )
        self.joints = tuple(coefficients)
        values = [scalar_leaf(r, f"FixedTendon({name!r})") for name, r in coefficients.items()]
        self.coefficients = jnp.stack([jnp.asarray(value) for value in values])
        self.stiffness = scalar_leaf(stiffness, "FixedTendon(stiffness=...)")
        self.damping = scalar_leaf(damping, "FixedTendon(damping=...)")
        name = "FixedTendon(length=...)"
        rule = (lambda x: (x[0] <= x[-1]).all(), f"`{name}` must be (low, high), low <= high.")
        array = float_array(length, name, (), (2,)).reshape(-1)
        checked = check_all(array, [finite_rule(name), rule])
        self.length = as_leaf(jnp.broadcast_to(checked, (2,)))

    def body_names(self) -> tuple[str, ...]:
        return ()

    def joint_names(self) -> tuple[str, ...]:
        return self.joints

    @property
    def needs_different_bodies(self) -> bool:
        return False

    def check_joint(self, joint: AbstractJoint) -> None:
        check_single_coordinate(joint, "FixedTendon")
        if joint.is_driven:
            raise ValueError(
                f"`FixedTendon`: the motion of the joint {joint.name!r} is prescribed."
            )

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        rates = jnp.stack([joint.rates[0] for joint in kinematics.joints])
        rate = jnp.sum(self.coefficients * rates)
        tension = -self.stiffness * self._stretch(kinematics) - self.damping * rate
        loads = []
        for k, joint in enumerate(kinematics.joints):
            rotations = kinematics.rotations[2 * k : 2 * k + 2]
            ends = replace_fields(kinematics, rotations=rotations)
            loads.append(coordinate_loads(self.coefficients[k] * tension, joint, 0, ends))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *loads)

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        return 0.5 * self.stiffness * self._stretch(kinematics) ** 2

    def _stretch(self, kinematics: Kinematics) -> Scalar:
        coordinates = jnp.stack([joint.coordinates[0] for joint in kinematics.joints])
        length = jnp.sum(self.coefficients * coordinates)
        return length - jnp.clip(length, self.length[0], self.length[1])
