"""Dense output on the group: that of a Runge-Kutta method, in the chart of its step."""

import dataclasses
from typing import Any

import diffrax
import jax

from .chart import Chart


@dataclasses.dataclass(frozen=True)
class InChart:
    """Makes a `ChartInterpolation` of an interpolation class; compares by that class."""

    inner: Any

    def __call__(self, *, t0: Any, t1: Any, chart: Chart, inner: Any) -> "ChartInterpolation":
        return ChartInterpolation(t0, t1, chart, self.inner(t0=t0, t1=t1, **inner))


class ChartInterpolation(diffrax.AbstractLocalInterpolation):
    """Dense output of the coordinates in a chart, as unknowns: quaternions stay of unit length."""

    t0: Any
    t1: Any
    chart: Chart
    inner: diffrax.AbstractLocalInterpolation

    def evaluate(self, t0: Any, t1: Any | None = None, left: bool = True) -> Any:
        """Value at `t0`, or the increment from `t0` to `t1`."""
        if t1 is not None:
            first, second = self.evaluate(t0, left=left), self.evaluate(t1, left=left)
            return jax.tree.map(lambda a, b: b - a, first, second)
        return self.chart.point(self.inner.evaluate(t0))
