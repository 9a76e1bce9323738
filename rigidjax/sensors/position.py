"""Position of a point of a body."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from ..checks import ArrayInput, vector_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations import so3
from .base import AbstractReading, mounted, mounted_name


class Position(AbstractReading):
    r"""The position $x + R\,u$ of a point of a body, (3,) m, space components.

    **Arguments:**

    - `body`, its name or that of a `Frame`; `None` if there is only one.
    - `point`, $u$, from the centre of mass (of a `FixedPointBody`: from the fixed point; of a
      frame: from its origin), (3,) m, components of the body (of the frame). It can be fitted.
    - `name`, in place of "position of ...", where a body has several.

    **Errors:** `ValueError` for a wrong shape or an unknown body.
    """

    body: str | None = eqx.field(static=True)
    point: Float[Array, "3"]
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")
    unit: ClassVar[str] = "m"
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    def __init__(
        self,
        body: str | None = None,
        point: ArrayInput = (0.0, 0.0, 0.0),
        name: str | None = None,
    ):
        self.body = body
        self.point = vector_leaf(point, "Position(point=...)")
        self.label = name

    @property
    def name(self) -> str:
        return mounted_name("position", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        mounted(model, self.body, "Position")

    def predict(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> Float[Array, "3"]:
        row, frame = mounted(model, self.body, "Position")
        state = model.decode(t, y)
        point = self.point if frame is None else frame.on_body(self.point)
        point = point.astype(state.position.dtype)
        return state.position[row] + so3.rotate(state.orientation[row], point)
