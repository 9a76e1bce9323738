"""Limits of a planned motion: of joints, and of points in space."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import ArrayLike


@dataclasses.dataclass(frozen=True)
class MotionLimits:
    """Limits of one coordinate in a planned motion.

    **Arguments:** `position`, lowest and highest coordinate, rad or m; `rate`, largest magnitude,
    rad/s or m/s; `acceleration`, rad/s^2 or m/s^2; `torque` of the actuator, N m or N. All but the
    position may be left out.
    **Errors:** `ValueError` for an empty range, and limits that are not positive.
    """

    position: tuple[float, float]
    rate: float = np.inf
    acceleration: float = np.inf
    torque: float = np.inf

    def __post_init__(self):
        low, high = self.position
        if not -np.inf < low < high < np.inf:
            raise ValueError(
                f"`MotionLimits(position=...)` must be two finite numbers, the lower first; got "
                f"{self.position}."
            )
        for name in ("rate", "acceleration", "torque"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"`MotionLimits({name}=...)` must be positive; got {getattr(self, name)}."
                )


@dataclasses.dataclass(frozen=True)
class WorkspaceBox:
    """A box in space that a point of a body must not leave during a planned motion.

    **Arguments:** `body`, name of a body or a `Frame`; `low`, `high`, (3,) m, space components,
    infinite where there is no wall; `point`, from the origin of the body or frame, (3,) m.
    **Errors:** `ValueError` for an empty box.
    """

    body: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    point: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __post_init__(self):
        low, high, point = (np.asarray(x, float) for x in (self.low, self.high, self.point))
        if not (low.shape == high.shape == point.shape == (3,) and np.all(low < high)):
            raise ValueError(
                f"`WorkspaceBox(low=..., high=..., point=...)` must have shape (3,), low below "
                f"high; got {self.low}, {self.high} and {self.point}."
            )


def stack_limits(
    limits: Mapping[str, MotionLimits], labels: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return `low`, `high`, `rate`, `acceleration` and `torque` of all coordinates, (f,) each.

    **Errors:** `ValueError` for a coordinate without limits, or a name that no coordinate has.
    """
    if set(limits) != set(labels):
        raise ValueError(
            f"`design_trajectory(limits=...)` must have one `MotionLimits` for each of "
            f"{list(labels)}; got {list(limits)}."
        )
    ordered = [limits[label] for label in labels]
    stacked = {
        n: np.array([getattr(x, n) for x in ordered]) for n in ("rate", "acceleration", "torque")
    }
    low, high = np.array([x.position for x in ordered], float).T
    return {"low": low, "high": high, **stacked}


def box_bounds(boxes: Sequence[WorkspaceBox]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bounds of all points, (3 P,)."""
    none: ArrayLike = np.zeros((0, 3))
    low = np.concatenate([none, *(np.asarray(b.low, float)[None] for b in boxes)])
    high = np.concatenate([none, *(np.asarray(b.high, float)[None] for b in boxes)])
    return low.ravel(), high.ravel()
