"""Runge-Kutta-Munthe-Kaas methods and their tableaus."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...annotations import Count, InterpolationClass, StepResult, Terms, Time, Vector, Y
from ...formulations import NullSpace
from ..base.replayable import Start
from ..base.step_results import RESULTS, stop_at_roundoff
from ..base.terms import unwrap
from ..explicit.continuous import continuous
from ..explicit.unrolled import MAX_STAGES, directed_rate, is_small_field
from .base import AbstractGroupSolver, InChart, chart_of, is_inside_chart
from .chart import algebra_velocity

_RK4 = diffrax.ButcherTableau(
    c=np.array([0.5, 0.5, 1.0, 1.0]),
    b_sol=np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6, 0.0]),
    b_error=np.array([0.0, 0.0, 0.0, 0.1, -0.1]),
    a_lower=(
        np.array([0.5]),
        np.array([0.0, 0.5]),
        np.array([0.0, 0.0, 1.0]),
        np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    ),
)


class RK4(diffrax.AbstractERK):
    """The classical Runge-Kutta method of order 4, with an error estimate of order 3.

    The estimate is a tenth of the difference between the last stage and the vector field at the
    end of the step, which is the first stage of the next one.

    **Source:** Hairer-Norsett-Wanner I, II.1, Table 1.2; weights of the estimate from the order
    conditions up to order 3.
    """

    tableau: ClassVar[diffrax.ButcherTableau] = _RK4
    interpolation_cls: ClassVar[Callable[..., diffrax.ThirdOrderHermitePolynomialInterpolation]] = (
        diffrax.ThirdOrderHermitePolynomialInterpolation.from_k
    )

    def order(self, terms: Terms) -> int:
        return 4


class ExplicitTableau(NamedTuple):
    """Coefficients of an explicit Runge-Kutta method with s stages, NumPy arrays.

    **Attributes:** `A`, (s, s), strictly lower triangular; `b`, `c`, (s,); `error`, (s,), weights
    of the error estimate, or `None`.
    """

    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    error: np.ndarray | None


def tableau_of(solver: diffrax.AbstractSolver) -> ExplicitTableau:
    """Return the tableau of an explicit Runge-Kutta solver of diffrax, including `Euler`.

    **Raises:** `TypeError` for any other solver.
    """
    if type(solver) is diffrax.Euler:
        return ExplicitTableau(np.zeros((1, 1)), np.ones(1), np.zeros(1), None)
    tableau = getattr(type(solver), "tableau", None)
    if not isinstance(solver, diffrax.AbstractERK) or not isinstance(
        tableau, diffrax.ButcherTableau
    ):
        raise TypeError(
            "`MuntheKaas(solver=...)` takes an explicit Runge-Kutta method of diffrax, such as "
            f"`diffrax.Dopri5()`, `diffrax.Euler()` or `rj.solvers.RK4()`; got {solver!r}."
        )
    s = len(tableau.c) + 1
    A = np.zeros((s, s))
    for i, row in enumerate(tableau.a_lower):
        A[i + 1, : i + 1] = row
    c = np.concatenate([[0.0 if tableau.c1 is None else tableau.c1], tableau.c])
    return ExplicitTableau(A, np.asarray(tableau.b_sol), c, np.asarray(tableau.b_error))


def evaluate_stages(
    field: Callable[[Time, Y], tuple[Y, PyTree[Array]]], tableau: ExplicitTableau, t0: Time,
    t1: Time, zero: Y, unrolled: bool,
) -> tuple[Y | list[Y], PyTree[Array]]:  # fmt: skip
    """Evaluate all stages of a step from `zero`.

    **Arguments:** `field`, a function of time and coordinates that returns rates, a pytree like
    `zero`, and auxiliary output; `tableau`; `t0`, `t1`, start and end of the step, s; `zero`,
    coordinates at its start; `unrolled`, whether to unroll the loop over the stages.
    **Returns:** the rates of all stages, stacked or, if `unrolled`, a list; the auxiliary output,
    stacked.
    """
    A, c = tableau.A, tableau.c
    h = t1 - t0
    if unrolled:
        rates, auxiliary = [], []
        for i, row in enumerate(A):
            t = t1 if c[i] == 1 else t0 + float(c[i]) * h
            rate, output = field(t, weighted_sum(h, row[:i], rates, zero))
            rates.append(rate)
            auxiliary.append(output)
        return rates, stack_rates(auxiliary)

    def evaluate_stage(rates, inputs):
        i, row, node = inputs
        t = jnp.where(node == 1, t1, t0 + node * h)
        rate, output = field(t, weighted_sum(h, row, rates))
        return jax.tree.map(lambda old, new: old.at[i].set(new), rates, rate), output

    s = len(c)
    rates = jax.tree.map(lambda x: jnp.zeros((s, *x.shape), x.dtype), zero)
    dtype = jnp.result_type(h)
    inputs = jnp.arange(s), jnp.asarray(A, dtype), jnp.asarray(c, dtype)
    return jax.lax.scan(evaluate_stage, rates, inputs)


def weighted_sum(
    h: Time, weights: Sequence[float] | np.ndarray, rates: Y | list[Y], zero: Y = None
) -> Y:
    """Return `h` times the weighted sum of rates, which are stacked or a list.

    In a list, rates with zero weights are left out, and the result is `zero` if all are.
    """
    if not isinstance(rates, list):
        w = jnp.asarray(h * jnp.asarray(weights, jnp.result_type(h)))
        return jax.tree.map(lambda k: jnp.tensordot(w.astype(k.dtype), k, axes=1), rates)
    used = [(float(w), rate) for w, rate in zip(weights, rates, strict=True) if w != 0]
    if not used:
        return zero

    def leaf(*leaves):
        return h * sum(w * k for (w, _), k in zip(used, leaves, strict=True))

    return jax.tree.map(leaf, *(rate for _, rate in used))


def stack_rates(rates: Y | list[Y]) -> Y:
    """Stack rates that are given as a list."""
    if not isinstance(rates, list):
        return rates
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rates)


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

    def make_step(self, start: Start) -> StepResult[Vector]:
        _, terms, t0, t1, y0, args, _, solver_state = start
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
