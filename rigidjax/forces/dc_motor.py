"""Direct-current motor with the current of its winding."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar
from ..checks import ArrayInput, check, positive_leaf, scalar_leaf
from ..joints.base import AbstractJoint
from .actuator import AbstractDrive, Command, limit_leaf, limit_magnitude


class DCMotor(AbstractDrive):
    r"""A direct-current motor behind a gear, with the current $i$ of its winding as a state.

    $$L\,\frac{di}{dt} = u - R\,i - k_e N \dot q, \qquad Q = N k_t\, i$$

    The inertia of the rotor $J$ belongs to the joint, `armature` $= N^2 J$, its friction to
    `damping`. Two limits model the drive, each with a kink:

    - `speed_limit` $\omega$: the voltage stays within $\pm k_e N \omega$. This is the rate of the
      joint at which the motor runs without load; loads can drive it faster, and are then braked.
    - `current_limit` $I$: the drive keeps $u - k_e N \dot q$ within $\pm R I$, so that the current
      never exceeds $I$, unless it starts beyond.

    **Arguments:**

    - `joint`: a joint of the system, or its name.
    - `command`, $u$, the voltage, V: a scalar, a function of time, an `rj.Signal` or an `rj.Input`.
    - `resistance`, $R$, ohm; `inductance`, $L$, H; `torque_constant`, $k_t$, N m/A.
    - `gear`, $N$, revolutions of the rotor for one of the joint (rad/m on a displacement);
      negative if they turn in opposite directions.
    - `back_emf`, $k_e$, V s/rad; `None` stands for $k_t$, to which it is equal in a motor whose
      only losses are those of the resistance.
    - `current_limit`, A; `speed_limit`, of the joint, rad/s or m/s; `None` for none.
    - `initial`: the current at the start of a run, A.
    - `component`: index of the coordinate if the joint has several, from 0, lengths before angles.

    **State:** `current`, A.
    **Errors:** `ValueError` for a resistance, inductance, constant or limit that is not positive,
    a gear of zero, a wrong shape or component; when the `System` is built, for a joint without a
    free length or angle.
    """

    resistance: Scalar
    inductance: Scalar
    torque_constant: Scalar
    gear: Scalar
    back_emf: Scalar | None
    current_limit: Scalar | None
    speed_limit: Scalar | None
    initial: Float[Array, "1"]

    num_states: ClassVar[int] = 1
    state_names: ClassVar[tuple[str, ...]] = ("current",)

    def __init__(
        self,
        joint: str | AbstractJoint,
        command: Command,
        resistance: ArrayLike,
        inductance: ArrayLike,
        torque_constant: ArrayLike,
        gear: ArrayLike = 1.0,
        back_emf: ArrayLike | None = None,
        current_limit: ArrayLike | None = None,
        speed_limit: ArrayLike | None = None,
        initial: ArrayInput = 0.0,
        component: int | None = None,
    ):
        name = type(self).__name__
        self.set_common(joint, command, initial, component)
        self.resistance = positive_leaf(resistance, f"{name}(resistance=...)")
        self.inductance = positive_leaf(inductance, f"{name}(inductance=...)")
        self.torque_constant = positive_leaf(torque_constant, f"{name}(torque_constant=...)")
        self.gear = check(
            scalar_leaf(gear, f"{name}(gear=...)"),
            lambda x: x != 0,
            f"`{name}(gear=...)` must not be zero.",
        )
        self.back_emf = limit_leaf(back_emf, f"{name}(back_emf=...)")
        self.current_limit = limit_leaf(current_limit, f"{name}(current_limit=...)")
        self.speed_limit = limit_leaf(speed_limit, f"{name}(speed_limit=...)")

    def rates(
        self, t: Scalar, x: Float[Array, "1"], u: Scalar, coordinate: Scalar, rate: Scalar
    ) -> Float[Array, "1"]:
        constant = self.torque_constant if self.back_emf is None else self.back_emf
        slope = constant * self.gear
        if self.speed_limit is not None:
            u = limit_magnitude(u, jnp.abs(slope) * self.speed_limit)
        voltage = u - slope * rate
        if self.current_limit is not None:
            voltage = limit_magnitude(voltage, self.resistance * self.current_limit)
        return (voltage - self.resistance * x) / self.inductance

    def force(self, t: Scalar, x: Float[Array, "1"], u: Scalar) -> Scalar:
        return self.gear * self.torque_constant * x[0]
