"""Rotor of a drone: thrust and drag torque of a speed that lags its command."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, check, finite_leaf, positive_leaf, vector_leaf
from ..joints.axes import unit_vector
from ..rotations.matrix import to_body
from .actuator import Command, command_law, command_value, initial_leaf
from .base import AbstractStatefulForce, Bodies, Kinematics, Loads

# Coefficient of w |w|, or coefficients of w and of w |w|.
Map = Scalar | Float[Array, "2"]


class Rotor(AbstractStatefulForce):
    r"""A rotor on a body, whose speed $w$ follows its command $u$ with a first-order lag.

    $$\tau\,\dot w = u - w,\qquad T = k_1 w + k_2 w |w|,\qquad M = c_1 w + c_2 w |w|$$

    The thrust $T$ acts along the axis, the moment $-M$ about it for a rotor that spins
    counter-clockwise seen from the tip of the axis, $+M$ for one that spins clockwise. The inertia
    of the rotor is neglected: where its angular momentum matters, model it as a body on a hinge.

    **Arguments:**

    - `body`: name of the body, or of a `Frame` on it, whose origin and axes are then used.
    - `command`, $u$: a scalar, a function of time, an `rj.Signal` or an `rj.Input`; rad/s, or any
      other measure of the speed, such as a duty cycle, to which the coefficients then refer.
    - `thrust`: $k_2$, N s^2/rad^2, or $(k_1, k_2)$.
    - `torque`: $c_2$, N m s^2/rad^2, or $(c_1, c_2)$.
    - `time_constant`, $\tau$, s.
    - `spin`: `"counter-clockwise"` or `"clockwise"`.
    - `axis`: (3,), of any length, in the axes of the body or frame.
    - `at`: point where the thrust acts, (3,) m, space components in the reference configuration;
      `None` for the centre of mass, or the origin of the frame.
    - `initial`: $w$ at the start of a run.

    **State:** `speed`, $w$; its name has that of the body or frame as a prefix, as in
    `front.speed`.
    **Errors:** `ValueError` for a wrong shape, a time constant that is not positive, an axis of
    zero length, or another `spin`.
    **Source:** Mahony, Kumar, Corke (2012), IEEE Robotics & Automation Magazine 19 (3), for the
    quadratic map.
    """

    body: str = eqx.field(static=True)
    command: Command
    thrust: Map
    torque: Map
    time_constant: Scalar
    spin: Literal["counter-clockwise", "clockwise"] = eqx.field(static=True)
    axis: Vector3
    at: Vector3 | None
    initial: Float[Array, "1"]

    num_states: ClassVar[int] = 1

    def __init__(
        self,
        body: str,
        command: Command,
        thrust: ArrayInput,
        torque: ArrayInput = 0.0,
        *,
        time_constant: ArrayLike,
        spin: Literal["counter-clockwise", "clockwise"] = "counter-clockwise",
        axis: ArrayInput = (0.0, 0.0, 1.0),
        at: ArrayInput | None = None,
        initial: ArrayInput = 0.0,
    ):
        if spin not in ("counter-clockwise", "clockwise"):
            raise ValueError(
                f'`Rotor(spin=...)` must be "counter-clockwise" or "clockwise"; got {spin!r}.'
            )
        self.body, self.spin = body, spin
        self.command = command_law(command, "Rotor(command=...)")
        self.thrust = finite_leaf(thrust, "Rotor(thrust=...)", (), (2,))
        self.torque = finite_leaf(torque, "Rotor(torque=...)", (), (2,))
        self.time_constant = positive_leaf(time_constant, "Rotor(time_constant=...)")
        self.axis = check(
            vector_leaf(axis, "Rotor(axis=...)"),
            lambda x: (x != 0).any(),
            "`Rotor(axis=...)` must not be zero.",
        )
        self.at = None if at is None else vector_leaf(at, "Rotor(at=...)")
        self.initial = initial_leaf(initial, self.num_states, "Rotor(initial=...)")

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    @property
    def state_labels(self) -> tuple[str, ...]:
        return (f"{self.body}.speed",)

    def initial_states(self) -> Float[Array, "1"]:
        return self.initial

    def rates_in_view(self, t: Scalar, x: Float[Array, "1"], view: Any) -> Float[Array, "1"]:
        return (command_value(self.command, t, "Rotor(command=...)") - x) / self.time_constant

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        raise self.states_error()

    def loads_at_states(
        self, t: Scalar, x: Float[Array, "1"], bodies: Bodies, kinematics: Kinematics
    ) -> Loads:
        axis, arm = unit_vector(self.axis), None
        if self.at is not None:
            arm = to_body(bodies.rotations[0], self.at - bodies.positions[0])[None]
        sign = 1.0 if self.spin == "clockwise" else -1.0
        force = _evaluate_map(self.thrust, x[0]) * axis
        moment = sign * _evaluate_map(self.torque, x[0]) * axis
        return Loads(force[None], arm, moment[None], axes="body")


def _evaluate_map(coefficients: Map, speed: Scalar) -> Scalar:
    square = speed * jnp.abs(speed)
    if coefficients.ndim == 0:
        return coefficients * square
    return coefficients[0] * speed + coefficients[1] * square
