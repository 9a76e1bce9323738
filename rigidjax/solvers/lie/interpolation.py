"""Dense output of Lie-group methods, in the chart of the step."""

import dataclasses

import diffrax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import DenseInfo, InterpolationClass, Scalar, Time, Vector, Y
from ..base.dense import AbstractDenseOutput
from .base import GroupUnknowns
from .chart import Chart, ChartIncrement
from .dynamics import Pose


@dataclasses.dataclass(frozen=True)
class InChart:
    """Factory of `ChartInterpolation` for an interpolation class, hashable by this class."""

    inner: InterpolationClass

    def __call__(
        self, *, t0: Time, t1: Time, chart: Chart, inner: DenseInfo
    ) -> "ChartInterpolation":
        return ChartInterpolation(t0, t1, chart, self.inner(t0=t0, t1=t1, **inner))


class ChartInterpolation(AbstractDenseOutput):
    """Dense output of the coordinates in a chart, by which quaternions keep unit length."""

    t0: Time
    t1: Time
    chart: Chart
    inner: diffrax.AbstractLocalInterpolation

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`."""
        return self.chart.point(self.inner.evaluate(t))


class PoseInterpolation(AbstractDenseOutput):
    """Cubic Hermite polynomials of poses, in the chart of the step, and of twists.

    Joint angles and multipliers are linear in time.

    **Attributes:** `t0`, `t1`, start and end of the step, s; `y0`, `y1`, unknowns there; `h`,
    length of the step, s, negative in a run backwards; `w` and `w_rate`, twists and accelerations
    at its start; `end`, accelerations at its end; `unknowns`.
    """

    t0: Time
    t1: Time
    y0: Vector
    y1: Vector
    h: Scalar
    w: Float[Array, "L k"]
    w_rate: Float[Array, "L k"]
    end: Float[Array, "L k"]
    unknowns: GroupUnknowns

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`."""
        unknowns, layout = self.unknowns, self.unknowns.model.layout
        chart, h = Chart(self.y0, layout, "body"), self.h
        w1 = unknowns.twists(self.y1)
        # As in the twists, bodies that do not translate have no position columns.
        x0, x1 = (layout.poses(y)[0][:, : layout.shift] for y in (self.y0, self.y1))
        rotation = chart.rotation_between(self.y1)
        last = chart.coordinate_rate(chart.zero._replace(rotation=rotation), _velocity(chart, w1))
        zero = jnp.zeros_like(rotation)
        polynomial = diffrax.ThirdOrderHermitePolynomialInterpolation(
            t0=self.t0,
            t1=self.t1,
            y0=(x0, zero, self.w),
            y1=(x1, rotation, w1),
            k0=(h * self.w[:, :-3], h * self.w[:, -3:], h * self.w_rate),
            k1=(h * w1[:, :-3], h * last.rotation, h * self.end),
        )
        x, psi, w = polynomial.evaluate(t)
        _, p = layout.poses(chart.point(chart.zero._replace(rotation=psi)))
        s = (t - self.t0) / jnp.where(h == 0, 1.0, jnp.abs(h))
        rest = self.y0 + s * (self.y1 - self.y0)
        algebraic = rest[layout.size :]
        count = algebraic.size - unknowns.num_multipliers
        pose = Pose(x, p, layout.angles(rest))
        return unknowns.join(pose, w, algebraic[:count], algebraic[count:])


def _velocity(chart: Chart, w: Float[Array, "L k"]) -> ChartIncrement:
    return chart.zero._replace(shift=w[:, :-3], rotation=w[:, -3:])
