"""Methods of diffrax whose values between steps are made as accurate as their steps."""

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

from ..annotations import Time, Y
from .dense import AbstractDenseOutput
from .explicit.unrolled import Unrolled


@functools.singledispatch
def continuous(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """The solver whose values between steps have errors like those of its steps.

    The steps are the same. Most solvers are like that already and come back as they are.
    """
    return solver


@dataclasses.dataclass(frozen=True, eq=False)
class _WeightedInterpolationClass:
    r"""Makes a `WeightedInterpolation` with these weights; compares by identity.

    **Attributes:** `weights`, (d, s): those of the s stages, coefficients of $\theta$ to
    $\theta^d$.
    """

    weights: np.ndarray

    def __call__(self, *, t0: Time, t1: Time, y0: Y, y1: Y, k: Y) -> "WeightedInterpolation":
        return WeightedInterpolation(t0, t1, y0, k, self.weights)


class WeightedInterpolation(AbstractDenseOutput):
    r"""$y_0 + \sum_i b_i(\theta) k_i$ with the polynomials $b_i$ of `weights`, (d, s).

    `k`: increments, step length times rate, of the s stages.
    """

    t0: Time
    t1: Time
    y0: Y
    k: Y
    weights: Float[Array, "d s"] | np.ndarray

    def evaluate_at(self, t: Time) -> Y:
        """Unknowns at `t`."""
        theta = self.fraction(t)
        b = jnp.zeros_like(theta)
        for row in self.weights[::-1]:
            b = (b + jnp.asarray(row, theta.dtype)) * theta
        return jax.tree.map(
            lambda y, k: y + jnp.tensordot(b.astype(k.dtype), k, axes=1), self.y0, self.k
        )


def _extend_dopri8() -> tuple[diffrax.ButcherTableau, _WeightedInterpolationClass]:
    r"""The tableau of `Dopri8` with five more stages, and dense output of order 7 from them.

    A new stage starts from diffrax's dense output, whose error is of order 7 (local), and so is
    that of the rate there. The rates at both ends and at the new stages, the seven nodes of
    Lobatto's quadrature, are interpolated and integrated: an error of order 8. What that misses the
    end by is blended in.
    """
    old = diffrax.Dopri8.tableau
    interpolation: Any = diffrax.Dopri8.interpolation_cls
    # Where the derivative of Legendre's polynomial of degree 6 is zero.
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
    gap = new.b_sol - weights.sum(0)
    weights[1] += 3.0 * gap
    weights[2] -= 2.0 * gap
    return new, _WeightedInterpolationClass(weights)


def _kvaerno5_interpolation() -> _WeightedInterpolationClass:
    r"""Dense output of order 4 from the stages of `Kvaerno5`, in the place of a cubic polynomial.

    Its weights, of degree 4, satisfy all conditions up to order 4 and join the ends of the step
    with their rates. What is free makes the defects in those of order 5 small.
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
    known = np.linalg.lstsq(np.array(rows), np.array(right), rcond=1e-10)[0]
    _, sizes, basis = np.linalg.svd(np.array(rows))
    free = basis[np.sum(sizes > 1e-10 * sizes[0]) :].T
    theta = np.linspace(0.0, 1.0, 21)
    defects = np.concatenate(
        [np.kron(theta[:, None] ** np.arange(1, degree + 1), tree) for tree, _ in trees[degree]]
    )
    wanted = np.concatenate([theta ** (degree + 1) / density for _, density in trees[degree]])
    rest = np.linalg.lstsq(defects @ free, wanted - defects @ known, rcond=1e-10)[0]
    return _WeightedInterpolationClass((known + free @ rest).reshape(degree, s))


_EXTENDED, _DOPRI8 = _extend_dopri8()


class ContinuousDopri8(diffrax.AbstractERK):
    """`diffrax.Dopri8` with five more evaluations in each step, for dense output.

    What diffrax interpolates has an error of order 7, a step one of order 9: between steps errors
    were up to 200 times theirs (heavy top at 1e-10).
    """

    tableau: ClassVar[diffrax.ButcherTableau] = _EXTENDED
    interpolation_cls: ClassVar[Callable[..., WeightedInterpolation]] = _DOPRI8

    def order(self, terms) -> int:
        return 8


class ContinuousKvaerno5(diffrax.AbstractESDIRK):
    """`diffrax.Kvaerno5` with dense output of order 4 from its stages; diffrax's is cubic.

    **Arguments:** as of `diffrax.Kvaerno5`.
    """

    tableau: ClassVar[diffrax.ButcherTableau] = diffrax.Kvaerno5.tableau
    interpolation_cls: ClassVar[Callable[..., WeightedInterpolation]] = _kvaerno5_interpolation()
    root_finder: optx.AbstractRootFinder = dataclasses.field(kw_only=True)
    root_find_max_steps: int = dataclasses.field(kw_only=True)

    def order(self, terms) -> int:
        return 5


@continuous.register
def _continuous_dopri8(solver: diffrax.Dopri8) -> ContinuousDopri8:
    return _DEFAULT if solver.scan_kind is None else ContinuousDopri8(scan_kind=solver.scan_kind)


# Made once: building modules costs more than a short run.
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
