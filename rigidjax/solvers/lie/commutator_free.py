"""Commutator-free Lie-group methods."""

from typing import ClassVar

import diffrax
import jax.numpy as jnp

from ...annotations import (
    Args,
    Count,
    DenseInfo,
    InterpolationClass,
    Jump,
    StepResult,
    Terms,
    Time,
    Vector,
)
from ...formulations import NullSpace
from ..explicit.unrolled import directed_rate
from ..step_results import RESULTS
from ..terms import unwrap
from .base import AbstractGroupSolver, chart_of, is_inside_chart
from .chart import Chart, ChartIncrement, algebra_velocity
from .interpolation import InChart
from .tableau import weighted_sum

_INTERPOLATION = InChart(diffrax.ThirdOrderHermitePolynomialInterpolation)

# Weights of the stages in the two exponentials of a step, in the order of application.
_FIRST = (1 / 4, 1 / 6, 1 / 6, -1 / 12)
_SECOND = (-1 / 12, 1 / 6, 1 / 6, 1 / 4)


class CommutatorFree4(AbstractGroupSolver):
    r"""The commutator-free Lie-group method of order 4, four stages and five exponentials.

    This is the classical Runge-Kutta method on unit quaternions. Stages and steps are products of
    exponentials of linear combinations of angular velocities, without $\mathrm{dexp}^{-1}$.
    Positions and velocities are integrated by the classical method. The solver takes the models of
    `MuntheKaas` and uses fixed steps; quaternions keep their length to round-off. Dense output is a
    cubic Hermite polynomial in the chart of the step.

    A step or stage that rotates a body by 2 pi or more ends the run with `rj.RESULTS.chart_left`.

    **Source:** Celledoni, Marthinsen, Owren (2003), section 3.
    """

    is_adaptive: ClassVar[bool] = False
    failure: ClassVar[str] = "chart_left"
    interpolation_cls: ClassVar[InterpolationClass] = _INTERPOLATION

    def order(self, terms: Terms) -> int:
        return 4

    def evaluations(self, solver_state: Vector) -> Count:
        return jnp.asarray(4)

    def step(
        self, terms: Terms, t0: Time, t1: Time, y0: Vector, args: Args, solver_state: Vector,
        made_jump: Jump,
    ) -> StepResult[Vector]:  # fmt: skip
        model: NullSpace = unwrap(terms)[0].model
        chart, h = chart_of(model, y0), t1 - t0

        def field(t, y):
            return algebra_velocity(model, y, directed_rate(terms, t, y, args), chart.rates)

        def chart_at(y):
            return Chart(y, chart.layout, chart.rates)

        middle = t0 + 0.5 * h
        k1 = field(t0, y0)
        half = chart.point(weighted_sum(h, (0.5,), [k1]))
        k2 = field(middle, half)
        k3 = field(middle, chart.point(weighted_sum(h, (0.5,), [k2])))
        last = weighted_sum(h, (-0.5, 1.0), [k1, k3])
        k4 = field(t1, chart_at(half).point(last))
        rates = [k1, k2, k3, k4]
        first, second = weighted_sum(h, _FIRST, rates), weighted_sum(h, _SECOND, rates)
        intermediate, low = chart.compensated_point(first, solver_state)
        y1, low = chart_at(intermediate).compensated_point(second, low)
        ends = [
            h * 0.5 * k1.rotation,
            h * 0.5 * k2.rotation,
            last.rotation,
            first.rotation + second.rotation,
        ]
        rotation_vectors = jnp.stack([first.rotation, second.rotation, *ends])
        result = RESULTS.where(
            is_inside_chart(rotation_vectors), RESULTS.successful, RESULTS.nonlinear_divergence
        )
        return y1, None, _dense(chart, k1, field(t1, y1), y1, h, first, second), low, result


def _dense(
    chart: Chart,
    k0: ChartIncrement,
    k1: ChartIncrement,
    y1: Vector,
    h: Time,
    first: ChartIncrement,
    second: ChartIncrement,
) -> DenseInfo:
    """Return coordinates and their rates at both ends of the step, for dense output."""
    u1 = weighted_sum(1.0, (1.0, 1.0), [first, second])._replace(
        rotation=chart.rotation_between(y1)
    )
    scaled = [weighted_sum(h, (1.0,), [k]) for k in (k0, chart.coordinate_rate(u1, k1))]
    return dict(chart=chart, inner=dict(y0=chart.zero, y1=u1, k0=scaled[0], k1=scaled[1]))
