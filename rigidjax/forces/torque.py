"""A pure moment on one body."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..checks import ArrayInput
from .base import (
    AbstractForce,
    Kinematics,
    Wrench,
    body_index,
    evaluated,
    no_virials,
    one_body,
    to_body,
    vector_law,
)


class Torque(AbstractForce):
    r"""A moment on one body, constant or a law `moment(t, R, Omega)`.

    **Arguments:**

    - `body`: name of the body.
    - `moment`: (3,) N m, or a function `moment(t, R, Omega) -> (3,)`; an Equinox module keeps
      its parameters as leaves.
    - `frame`: axes of the components, `"body"` or `"space"`.

    **Raises:** `ValueError` for a wrong shape, also of what the function returns, or frame.
    """

    body: str = eqx.field(static=True)
    moment: Any
    frame: Literal["body", "space"] = eqx.field(static=True)

    def __init__(
        self,
        body: str,
        moment: ArrayInput | Callable[..., Float[Array, "3"]],
        frame: Literal["body", "space"] = "body",
    ):
        if frame not in ("body", "space"):
            raise ValueError(f'`Torque(frame=...)` must be "body" or "space"; got {frame!r}.')
        self.body = body
        self.moment = vector_law(moment, "Torque(moment=...)", (), (3, 3), (3,))
        self.frame = frame

    @property
    def is_linear(self) -> bool:
        return True

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def wrenches(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Wrench, ...]:
        index = body_index(bodies, self.body)
        R, omega = kinematics.rotations[index], kinematics.angular_velocities[index]
        value = evaluated(self.moment, "Torque(moment=...)", t, R, omega)
        moment = value if self.frame == "body" else to_body(R, value)
        return one_body(len(bodies), index, (None, moment))

    def virials(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Float[Array, "3 3"] | None, ...]:
        return no_virials(len(bodies))

    def potential_energy(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> Float[Array, ""]:
        return jnp.zeros((), kinematics.rotations[0].dtype)
