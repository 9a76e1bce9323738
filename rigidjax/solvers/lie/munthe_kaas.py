"""Runge-Kutta-Munthe-Kaas methods."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from ...annotations import Count, InterpolationClass, StepResult, Vector
from ...formulations import NullSpace
from ..continuous import continuous
from ..explicit.unrolled import MAX_STAGES, directed_rate, is_small_field
from ..step_results import RESULTS, stop_at_roundoff
from ..terms import unwrap
from .base import AbstractGroupSolver, chart_of, is_inside
from .chart import velocity
from .interpolation import InChart
from .tableau import stacked, stages, tableau_of, weighted


class MuntheKaas(AbstractGroupSolver):
    r"""A Runge-Kutta-Munthe-Kaas method: any explicit Runge-Kutta method, on unit quaternions.

    In every step the rotation of a body is $p = p_0 \exp(\psi)$, and the Runge-Kutta method
    integrates the rotation vector, $\dot\psi = \mathrm{dexp}^{-1}_{-\psi}(\Omega)$, from zero,
    together with positions and velocities: three equations without a constraint in the place of
    four. Quaternions keep their length to round-off without being normalised.

    On `NullSpace(system, Quaternion())`: one body or several, with `rates="space"` too
    ($p = \exp(\psi)\,p_0$), a `FixedPointBody`, and systems with joints, whose positions are
    redundant and follow their joints as accurately as the steps are. Error estimate, dense output
    and order are those of the Runge-Kutta method, in the chart of the step.

    A step in which a body turns by 2 pi or more leaves the chart: a fixed step ends the run with
    `rj.RESULTS.chart_left` (`nonlinear_divergence` to diffrax), an adaptive one is made shorter.

    **Arguments:**

    - `solver`: an explicit Runge-Kutta method of diffrax, or `rj.solvers.RK4()`.
    - `truncated`: the largest power of commutators in $\mathrm{dexp}^{-1}$; `None` for its closed
      form. A method of order p keeps its order from p - 2 on; below, it has `truncated` + 2.

    **Raises:** `TypeError` for another solver, `ValueError` for a negative `truncated`.
    **Source:** Munthe-Kaas (1999); Terze (B.1), with $\mathrm{dexp}^{-1}$ for the printed `dexp`.
    """

    solver: diffrax.AbstractSolver = eqx.field(default_factory=diffrax.Dopri5)
    truncated: int | None = eqx.field(static=True, default=None)

    failure = "chart_left"

    def __check_init__(self):
        tableau_of(self.solver)
        if self.truncated is not None and not (
            isinstance(self.truncated, int) and self.truncated >= 0
        ):
            raise ValueError(
                "`MuntheKaas(truncated=...)` is the largest power of commutators, an integer >= 0, "
                f"or `None` for the closed form; got {self.truncated!r}."
            )

    @property
    def is_adaptive(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the Runge-Kutta method has an error estimate."""
        return tableau_of(self.solver).error is not None

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Dense output of the Runge-Kutta method, in the chart of the step."""
        return InChart(self.solver.interpolation_cls)

    def order(self, terms) -> int | None:
        """Order of the Runge-Kutta method, or what the truncation leaves of it."""
        order = self.solver.order(terms)
        return order if order is None or self.truncated is None else min(order, self.truncated + 2)

    def evaluations(self, solver_state) -> Count:
        """The number of stages."""
        return jnp.asarray(len(tableau_of(self.solver).c))

    def step(self, terms, t0, t1, y0, args, solver_state: Vector, made_jump) -> StepResult[Vector]:
        model: NullSpace = unwrap(terms)[0].model
        tableau, chart = tableau_of(self.solver), chart_of(model, y0)
        zero, h = chart.zero, t1 - t0

        def field(t, u):
            y = y0 if u is zero else chart.point(u)
            omega = velocity(model, y, directed_rate(terms, t, y, args), chart.rates)
            return (omega if u is zero else chart.rate(u, omega, self.truncated)), u.turn

        in_line = len(tableau.c) <= MAX_STAGES and is_small_field(terms, t0, y0, args)
        rates, turns = stages(field, tableau, t0, t1, zero, in_line)
        u1 = weighted(h, tableau.b, rates)
        y1, low = chart.end(u1, solver_state)
        inside = is_inside(turns) & is_inside(u1.turn)
        error = None
        result = RESULTS.where(inside, RESULTS.successful, RESULTS.nonlinear_divergence)
        if tableau.error is not None:
            error = chart.tangent(y1, weighted(h, tableau.error, rates))
            error = jnp.where(inside, error, jnp.inf)
            size = jnp.where(inside, 0.0, jnp.inf)
            error, result = stop_at_roundoff(t0, t1, size, error, result)
        inner = dict(y0=zero, y1=u1)
        if type(self.solver) is not diffrax.Euler:
            inner["k"] = jax.tree.map(lambda k: jnp.asarray(h, k.dtype) * k, stacked(rates))
        return y1, error, dict(chart=chart, inner=inner), low, result


@continuous.register
def _continuous(solver: MuntheKaas) -> MuntheKaas:
    return dataclasses.replace(solver, solver=continuous(solver.solver))
