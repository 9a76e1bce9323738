"""The stage equations of a Radau method and their Newton matrix."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ....annotations import Count, Flag, Matrix, Norm, Scalar, Time, Vector
from ....native import variants
from ....small_arrays import short_sum
from ...base.implicit import AbstractImplicitStep, attach_derivatives
from ...base.linear import Factorisation, Inverse, factorise, solve
from ...base.rate_elimination import Pairs, real_form
from ..equations import AbstractEquations, step_length
from ..newton import iterate
from .tableau import RadauTableau, lagrange_basis, radau_tableau

# Largest number of unknowns for which the inverse of the whole Newton matrix is assembled: for more
# unknowns, separate products with the blocks are faster.
_LARGEST_FULL = 16
# Values at the stages, one row per stage.
StageValues = Float[Array, "s n"]


class StageEquations(AbstractImplicitStep):
    r"""The stage equations $F(t_i, y_0 + z_i, \sum_j (A^{-1})_{ij} z_j / h) = 0$ of a step.

    **Attributes:** `equations`; `t0`, `t1`, ends of the step, s; `y0`, unknowns at its start, (n,);
    `stages`, s. The solution `Z`, (s, n), has the rows $z_i$.
    """

    equations: AbstractEquations
    t0: Time
    t1: Time
    y0: Vector
    stages: int = eqx.field(static=True)

    @property
    def tableau(self) -> RadauTableau:
        """Coefficients of the method."""
        return radau_tableau(self.stages)

    def points(self, Z: StageValues) -> tuple[Array, Array, Array]:
        """Return times, unknowns and rates of the stages."""
        h = step_length(self.t0, self.t1, Z.dtype)
        c = jnp.asarray(self.tableau.c, jnp.result_type(self.t0))
        ts = jnp.where(c == 1, self.t1, self.t0 + c * (self.t1 - self.t0))
        return ts, self.y0[None] + Z, combine_stages(self.tableau.A_inverse, Z) / h

    @property
    def rates(self) -> Pairs:
        return self.equations.rates

    def residual(self, Z: StageValues) -> StageValues:
        points = self.points(Z)
        return variants(
            sequential=lambda: jax.lax.map(lambda point: self.equations.residual(*point), points),
            batched=lambda: jax.vmap(self.equations.residual)(*points),
        )

    def jacobian(self, Z: StageValues) -> Matrix:
        h = step_length(self.t0, self.t1, Z.dtype)
        _, M, K = jax.vmap(self.equations.linearize)(*self.points(Z))
        s, n = Z.shape
        A_inverse = jnp.asarray(self.tableau.A_inverse, Z.dtype)
        full = (A_inverse / h)[:, None, :, None] * M[:, :, None, :]
        full = full + jnp.eye(s, dtype=Z.dtype)[:, None, :, None] * K[:, :, None, :]
        return full.reshape(s * n, s * n)


class StageFactors(NamedTuple):
    r"""Factorisation of the Newton matrix.

    **Attributes:** `real`, of $\gamma/h\,M + K$; `pairs`, of the matrices with each complex
    eigenvalue of `RadauTableau.pairs` instead of $\gamma$; `full`, inverse of
    $A^{-1} \otimes M / h + I \otimes K$, (s n, s n), used instead of `pairs` if n is small and the
    linear solver is `Inverse`.
    """

    real: Factorisation
    pairs: list[Factorisation] | list[Matrix] | None
    full: Matrix | None


def factorise_newton_matrix(
    solver: lx.AbstractLinearSolver, M: Matrix, K: Matrix, h: Scalar, tableau: RadauTableau,
    rates: Pairs = (),
) -> StageFactors:  # fmt: skip
    r"""Factorise the Newton matrix as one real and (s - 1)/2 complex matrices of n rows.

    **Arguments:** `solver`; `M`, `K`, linearisation; `h`; `tableau`; `rates`, pairs (i, j) where
    row i of $\gamma/h\,M + K$ has no entries but (i, i) and (i, j).
    **Source:** Hairer-Wanner II, IV.8 (8.13).
    """
    real = factorise(solver, tableau.gamma / h * M + K, rates)
    complex_h, complex_M, complex_K = (as_complex(x) for x in (h, M, K))
    pairs = [
        factorise(solver, complex(value) / complex_h * complex_M + complex_K, rates)
        for value in tableau.pairs
    ]
    if isinstance(solver, Inverse) and not rates:
        inverses = [pair.state for pair in pairs]
        if len(M) <= _LARGEST_FULL:
            return StageFactors(real, None, _full_inverse(real.state, inverses, tableau))
        pairs = [real_form(jnp.conj(X)) for X in inverses]
    return StageFactors(real, pairs, None)


def zero_stage_factors(
    solver: lx.AbstractLinearSolver,
    n: int,
    dtype: jnp.dtype,
    tableau: RadauTableau,
    rates: Pairs = (),
) -> StageFactors:
    """Return zeros in the structure of a result of `factorise_newton_matrix`."""
    square, h = jax.ShapeDtypeStruct((n, n), dtype), jax.ShapeDtypeStruct((), dtype)
    shapes = jax.eval_shape(
        lambda M, K, h: factorise_newton_matrix(solver, M, K, h, tableau, rates), square, square, h
    )
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def solve_newton_equations(
    solver: lx.AbstractLinearSolver, systems: StageFactors, R: StageValues, tableau: RadauTableau
) -> StageValues:
    """Solve the linear Newton equations for right-hand sides `R`, (s, n)."""
    if systems.full is not None:
        return (systems.full @ R.ravel()).reshape(R.shape)
    W = combine_stages(tableau.T_inverse, R)
    rows = [solve(solver, systems.real, W[0])]
    for k, system in enumerate(systems.pairs or []):
        # T has the columns Re v and Im v, so that the coefficient of v is (w_i - i w_j) / 2.
        a, b = W[1 + 2 * k], W[2 + 2 * k]
        if not isinstance(system, Factorisation):
            rows += list((system @ jnp.concatenate([a, b])).reshape(2, -1))
        else:
            pair = solve(solver, system, jax.lax.complex(a, -b))
            rows += [pair.real, -pair.imag]
    return combine_stages(tableau.T, jnp.stack(rows))


def combine_stages(weights: ArrayLike, Z: StageValues) -> Array:
    """Return linear combinations of stages: (m, n) for weights (m, s), and (n,) for (s,)."""
    weights = jnp.asarray(weights, Z.dtype)
    return short_sum(weights[..., None], Z, axis=weights.ndim - 1)


def as_complex(x: Array) -> Array:
    """Return a real array as a complex one of the same precision."""
    return x.astype(np.result_type(x.dtype, np.complex64))


def _full_inverse(real: Matrix, pairs: list[Matrix], tableau: RadauTableau):
    """Assemble the inverse of the Newton matrix from inverses of its blocks in the eigenbasis.

    For few unknowns, one product with this matrix is faster than the two transformations and the
    products with the blocks.
    """
    T, T_inverse = tableau.T, tableau.T_inverse
    matrices, weights = [real], [T[:, :1] * T_inverse[:1]]
    for k, pair in enumerate(pairs):
        i, j = 1 + 2 * k, 2 + 2 * k
        matrices += [pair.real, pair.imag]
        weights += [
            T[:, i, None] * T_inverse[i] + T[:, j, None] * T_inverse[j],
            T[:, i, None] * T_inverse[j] - T[:, j, None] * T_inverse[i],
        ]
    s, n = len(T), len(real)
    full = sum(
        jnp.asarray(w, real.dtype)[:, None, :, None] * X[None, :, None, :]
        for w, X in zip(weights, matrices, strict=True)
    )
    return jnp.reshape(full, (s * n, s * n))


def extrapolate_stages(Z: StageValues, ratio: Scalar, tableau: RadauTableau) -> StageValues:
    r"""Predict the increments of a step from the collocation polynomial of the last step.

    **Arguments:** `Z`, stages of the last step, (s, n); `ratio` of the length of the step to that
    of the last step; `tableau`.
    **Source:** Hairer-Wanner II, IV.8 (8.5).
    """
    basis = lagrange_basis(tableau.c, 1.0 + jnp.asarray(tableau.c, Z.dtype) * ratio)
    return combine_stages(jnp.stack(basis, axis=1), Z) - Z[-1:]


class RefinedStages(NamedTuple):
    """Stages `Z` of the method of 2 s - 1 stages, (2 s - 1, n), and whether they `converged`."""

    Z: StageValues
    converged: Flag


def zero_refined_stages(stages: int, n: int, dtype: jnp.dtype) -> RefinedStages:
    """Return zeros in the structure of refined stages of a step with n unknowns."""
    return RefinedStages(jnp.zeros((2 * stages - 1, n), dtype), jnp.array(False))


def refine_stages(
    step: StageEquations, Z: StageValues, systems: StageFactors, eta: Scalar, tolerance: Scalar,
    stage_norm: Norm, limit: int, linear_solver: lx.AbstractLinearSolver,
) -> tuple[RefinedStages, Count]:  # fmt: skip
    """Compute the collocation polynomial of degree 2 s - 1 over a solved step of s stages.

    Its local error is of order 2 s, like that of the end of the step; that of the polynomial of
    degree s is of order s + 1. The step is solved again by the method of 2 s - 1 stages, starting
    from the polynomial of degree s, with the same Jacobian.

    **Arguments:** `step`, equations of the step; `Z`, its stages; `systems`, factors for 2 s - 1
    stages; `linear_solver`; the others as of `newton.iterate`.
    **Returns:** the stages and the number of evaluations.
    """
    refined_step = _refined_equations(step)
    outcome = iterate(
        refined_step.residual,
        lambda r: solve_newton_equations(linear_solver, systems, r, refined_step.tableau),
        _interpolate_at_nodes(step, Z), eta, tolerance, stage_norm, limit,
    )  # fmt: skip
    okay = outcome.converged
    return RefinedStages(jnp.where(okay, outcome.Z, 0.0), okay), refined_step.stages * outcome.count


def dense_increments(
    step: StageEquations,
    Z: StageValues,
    refined: RefinedStages,
    linear_solver: lx.AbstractLinearSolver,
) -> StageValues:
    """Return the increments of dense output from the refined stages.

    The deviation of the refined polynomial from the end of the step, which is of the size of the
    error of the step, is distributed by a cubic polynomial. If the refined stages did not converge,
    the increments are those of the collocation polynomial with the stages `Z`.
    """
    refined_step = _refined_equations(step)
    values = attach_derivatives(refined_step, refined.Z, refined.converged, linear_solver)
    c = jnp.asarray(refined_step.tableau.c, Z.dtype)
    values = values + (c * c * (3.0 - 2.0 * c))[:, None] * (Z[-1:] - values[-1:])
    return jnp.where(refined.converged, values, _interpolate_at_nodes(step, Z))


def _refined_equations(step: StageEquations):
    return StageEquations(step.equations, step.t0, step.t1, step.y0, 2 * step.stages - 1)


def _interpolate_at_nodes(step: StageEquations, Z: StageValues):
    """Evaluate the collocation polynomial of the step at the nodes of the refined method."""
    nodes = radau_tableau(2 * step.stages - 1).c
    return combine_stages(jnp.stack(lagrange_basis(step.tableau.c, jnp.asarray(nodes)), axis=1), Z)
