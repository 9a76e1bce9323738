"""Position of a point of a body."""

from typing import ClassVar

import equinox as eqx

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, vector_leaf
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..rotations import so3
from .base import AbstractReading, locate_mount, scale_leaf, sensor_name
from .calibration import ONE, ZERO, apply_calibration


class Position(AbstractReading):
    r"""The position of a point of a body, (3,) m, space components.

    It reads $s \circ \exp(\tilde m)^T (x + R\,u) + b$; by default it reads $x + R\,u$.

    **Arguments:**

    - `body`, name of the body or of a `Frame`; `None` if there is only one body.
    - `point`, $u$, from the centre of mass (on a `FixedPointBody` from the fixed point, on a frame
      from its origin), (3,) m, components of the body or the frame. It can be fitted.
    - `bias`, $b$, (3,) m; `scale`, $s$, (3,); `misalignment`, $m$, the rotation vector from space
      axes to those of the measuring system, (3,) rad. They can be fitted.
    - `name`, instead of "position of ...", if a body has several.

    **Errors:** `ValueError` for a wrong shape, a scale of zero, or an unknown body.
    """

    body: str | None = eqx.field(static=True)
    point: Vector3
    bias: Vector3
    scale: Vector3
    misalignment: Vector3
    label: str | None = eqx.field(static=True)
    channels: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")
    unit: ClassVar[str] = "m"
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    def __init__(
        self,
        body: str | None = None,
        point: ArrayInput = ZERO,
        name: str | None = None,
        bias: ArrayInput = ZERO,
        scale: ArrayInput = ONE,
        misalignment: ArrayInput = ZERO,
    ):
        self.body = body
        self.point = vector_leaf(point, "Position(point=...)")
        self.bias = vector_leaf(bias, "Position(bias=...)")
        self.scale = scale_leaf(scale, "Position(scale=...)")
        self.misalignment = vector_leaf(misalignment, "Position(misalignment=...)")
        self.label = name

    @property
    def name(self) -> str:
        return sensor_name("position", self.body, self.label)

    def check(self, model: AbstractFormulation) -> None:
        locate_mount(model, self.body, "Position")

    def predict(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Vector3:
        row, frame = locate_mount(model, self.body, "Position")
        state = model.decode(t, y)
        point = self.point if frame is None else frame.on_body(self.point)
        point = point.astype(state.position.dtype)
        position = state.position[row] + so3.rotate(state.orientation[row], point)
        return apply_calibration(position, self.bias, self.scale, self.misalignment)
