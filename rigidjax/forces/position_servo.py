"""Position servo with a second-order reference and a limited force."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar
from ..checks import ArrayInput, nonnegative_leaf, positive_leaf
from ..joints.base import AbstractJoint
from .actuator import AbstractDrive, Command, limit_leaf, limit_magnitude


class PositionServo(AbstractDrive):
    r"""A servo drive that moves a joint to a commanded position.

    Its set point $s$ follows the command $u$ as a system of second order, and a spring and a damper
    of limited force hold the joint at the set point:

    $$\ddot s = \omega^2 (u - s) - 2 \zeta \omega\,\dot s, \qquad
    Q = \operatorname{sat}\bigl(k\,(s - q) + c\,(\dot s - \dot q)\bigr)$$

    sat limits the magnitude to `limit`, with a kink.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `command`, $u$, the position, rad or m: a scalar, a function of time, an `rj.Signal` or an
      `rj.Input`.
    - `stiffness`, $k$, N m/rad or N/m; `damping`, $c$, N m s/rad or N s/m.
    - `natural_frequency`, $\omega$, rad/s; `damping_ratio`, $\zeta$.
    - `limit`: largest magnitude of $Q$, N m or N; `None` for none.
    - `initial`: $s$ and $\dot s$ at the start of a run, (2,). A joint that does not start at 0
      needs its position here, `(q, 0)`, unless the servo is to move it.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **States:** `set_point`, $s$, and `set_point_rate`.
    **Errors:** `ValueError` for a negative stiffness, damping or damping ratio, a frequency or
    limit that is not positive, a wrong shape or component; when the `System` is built, for a joint
    without a free length or angle.
    """

    stiffness: Scalar
    damping: Scalar
    natural_frequency: Scalar
    damping_ratio: Scalar
    limit: Scalar | None
    initial: Float[Array, "2"]

    num_states: ClassVar[int] = 2
    state_names: ClassVar[tuple[str, ...]] = ("set_point", "set_point_rate")

    def __init__(
        self,
        joint: str | AbstractJoint,
        command: Command,
        stiffness: ArrayLike,
        damping: ArrayLike,
        natural_frequency: ArrayLike,
        damping_ratio: ArrayLike = 1.0,
        limit: ArrayLike | None = None,
        initial: ArrayInput = 0.0,
        component: int | None = None,
    ):
        name = type(self).__name__
        self.set_common(joint, command, initial, component)
        self.stiffness = nonnegative_leaf(stiffness, f"{name}(stiffness=...)")
        self.damping = nonnegative_leaf(damping, f"{name}(damping=...)")
        self.natural_frequency = positive_leaf(natural_frequency, f"{name}(natural_frequency=...)")
        self.damping_ratio = nonnegative_leaf(damping_ratio, f"{name}(damping_ratio=...)")
        self.limit = limit_leaf(limit, f"{name}(limit=...)")

    def rates(self, t: Scalar, x: Float[Array, "2"], u: Scalar) -> Float[Array, "2"]:
        frequency = self.natural_frequency
        pull = frequency**2 * (u - x[0]) - 2.0 * self.damping_ratio * frequency * x[1]
        return jnp.stack([x[1], pull])

    def force(
        self, t: Scalar, x: Float[Array, "2"], u: Scalar, coordinate: Scalar, rate: Scalar
    ) -> Scalar:
        force = self.stiffness * (x[0] - coordinate) + self.damping * (x[1] - rate)
        return limit_magnitude(force, self.limit)
