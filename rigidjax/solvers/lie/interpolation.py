"""Dense output on the group: that of a Runge-Kutta method, in the chart of its step."""

import dataclasses

import diffrax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import DenseInfo, InterpolationClass, Scalar, Time, Vector, Y
from ..dense import AbstractDenseOutput
from .chart import Chart
from .dynamics import Pose
from .unknowns import GroupUnknowns


@dataclasses.dataclass(frozen=True)
class InChart:
    """Makes a `ChartInterpolation` of an interpolation class; compares by that class."""

    inner: InterpolationClass

    def __call__(
        self, *, t0: Time, t1: Time, chart: Chart, inner: DenseInfo
    ) -> "ChartInterpolation":
        return ChartInterpolation(t0, t1, chart, self.inner(t0=t0, t1=t1, **inner))


class ChartInterpolation(AbstractDenseOutput):
    """Dense output of the coordinates in a chart, as unknowns: quaternions stay of unit length."""

    t0: Time
    t1: Time
    chart: Chart
    inner: diffrax.AbstractLocalInterpolation

    def evaluate_at(self, t: Time) -> Y:
        """GroupUnknowns at `t`."""
        return self.chart.point(self.inner.evaluate(t))


class PoseInterpolation(AbstractDenseOutput):
    """Cubic Hermite polynomials of poses, in the chart of the step, and of twists.

    Joint angles and multipliers are linear in time. `h` is the length of the step, negative in a
    run backwards.
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
        """GroupUnknowns at `t`."""
        unknowns, layout = self.unknowns, self.unknowns.model.layout
        chart, h = Chart(self.y0, layout, "body"), self.h
        w1 = unknowns.twists(self.y1)
        # Without columns where bodies do not translate, as in the twists.
        x0, x1 = (layout.poses(y)[0][:, : layout.shift] for y in (self.y0, self.y1))
        turn = chart.turn_between(self.y1)
        last = chart.rate(chart.zero._replace(turn=turn), _velocity(chart, w1))
        zero = jnp.zeros_like(turn)
        polynomial = diffrax.ThirdOrderHermitePolynomialInterpolation(
            t0=self.t0,
            t1=self.t1,
            y0=(x0, zero, self.w),
            y1=(x1, turn, w1),
            k0=(h * self.w[:, :-3], h * self.w[:, -3:], h * self.w_rate),
            k1=(h * w1[:, :-3], h * last.turn, h * self.end),
        )
        x, psi, w = polynomial.evaluate(t)
        _, p = layout.poses(chart.point(chart.zero._replace(turn=psi)))
        s = (t - self.t0) / jnp.where(h == 0, 1.0, jnp.abs(h))
        rest = self.y0 + s * (self.y1 - self.y0)
        algebraic = rest[layout.size :]
        count = algebraic.size - unknowns.num_multipliers
        pose = Pose(x, p, layout.angles(rest))
        return unknowns.join(pose, w, algebraic[:count], algebraic[count:])


def _velocity(chart, w):
    return chart.zero._replace(shift=w[:, :-3], turn=w[:, -3:])
