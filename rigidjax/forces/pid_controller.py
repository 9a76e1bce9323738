"""Controllers with proportional, integral and derivative action as actuators of a joint."""

from typing import Any, ClassVar, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar
from ..checks import ArrayInput, check, positive_leaf, scalar_leaf
from ..joints.base import AbstractJoint
from .actuator import AbstractDrive, Command, limit_leaf, limit_magnitude

Variable = Literal["coordinate", "rate"]


class PIController(AbstractDrive):
    r"""Proportional and integral control of the rate or the coordinate of a joint.

    With the error $e = u - y$ of the controlled variable $y$, the integral action $z$ and

    $$v = k_p\,e + z, \qquad Q = \operatorname{sat}(v), \qquad \dot z = k_i\,e + (Q - v) / T_t$$

    sat limits the magnitude to `limit`, with a kink. Beyond it the last term drives the integral
    action back with the tracking time $T_t$, so that it does not wind up.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `command`, $u$, the set point, in the unit of $y$: a scalar, a function of time, an
      `rj.Signal` or an `rj.Input`.
    - `proportional`, $k_p$: for a rate N m s/rad, for a coordinate N m/rad; N and m on a
      displacement.
    - `integral`, $k_i$: for a rate N m/rad, for a coordinate N m/(rad s), likewise.
    - `variable`: $y$, `"rate"` or `"coordinate"`.
    - `limit`: largest magnitude of $Q$, N m or N; `None` for none.
    - `tracking_time`, $T_t$, s; `None` for $k_p / k_i$.
    - `initial`: $z$ at the start of a run, N m or N.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **State:** `integral_action`, $z$, N m or N.
    **Errors:** `ValueError` for another variable, a limit or tracking time that is not positive, a
    limit without a tracking time if $k_p$ is not positive or $k_i$ is negative, a tracking time
    without a limit, a wrong shape or component; when the `System` is built, for a joint without a
    free length or angle.
    **Source:** Astrom and Murray, Feedback Systems, 2nd ed., 2021, sec. 11.4.
    """

    proportional: Scalar
    integral: Scalar
    variable: Variable = eqx.field(static=True)
    limit: Scalar | None
    tracking_time: Scalar | None
    initial: Float[Array, "1"]

    num_states: ClassVar[int] = 1
    state_names: ClassVar[tuple[str, ...]] = ("integral_action",)

    def __init__(
        self,
        joint: str | AbstractJoint,
        command: Command,
        proportional: ArrayLike,
        integral: ArrayLike,
        variable: Variable = "rate",
        limit: ArrayLike | None = None,
        tracking_time: ArrayLike | None = None,
        initial: ArrayInput = 0.0,
        component: int | None = None,
    ):
        name = type(self).__name__
        self.set_common(joint, command, initial, component)
        self.proportional = scalar_leaf(proportional, f"{name}(proportional=...)")
        self.integral = scalar_leaf(integral, f"{name}(integral=...)")
        self.variable = _checked_variable(variable, name)
        self.limit = limit_leaf(limit, f"{name}(limit=...)")
        _set_tracking_time(self, tracking_time)

    def rates(
        self, t: Scalar, x: Float[Array, "1"], u: Scalar, coordinate: Scalar, rate: Scalar
    ) -> Float[Array, "1"]:
        error = u - (rate if self.variable == "rate" else coordinate)
        return _rate_of_integral_action(self, error, self.proportional * error + x[0])[None]

    def force(
        self, t: Scalar, x: Float[Array, "1"], u: Scalar, coordinate: Scalar, rate: Scalar
    ) -> Scalar:
        error = u - (rate if self.variable == "rate" else coordinate)
        return limit_magnitude(self.proportional * error + x[0], self.limit)


class PIDController(AbstractDrive):
    r"""Proportional, integral and derivative control of the coordinate or the rate of a joint.

    With the error $e = u - y$ of the controlled variable $y$, the integral action $z$, the
    filtered derivative $d$ of $y$ and

    $$v = k_p\,e + z - k_d\,d, \qquad Q = \operatorname{sat}(v), \qquad
    \dot z = k_i\,e + (Q - v) / T_t, \qquad d = \frac{s}{1 + T_f s}\,y$$

    sat limits the magnitude to `limit`, with a kink. Beyond it the last term of the integral action
    drives it back with the tracking time $T_t$, so that it does not wind up. The derivative acts on
    $y$ alone: a jump of the set point causes no jump of $d$. The filter has the state $w$, with
    $T_f\,\dot w = \dot q - w$; $d = w$ for a coordinate, and $d = \dot w$ for a rate. By default
    it starts at rest, $w = 0$.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `command`, $u$, the set point, in the unit of $y$: a scalar, a function of time, an
      `rj.Signal` or an `rj.Input`.
    - `proportional`, $k_p$: for a coordinate N m/rad; N and m on a displacement.
    - `integral`, $k_i$: for a coordinate N m/(rad s), likewise.
    - `derivative`, $k_d$: for a coordinate N m s/rad, likewise.
    - `filter_time`, $T_f$, s.
    - `variable`: $y$, `"coordinate"` or `"rate"`.
    - `limit`: largest magnitude of $Q$, N m or N; `None` for none.
    - `tracking_time`, $T_t$, s; `None` for $k_p / k_i$.
    - `initial`: $z$ and $w$ at the start of a run, (2,).
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **States:** `integral_action`, $z$, N m or N, and `filtered_rate`, $w$.
    **Errors:** as of `rj.PIController`; also for a filter time that is not positive.
    **Source:** Astrom and Murray, Feedback Systems, 2nd ed., 2021, sec. 11.4 and 11.5.
    """

    proportional: Scalar
    integral: Scalar
    derivative: Scalar
    filter_time: Scalar
    variable: Variable = eqx.field(static=True)
    limit: Scalar | None
    tracking_time: Scalar | None
    initial: Float[Array, "2"]

    num_states: ClassVar[int] = 2
    state_names: ClassVar[tuple[str, ...]] = ("integral_action", "filtered_rate")

    def __init__(
        self,
        joint: str | AbstractJoint,
        command: Command,
        proportional: ArrayLike,
        integral: ArrayLike,
        derivative: ArrayLike,
        filter_time: ArrayLike,
        variable: Variable = "coordinate",
        limit: ArrayLike | None = None,
        tracking_time: ArrayLike | None = None,
        initial: ArrayInput = 0.0,
        component: int | None = None,
    ):
        name = type(self).__name__
        self.set_common(joint, command, initial, component)
        self.proportional = scalar_leaf(proportional, f"{name}(proportional=...)")
        self.integral = scalar_leaf(integral, f"{name}(integral=...)")
        self.derivative = scalar_leaf(derivative, f"{name}(derivative=...)")
        self.filter_time = positive_leaf(filter_time, f"{name}(filter_time=...)")
        self.variable = _checked_variable(variable, name)
        self.limit = limit_leaf(limit, f"{name}(limit=...)")
        _set_tracking_time(self, tracking_time)

    def rates(
        self, t: Scalar, x: Float[Array, "2"], u: Scalar, coordinate: Scalar, rate: Scalar
    ) -> Float[Array, "2"]:
        error, unlimited = self._evaluate_law(x, u, coordinate, rate)
        integral = _rate_of_integral_action(self, error, unlimited)
        return jnp.stack([integral, (rate - x[1]) / self.filter_time])

    def force(
        self, t: Scalar, x: Float[Array, "2"], u: Scalar, coordinate: Scalar, rate: Scalar
    ) -> Scalar:
        return limit_magnitude(self._evaluate_law(x, u, coordinate, rate)[1], self.limit)

    def _evaluate_law(
        self, x: Array, u: Array, coordinate: Array, rate: Array
    ) -> tuple[Array, Array]:
        """Return the error and the force without a limit."""
        if self.variable == "coordinate":
            error, slope = u - coordinate, x[1]
        else:
            error, slope = u - rate, (rate - x[1]) / self.filter_time
        return error, self.proportional * error + x[0] - self.derivative * slope


def _rate_of_integral_action(
    controller: PIController | PIDController, error: Array, unlimited: Array
) -> Scalar:
    rate = controller.integral * error
    if controller.limit is None:
        return rate
    excess = limit_magnitude(unlimited, controller.limit) - unlimited
    if controller.tracking_time is None:
        return rate + controller.integral / controller.proportional * excess
    return rate + excess / controller.tracking_time


def _checked_variable(variable: Variable, name: str) -> Variable:
    if variable not in get_args(Variable):
        raise ValueError(
            f'`{name}(variable=...)` must be "coordinate" or "rate"; got {variable!r}.'
        )
    return variable


def _set_tracking_time(controller: Any, tracking_time: ArrayLike | None) -> None:
    """Check and set the tracking time of a controller that has its gains and its limit."""
    argument = f"{type(controller).__name__}(tracking_time=...)"
    controller.tracking_time = None
    if tracking_time is not None:
        if controller.limit is None:
            raise ValueError(f"`{argument}` has no effect without `limit`: give both, or neither.")
        controller.tracking_time = positive_leaf(tracking_time, argument)
    elif controller.limit is not None:
        message = (
            f"`{argument}` is needed, because it is `proportional / integral` by default, and "
            "`{}` is {}."
        )
        no_gain = message.format("proportional", "not positive")
        controller.proportional = check(controller.proportional, lambda x: x > 0, no_gain)
        negative = message.format("integral", "negative")
        controller.integral = check(controller.integral, lambda x: x >= 0, negative)
