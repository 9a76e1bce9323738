"""Explicit Runge-Kutta tableaux, and their stages."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...annotations import Terms, Time, Y

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
    """AlphaCoefficients of an explicit Runge-Kutta method with s stages, NumPy arrays.

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
