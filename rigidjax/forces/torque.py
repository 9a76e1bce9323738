"""A pure moment on one body."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import equinox as eqx

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput
from ..rotations.matrix import to_body
from .base import AbstractForce, Bodies, Kinematics, Loads, evaluate_vector_law, vector_law


class Torque(AbstractForce):
    r"""A moment on one body, constant or a law `moment(t, R, Omega)`.

    **Arguments:**

    - `body`: name of the body, or of a `Frame` on it, whose rotation, angular velocity and axes
      then take the place of those of the body.
    - `moment`: (3,) N m, or a function `moment(t, R, Omega) -> (3,)`; an Equinox module keeps
      its parameters as leaves.
    - `frame`: axes of the components, `"body"` or `"space"`.

    **Errors:** `ValueError` for a wrong shape, also of the function's result, or a wrong `frame`.
    """

    body: str = eqx.field(static=True)
    moment: Any
    frame: Literal["body", "space"] = eqx.field(static=True)

    depends_on_translation: ClassVar[bool] = False

    def __init__(
        self,
        body: str,
        moment: ArrayInput | Callable[..., Vector3],
        frame: Literal["body", "space"] = "body",
    ):
        if frame not in ("body", "space"):
            raise ValueError(f'`Torque(frame=...)` must be "body" or "space"; got {frame!r}.')
        self.body = body
        self.moment = vector_law(moment, "Torque(moment=...)", (), (3, 3), (3,))
        self.frame = frame

    def body_names(self) -> tuple[str, ...]:
        return (self.body,)

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        R, omega = kinematics.rotations[0], kinematics.angular_velocities[0]
        value = evaluate_vector_law(self.moment, "Torque(moment=...)", t, R, omega)
        moment = value if self.frame == "body" else to_body(R, value)
        return Loads(moments=moment[None])
