"""Motor whose force follows its command with a lag."""

from typing import ClassVar

from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar
from ..checks import ArrayInput, positive_leaf
from ..joints.base import AbstractJoint
from .actuator import AbstractDrive, Command, limit_leaf, limit_magnitude


class LaggedMotor(AbstractDrive):
    r"""A motor whose force or moment $Q$ follows its command $u$ with a first-order lag.

    $$\tau\,\dot Q = \operatorname{sat}(u) - Q$$

    where sat limits the magnitude to `limit`, with a kink. $Q$ never exceeds it, unless it starts
    beyond.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `command`, $u$, N m on an angle, N on a displacement: a scalar, a function of time, an
      `rj.Signal` or an `rj.Input`.
    - `time_constant`, $\tau$, s.
    - `limit`: largest magnitude of $u$, N m or N; `None` for none.
    - `initial`: $Q$ at the start of a run, N m or N.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **State:** `torque`, $Q$.
    **Errors:** `ValueError` for a time constant or limit that is not positive, a wrong shape or
    component; when the `System` is built, for a joint without a free length or angle.
    """

    time_constant: Scalar
    limit: Scalar | None
    initial: Float[Array, "1"]

    num_states: ClassVar[int] = 1
    state_names: ClassVar[tuple[str, ...]] = ("torque",)

    def __init__(
        self,
        joint: str | AbstractJoint,
        command: Command,
        time_constant: ArrayLike,
        limit: ArrayLike | None = None,
        initial: ArrayInput = 0.0,
        component: int | None = None,
    ):
        name = type(self).__name__
        self.set_common(joint, command, initial, component)
        self.time_constant = positive_leaf(time_constant, f"{name}(time_constant=...)")
        self.limit = limit_leaf(limit, f"{name}(limit=...)")

    def rates(self, t: Scalar, x: Float[Array, "1"], u: Scalar) -> Float[Array, "1"]:
        return (limit_magnitude(u, self.limit) - x) / self.time_constant

    def force(self, t: Scalar, x: Float[Array, "1"], u: Scalar) -> Scalar:
        return x[0]
