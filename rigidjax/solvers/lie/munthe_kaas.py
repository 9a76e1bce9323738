"""Runge-Kutta-Munthe-Kaas methods."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from ...annotations import Args, Count, InterpolationClass, Jump, StepResult, Terms, Time, Vector
from ...formulations import NullSpace
from ..base.dense import RESULTS, stop_at_roundoff
from ..base.terms import unwrap
from ..explicit.continuous import continuous
from ..explicit.unrolled import MAX_STAGES, directed_rate, is_small_field
from .base import AbstractGroupSolver, InChart, chart_of, is_inside_chart
from .chart import algebra_velocity
from .tableau import evaluate_stages, stack_rates, tableau_of, weighted_sum


class MuntheKaas(AbstractGroupSolver):
    r"""A Runge-Kutta-Munthe-Kaas method: any explicit Runge-Kutta method on unit quaternions.

    In every step the rotation of a body is $p = p_0 \exp(\psi)$. The Runge-Kutta method integrates
    the rotation vector, $\dot\psi = \mathrm{dexp}^{-1}_{-\psi}(\Omega)$, from zero, together with
    positions and velocities. These are three equations per body without a constraint instead of
    four with one, and quaternions keep their length to round-off without normalisation.

    The solver takes `NullSpace(system, Quaternion())`, with `rates="space"` too
    ($p = \exp(\psi)\,p_0$), of free bodies, of a `FixedPointBody` and of systems with joints, whose
    redundant positions satisfy the constraints within the error of the method. Error estimate,
    dense output and order are those of the Runge-Kutta method in the chart of the step.

    A step in which a body rotates by 2 pi or more leaves the chart. A fixed step then ends the run
    with `rj.RESULTS.chart_left` (`nonlinear_divergence` in diffrax), an adaptive step is shortened.

    **Arguments:**

    - `solver`: an explicit Runge-Kutta method of diffrax, or `rj.solvers.RK4()`.
    - `truncated`: the largest power of commutators in $\mathrm{dexp}^{-1}$; `None` for its closed
      form. The order of the method is at most `truncated` + 2.

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

    def order(self, terms: Terms) -> int | None:
        """Return the order of the Runge-Kutta method, limited by the truncation."""
        order = self.solver.order(terms)
        return order if order is None or self.truncated is None else min(order, self.truncated + 2)

    def evaluations(self, solver_state: Vector) -> Count:
        """Return the number of stages."""
        return jnp.asarray(len(tableau_of(self.solver).c))

    def step(
        self, terms: Terms, t0: Time, t1: Time, y0: Vector, args: Args, solver_state: Vector,
        made_jump: Jump,
    ) -> StepResult[Vector]:  # fmt: skip
        model: NullSpace = unwrap(terms)[0].model
        tableau, chart = tableau_of(self.solver), chart_of(model, y0)
        zero, h = chart.zero, t1 - t0

        def field(t, u):
            y = y0 if u is zero else chart.point(u)
            omega = algebra_velocity(model, y, directed_rate(terms, t, y, args), chart.rates)
            return (
                omega if u is zero else chart.coordinate_rate(u, omega, self.truncated)
            ), u.rotation

        unrolled = len(tableau.c) <= MAX_STAGES and is_small_field(terms, t0, y0, args)
        rates, rotation_vectors = evaluate_stages(field, tableau, t0, t1, zero, unrolled)
        u1 = weighted_sum(h, tableau.b, rates)
        y1, low = chart.compensated_point(u1, solver_state)
        inside = is_inside_chart(rotation_vectors) & is_inside_chart(u1.rotation)
        error = None
        result = RESULTS.where(inside, RESULTS.successful, RESULTS.nonlinear_divergence)
        if tableau.error is not None:
            error = chart.linear_change(y1, weighted_sum(h, tableau.error, rates))
            error = jnp.where(inside, error, jnp.inf)
            size = jnp.where(inside, 0.0, jnp.inf)
            error, result = stop_at_roundoff(t0, t1, size, error, result)
        inner = dict(y0=zero, y1=u1)
        if type(self.solver) is not diffrax.Euler:
            inner["k"] = jax.tree.map(lambda k: jnp.asarray(h, k.dtype) * k, stack_rates(rates))
        return y1, error, dict(chart=chart, inner=inner), low, result


@continuous.register
def _continuous(solver: MuntheKaas) -> MuntheKaas:
    return dataclasses.replace(solver, solver=continuous(solver.solver))
