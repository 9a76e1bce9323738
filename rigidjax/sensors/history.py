"""Motion before and after a known state, for delayed sensors."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.charts import Charted, Unknowns, join_chart, split_chart
from ..small_arrays import inverse

# An even number, so that no real decay rate is a pole of the step. Six stages continue an
# oscillation over one radian to 1e-11 and amplify errors of the state by at most 1000.
_STAGES = 6
# A fixed number of Newton iterations: a number that depends on values has no reverse mode.
_NEWTON_STEPS = 8
# Order up to which derivatives are exact.
_ORDERS = 3
# Span, s, of the continuation for a delay of zero, which affects derivatives only.
SHORTEST_SPAN = 1e-6


class Continuation(eqx.Module):
    r"""Motion of a model around a known state, a polynomial in time.

    It is one step of the collocation method Radau IIA with six stages, which is L-stable in both
    directions: a backward step does not amplify rapidly decaying motion without bound.

    **Attributes:** `t`, s, and unknowns `y` of the known state; `span` of the step, s, negative for
    the past; `slopes`, time derivatives at the nodes, (6, N).
    **Source:** Hairer-Wanner, Solving Ordinary Differential Equations II, IV.5.
    """

    t: Scalar
    y: Unknowns
    span: Scalar
    slopes: Float[Array, "S N"]

    def unknowns(self, t: Scalar) -> Unknowns:
        """Return the unknowns at a time between `self.t` and `self.t + self.span`."""
        values, _ = split_chart(self.y)
        theta = (t - self.t) / self.span
        powers = jnp.cumprod(jnp.full(_STAGES, theta))
        weights = jnp.asarray(_tableau().integrals, values.dtype) @ powers
        return join_chart(values + self.span * (weights @ self.slopes), self.y)


def continue_motion(
    model: AbstractFormulation, t: Scalar, y: Unknowns, span: Scalar
) -> Continuation:
    """Continue the motion of a model from a state into the past or the future.

    **Arguments:** `t`, s; `y`, the unknowns there; `span`, s, not zero, negative for the past.
    """
    t = jnp.asarray(t)
    y = differential_part(model, y)
    start, _ = split_chart(y)
    dtype, size = start.dtype, start.shape[0]
    t, span = t.astype(dtype), jnp.asarray(span, dtype)
    tableau = _tableau()
    times = t + span * jnp.asarray(tableau.nodes, dtype)
    A = span * jnp.asarray(tableau.matrix, dtype)

    def slope(model, t, values):
        return split_chart(time_derivative(model, t, join_chart(values, y)))[0]

    def field(model, t, values):
        rate = slope(model, t, values)
        return rate, rate

    def step(matrix, slopes, rates):
        return slopes - (matrix @ (slopes - rates).reshape(-1)).reshape(_STAGES, size)

    problem = model, start, times, A
    fixed = jax.tree.map(_without_derivative, problem)

    def newton(carry, _):
        slopes, _ = carry
        model, start, times, A = fixed
        linearised = jax.jacfwd(functools.partial(field, model), argnums=1, has_aux=True)
        J, rates = jax.vmap(linearised)(times, start[None] + A @ slopes)
        matrix = jnp.eye(_STAGES * size, dtype=dtype).reshape(_STAGES, size, _STAGES, size)
        matrix = matrix - jnp.einsum("ij,ipq->ipjq", A, J)
        matrix = inverse(matrix.reshape(_STAGES * size, -1))
        return (step(matrix, slopes, rates), matrix), None

    first = jnp.zeros((_STAGES, size), dtype), jnp.eye(_STAGES * size, dtype=dtype)
    (slopes, matrix), _ = jax.lax.scan(newton, first, length=_NEWTON_STEPS)

    def chord(slopes, _):
        model, start, times, A = problem
        rates = jax.vmap(functools.partial(slope, model))(times, start[None] + A @ slopes)
        return step(matrix, slopes, rates), None

    # By the implicit function theorem, each of these steps adds one order of exact derivatives.
    slopes, _ = jax.lax.scan(chord, slopes, length=_ORDERS)
    return Continuation(t, y, span, slopes)


def _without_derivative(x: Any) -> Any:
    return jax.lax.stop_gradient(x) if eqx.is_inexact_array(x) else x


def unknowns_at_other_time(
    model: AbstractFormulation, t: Scalar, y: Unknowns, delay: ArrayInput
) -> Unknowns:
    """Return the unknowns at `t - delay` by continuing the motion from the state at `t`."""
    delay = jnp.asarray(delay, t.dtype)
    fixed = jax.lax.stop_gradient(delay)
    # The polynomial describes the same motion for any span but zero.
    span = -jnp.where(fixed == 0, SHORTEST_SPAN, fixed)
    return continue_motion(model, t, y, span).unknowns(t - delay)


def shift_in_time(model: AbstractFormulation, t: Scalar, y: Unknowns, change: Scalar) -> Unknowns:
    """Return the unknowns at `t + change`, where `change` is zero but has derivatives.

    A step of the classical Runge-Kutta method makes derivatives up to the fourth order exact.
    """
    y = differential_part(model, y)

    # A loop over the stages, so that they are compiled once.
    def stage(carry, coefficients):
        total, slope = carry
        part, weight = coefficients
        stage_y = jax.tree.map(lambda a, k: a + part * change * k, y, slope)
        slope = time_derivative(model, t + part * change, stage_y)
        return (jax.tree.map(lambda a, k: a + weight * change * k, total, slope), slope), None

    parts = jnp.array([0.0, 0.5, 0.5, 1.0], t.dtype)
    weights = jnp.array([1 / 6, 1 / 3, 1 / 3, 1 / 6], t.dtype)
    no_slope = jax.tree.map(jnp.zeros_like, y)
    ((y, _), _) = jax.lax.scan(stage, (y, no_slope), (parts, weights))
    return y


def differential_part(model: AbstractFormulation, y: Unknowns) -> Unknowns:
    """Return the unknowns without the multipliers of equations of index 1 to 3."""
    values, reference = split_chart(y)
    values = values[: model.layout.size]
    return values if reference is None else Charted(values, reference)


def time_derivative(model: AbstractFormulation, t: Scalar, y: Unknowns) -> Unknowns:
    r"""Return $\dot y$ of unknowns without multipliers, whatever the index of the equations."""
    if isinstance(model, AbstractAbsolute):
        return model.ordinary_field(t, y)
    return model.vector_field(t, y)


class _Tableau(NamedTuple):
    """Nodes $c_i$ (S,), matrix $A$ (S, S), and integrals of the Lagrange basis.

    `integrals` (S, S), (stage, power): coefficients of $\\theta, \\theta^2, \\dots$ in
    $\\int_0^\\theta \\ell_j$.
    """

    nodes: np.ndarray
    matrix: np.ndarray
    integrals: np.ndarray


@functools.cache
def _tableau() -> _Tableau:
    """Return the coefficients of Radau IIA with `_STAGES` stages."""
    legendre = np.polynomial.Legendre
    radau = legendre.basis(_STAGES, [0, 1]) - legendre.basis(_STAGES - 1, [0, 1])
    nodes = np.sort(radau.roots().real)
    powers = np.arange(_STAGES)
    # Coefficients of the Lagrange basis in powers of theta, one row per stage.
    basis = np.linalg.inv(nodes[:, None] ** powers).T
    integrals = basis / (powers + 1)
    matrix = (nodes[:, None] ** (powers + 1)) @ integrals.T
    return _Tableau(nodes, matrix, integrals)
