"""Methods of diffrax with dense output as accurate as their steps."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from ...annotations import Terms, Time, Y
from ..base.dense import AbstractDenseOutput
from .unrolled import Unrolled


@functools.singledispatch
def continuous(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """Return the solver with dense output that is as accurate as its steps.

    The steps stay the same. Most solvers have such dense output already and are returned unchanged.
    """
    return solver


@dataclasses.dataclass(frozen=True, eq=False)
class _WeightedInterpolationClass:
    r"""Constructor of a `WeightedInterpolation` with fixed weights; compares by identity.

    **Attributes:** `weights`, (d, s): for each of s stages the coefficients of $\theta$ to
    $\theta^d$.
    """

    weights: np.ndarray

    def __call__(self, *, t0: Time, t1: Time, y0: Y, y1: Y, k: Y) -> "WeightedInterpolation":
        return WeightedInterpolation(t0, t1, y0, k, self.weights)


class WeightedInterpolation(AbstractDenseOutput):
    r"""Dense output $y_0 + \sum_i b_i(\theta) k_i$ of a Runge-Kutta method.

    **Attributes:** `weights`, (d, s), coefficients of the polynomials $b_i$; `k`, increments of the
    s stages, step length times rate.
    """

    t0: Time
    t1: Time
    y0: Y
    k: Y
    weights: Float[Array, "d s"] | np.ndarray

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`, s."""
        theta = self.fraction(t)
        b = jnp.zeros_like(theta)
        for row in self.weights[::-1]:
            b = (b + jnp.asarray(row, theta.dtype)) * theta
        return jax.tree.map(
            lambda y, k: y + jnp.tensordot(b.astype(k.dtype), k, axes=1), self.y0, self.k
        )


def _extend_dopri8() -> tuple[diffrax.ButcherTableau, _WeightedInterpolationClass]:
    r"""Return the tableau of `Dopri8` with five more stages, and its dense output of order 7.

    The additional stages evaluate the rate on diffrax's dense output, whose local error is of
    order 7. Together with both ends of the step, their times are the seven nodes of Lobatto
    quadrature. The polynomial that interpolates the seven rates is integrated, which gives a local
    error of order 8. The deviation from the end of the step is distributed by a cubic polynomial.
    """
    old = diffrax.Dopri8.tableau
    interpolation: Any = diffrax.Dopri8.interpolation_cls
    # The inner nodes are the zeros of the derivative of the Legendre polynomial of degree 6.
    near, far = (np.sqrt(5 / 11 + sign * 2 / 11 * np.sqrt(5 / 3)) for sign in (-1, 1))
    inner = 0.5 * (1.0 + np.array([-far, -near, 0.0, near, far]))
    s, m = len(old.c) + 1, len(inner)
    rows = [node * np.polyval(interpolation.eval_coeffs.T, node) for node in inner]
    stages = [np.concatenate([row, np.zeros(j)]) for j, row in enumerate(rows)]
    more = np.zeros(m)
    new = diffrax.ButcherTableau(
        c=np.concatenate([old.c, inner]),
        b_sol=np.concatenate([old.b_sol, more]),
        b_error=np.concatenate([old.b_error, more]),
        a_lower=(*old.a_lower, *stages),
    )
    nodes, powers = np.concatenate([[0.0, 1.0], inner]), np.arange(m + 2)
    rates = np.eye(s + m)[[0, *range(s - 1, s + m)]]
    weights = np.linalg.solve(nodes[:, None] ** powers, rates) / (powers + 1)[:, None]
    deviation = new.b_sol - weights.sum(0)
    weights[1] += 3.0 * deviation
    weights[2] -= 2.0 * deviation
    return new, _WeightedInterpolationClass(weights)


def _kvaerno5_interpolation() -> _WeightedInterpolationClass:
    r"""Return dense output of order 4 from the stages of `Kvaerno5`; diffrax's is cubic.

    The weights, polynomials of degree 4, satisfy all order conditions up to order 4 and interpolate
    the unknowns and the rates at both ends of the step. The remaining freedom minimises the defects
    in the conditions of order 5.

    **Source:** Hairer-Norsett-Wanner I, II.2 (order conditions), II.6 (continuous methods).
    """
    tableau = diffrax.Kvaerno5.tableau
    A = np.diag(np.asarray(tableau.a_diagonal))
    for i, row in enumerate(tableau.a_lower):
        A[i + 1, : i + 1] = row
    s, degree = len(A), 4
    c = A.sum(1)
    d, e = A @ c, A @ c**2
    trees = [
        [(c**0, 1)], [(c, 2)], [(c**2, 3), (d, 6)], [(c**3, 4), (c * d, 8), (e, 12), (A @ d, 24)],
        [
            (c**4, 5), (c**2 * d, 10), (d**2, 20), (c * e, 15), (c * (A @ d), 30),
            (A @ c**3, 20), (A @ (c * d), 40), (A @ e, 60), (A @ A @ d, 120),
        ],
    ]  # fmt: skip
    powers, stages = np.eye(degree), np.eye(s)
    # Equations for the weights (degree, s), flattened.
    rows, right = [], []
    for order, of_order in enumerate(trees[:degree]):
        for tree, density in of_order:
            rows += [np.kron(power, tree) for power in powers]
            right += list(powers[order] / density)
    ends = (np.ones(degree), tableau.b_sol), (powers[0], stages[0])
    for weights, values in (*ends, (1.0 + np.arange(degree), stages[-1])):
        rows += [np.kron(weights, stage) for stage in stages]
        right += list(values)
    particular = np.linalg.lstsq(np.array(rows), np.array(right), rcond=1e-10)[0]
    _, sizes, basis = np.linalg.svd(np.array(rows))
    null_space = basis[np.sum(sizes > 1e-10 * sizes[0]) :].T
    theta = np.linspace(0.0, 1.0, 21)
    defects = np.concatenate(
        [np.kron(theta[:, None] ** np.arange(1, degree + 1), tree) for tree, _ in trees[degree]]
    )
    target = np.concatenate([theta ** (degree + 1) / density for _, density in trees[degree]])
    free = np.linalg.lstsq(defects @ null_space, target - defects @ particular, rcond=1e-10)[0]
    return _WeightedInterpolationClass((particular + null_space @ free).reshape(degree, s))


_EXTENDED, _DOPRI8 = _extend_dopri8()


class ContinuousDopri8(diffrax.AbstractERK):
    """`diffrax.Dopri8` with five more evaluations in each step, for dense output.

    The local error of diffrax's dense output is of order 7, and that of a step is of order 9, so
    that values between steps are much less accurate than the steps.
    """

    tableau: ClassVar[diffrax.ButcherTableau] = _EXTENDED
    interpolation_cls: ClassVar[Callable[..., WeightedInterpolation]] = _DOPRI8

    def order(self, terms: Terms) -> int:
        return 8


class ContinuousKvaerno5(diffrax.AbstractESDIRK):
    """`diffrax.Kvaerno5` with dense output of order 4 from its stages instead of a cubic one.

    **Arguments:** as of `diffrax.Kvaerno5`.
    """

    tableau: ClassVar[diffrax.ButcherTableau] = diffrax.Kvaerno5.tableau
    interpolation_cls: ClassVar[Callable[..., WeightedInterpolation]] = _kvaerno5_interpolation()
    root_finder: optx.AbstractRootFinder = dataclasses.field(kw_only=True)
    root_find_max_steps: int = dataclasses.field(kw_only=True)

    def order(self, terms: Terms) -> int:
        return 5


@continuous.register
def _continuous_dopri8(solver: diffrax.Dopri8) -> ContinuousDopri8:
    return _DEFAULT if solver.scan_kind is None else ContinuousDopri8(scan_kind=solver.scan_kind)


# One shared instance: constructing an Equinox module takes longer than a short run.
_DEFAULT = ContinuousDopri8()


@continuous.register
def _continuous_kvaerno5(solver: diffrax.Kvaerno5) -> ContinuousKvaerno5:
    return ContinuousKvaerno5(
        root_finder=solver.root_finder,
        root_find_max_steps=solver.root_find_max_steps,
        scan_kind=solver.scan_kind,
    )


@continuous.register
def _continuous_unrolled(solver: Unrolled) -> Unrolled:
    return Unrolled(continuous(solver.solver))  # pyright: ignore[reportArgumentType]
