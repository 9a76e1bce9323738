"""Commutator-free Lie-group methods."""

from typing import ClassVar

import diffrax
import jax.numpy as jnp

from ...annotations import Count, InterpolationClass, StepResult, Vector
from ...formulations import NullSpace
from ..explicit.unrolled import directed_rate
from ..step_results import RESULTS
from ..terms import unwrap
from .base import AbstractGroupSolver, chart_of, is_inside
from .chart import Chart, velocity
from .interpolation import InChart
from .tableau import weighted

_INTERPOLATION = InChart(diffrax.ThirdOrderHermitePolynomialInterpolation)

# Exponents of the two factors of a step, the one that acts first above.
_FIRST = (1 / 4, 1 / 6, 1 / 6, -1 / 12)
_SECOND = (-1 / 12, 1 / 6, 1 / 6, 1 / 4)


class CommutatorFree4(AbstractGroupSolver):
    r"""The commutator-free Lie-group method of order 4, four stages and five exponentials.

    The classical Runge-Kutta method on unit quaternions: stages and step are products of
    exponentials of combinations of angular velocities, without $\mathrm{dexp}^{-1}$. Positions and
    velocities are integrated by the classical method itself. On the models of `MuntheKaas`;
    quaternions keep their length to round-off. Fixed steps. Dense output is a cubic Hermite
    polynomial in the chart of the step.

    A step or stage that turns a body by 2 pi or more ends the run with `rj.RESULTS.chart_left`.

    **Source:** Celledoni, Marthinsen, Owren (2003), section 3.
    """

    is_adaptive: ClassVar[bool] = False
    failure: ClassVar[str] = "chart_left"
    interpolation_cls: ClassVar[InterpolationClass] = _INTERPOLATION

    def order(self, terms) -> int:
        return 4

    def evaluations(self, solver_state) -> Count:
        return jnp.asarray(4)

    def step(self, terms, t0, t1, y0, args, solver_state: Vector, made_jump) -> StepResult[Vector]:
        model: NullSpace = unwrap(terms)[0].model
        chart, h = chart_of(model, y0), t1 - t0

        def field(t, y):
            return velocity(model, y, directed_rate(terms, t, y, args), chart.rates)

        def at(y):
            return Chart(y, chart.layout, chart.rates)

        middle = t0 + 0.5 * h
        k1 = field(t0, y0)
        half = chart.point(weighted(h, (0.5,), [k1]))
        k2 = field(middle, half)
        k3 = field(middle, chart.point(weighted(h, (0.5,), [k2])))
        last = weighted(h, (-0.5, 1.0), [k1, k3])
        k4 = field(t1, at(half).point(last))
        rates = [k1, k2, k3, k4]
        first, second = weighted(h, _FIRST, rates), weighted(h, _SECOND, rates)
        halfway, low = chart.end(first, solver_state)
        y1, low = at(halfway).end(second, low)
        ends = [h * 0.5 * k1.turn, h * 0.5 * k2.turn, last.turn, first.turn + second.turn]
        turns = jnp.stack([first.turn, second.turn, *ends])
        result = RESULTS.where(is_inside(turns), RESULTS.successful, RESULTS.nonlinear_divergence)
        return y1, None, _dense(chart, k1, field(t1, y1), y1, h, first, second), low, result


def _dense(chart, k0, k1, y1, h, first, second):
    """Dense information: coordinates and their rates at both ends of the step."""
    u1 = weighted(1.0, (1.0, 1.0), [first, second])._replace(turn=chart.turn_between(y1))
    scaled = [weighted(h, (1.0,), [k]) for k in (k0, chart.rate(u1, k1))]
    return dict(chart=chart, inner=dict(y0=chart.zero, y1=u1, k0=scaled[0], k1=scaled[1]))
