r"""Solution of nonlinear equations nearest to a start: $\min \frac12 v^T M v$, $c(v) = 0$."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Matrix, Scalar, Vector
from ..small_arrays import inverse, sequential_vmap_on_cpu

# Singular values of the Jacobian below this fraction of the largest belong to redundant equations.
_CUTOFF = 1e-6
# Sizes of perturbations of the start. They are tried in this order if the iteration from the start
# itself ends at a stationary point, as it does for a child that is turned by half a revolution.
_DISTURBANCES = (0.0, 1e-2, 0.3, 1.0)
_LEVENBERG_STEPS = 128
_NEWTON_STEPS = 64


class LeastChange(eqx.Module):
    """Equations (m,) for a change (n,), and the metric (n, n) that measures the change.

    Equations and changes are scaled to order one. Arrays in the closure of the equations become
    leaves of this module, so that the solution can be differentiated with respect to them.
    """

    equations: Callable[[Array], Array]
    metric: Matrix

    def __init__(self, equations: Callable[[Array], Array], metric: Matrix):
        change = jnp.zeros(len(metric), metric.dtype)
        self.equations = eqx.filter_closure_convert(equations, change)
        self.metric = metric / jnp.max(jnp.diagonal(metric))

    def solve(self) -> Vector:
        """Return the change of stationary size, (n,); any change if there is no solution.

        Levenberg and Marquardt's method finds a solution, Newton's method for the constrained
        minimum then finds the nearest one. Derivatives of any order, in both modes, follow from the
        implicit function theorem; the iterations are not differentiated.
        """
        return _solve(self)


class _Linearised(eqx.Module):
    """Linearisation at a change: independent equations, multipliers, saddle-point matrix."""

    basis: Float[Array, "m m"]
    multipliers: Float[Array, " m"]
    step: Vector
    saddle: Float[Array, "n+m n+m"]  # the inverse, without the curvature of the equations
    residual: Float[Array, " m"]
    jacobian: Float[Array, "m n"]
    padding: Float[Array, "m m"]

    def __init__(self, problem: LeastChange, v: Vector):
        r, J = _value_and_jacobian(problem.equations, v)
        U, keep = _independent_rows(J)
        self.basis = keep[:, None] * U.T
        self.padding = jnp.diag(1.0 - keep)
        self.jacobian = self.basis @ J
        self.residual = self.basis @ r
        self.saddle = inverse(self._matrix(problem.metric))
        solution = -self.saddle @ jnp.concatenate([problem.metric @ v, self.residual])
        self.step, self.multipliers = solution[: len(v)], solution[len(v) :]

    def _matrix(self, curvature: Matrix) -> Float[Array, "n+m n+m"]:
        return jnp.block([[curvature, self.jacobian.T], [self.jacobian, -self.padding]])

    def newton_saddle(self, problem: LeastChange, v: Vector) -> Float[Array, "n+m n+m"]:
        """Return the inverse of the Newton matrix of the constrained minimum."""
        multipliers = self.basis.T @ self.multipliers
        gradient = jax.grad(lambda v: multipliers @ problem.equations(v))
        return inverse(self._matrix(problem.metric + jax.jacfwd(gradient)(v)))


@eqx.filter_custom_jvp
def _solve(problem: LeastChange) -> Vector:
    v, size = _find_solution(problem)
    closed = size < _tolerance(v.dtype)
    return jax.lax.cond(closed, lambda v: _find_nearest(problem, v), lambda v: v, v)


@_solve.def_jvp
def _solve_jvp(primals: tuple, tangents: tuple):
    (problem,), (tangent,) = primals, tangents
    v = _solve(problem)
    at = _Linearised(problem, v)
    multipliers = at.basis.T @ at.multipliers

    def conditions(problem):
        equations, transpose = jax.vjp(problem.equations, v)
        stationary = problem.metric @ v + transpose(multipliers)[0]
        return jnp.concatenate([stationary, at.basis @ equations])

    _, rates = eqx.filter_jvp(conditions, (problem,), (tangent,))
    return v, -(at.newton_saddle(problem, v) @ rates)[: len(v)]


def _decompose_rows(J: Float[Array, "m n"]) -> tuple[Float[Array, "m m"], Float[Array, " m"]]:
    m, n = J.shape
    U, s, _ = jnp.linalg.svd(J, full_matrices=True)
    keep = (s > _CUTOFF * jnp.max(s, initial=0.0)).astype(J.dtype)
    return U, jnp.concatenate([keep, jnp.zeros(max(m - n, 0), J.dtype)])


_decompose_one_by_one = sequential_vmap_on_cpu(_decompose_rows)


@jax.custom_jvp
def _independent_rows(J: Float[Array, "m n"]) -> tuple[Float[Array, "m m"], Float[Array, " m"]]:
    """Return orthogonal combinations of the rows and a mask of the independent ones.

    Neither is differentiated.
    """
    return _decompose_one_by_one(J)


@_independent_rows.defjvp
def _independent_rows_jvp(primals: tuple, tangents: tuple):
    out = _independent_rows(*primals)
    return out, jax.tree.map(jnp.zeros_like, out)


def _value_and_jacobian(
    equations: Callable[[Array], Array], v: Vector
) -> tuple[Float[Array, " m"], Float[Array, "m n"]]:
    """Return values and Jacobian of the equations."""

    def value_twice(v):
        r = equations(v)
        return r, r

    J, r = jax.jacfwd(value_twice, has_aux=True)(v)
    return r, J


def _find_solution(problem: LeastChange) -> tuple[Vector, Scalar]:
    """Return a solution and its largest residual, or the change with the smallest residual."""
    n, dtype = len(problem.metric), problem.metric.dtype
    directions = np.random.default_rng(0).normal(size=(len(_DISTURBANCES), n))
    starts = jnp.asarray(np.array(_DISTURBANCES)[:, None] * directions, dtype)
    tolerance = _tolerance(dtype)

    def continues(carry):
        k, _, size = carry
        return (k < len(_DISTURBANCES)) & ~(size < tolerance)

    def attempt(carry):
        k, best, smallest = carry
        found, size = _levenberg(problem, starts[k], tolerance)
        better = size < smallest
        return k + 1, jnp.where(better, found, best), jnp.where(better, size, smallest)

    return jax.lax.while_loop(continues, attempt, (0, starts[0], jnp.asarray(jnp.inf, dtype)))[1:]


def _levenberg(problem: LeastChange, v: Vector, tolerance: float) -> tuple[Vector, Scalar]:
    """Minimise the residual by Levenberg's method in the metric."""
    weights = inverse(problem.metric)

    def improve(carry):
        v, _, damping, k = carry
        r, J = _value_and_jacobian(problem.equations, v)
        S = J @ weights @ J.T
        damped = S + damping * jnp.trace(S) / len(r) * jnp.eye(len(r), dtype=r.dtype)
        trial = v - weights @ (J.T @ (inverse(damped) @ r))
        after = problem.equations(trial)
        good = jnp.sum(after**2) < jnp.sum(r**2)
        damping = jnp.where(good, 0.1 * damping, 10.0 * damping)
        size = jnp.max(jnp.abs(jnp.where(good, after, r)), initial=0.0)
        return jnp.where(good, trial, v), size, jnp.maximum(damping, 0.01 * tolerance**2), k + 1

    def continues(carry):
        _, size, damping, k = carry
        return ~(size < tolerance) & (damping < 1.0 / tolerance) & (k < _LEVENBERG_STEPS)

    start = v, jnp.asarray(jnp.inf, v.dtype), jnp.asarray(1e-2, v.dtype), 0
    return jax.lax.while_loop(continues, improve, start)[:2]


def _find_nearest(problem: LeastChange, v: Vector) -> Vector:
    """Return the solution of stationary size near the solution `v`."""
    n, tolerance = len(v), _tolerance(v.dtype)

    def improve(carry):
        v, _, share, k = carry
        at = _Linearised(problem, v)
        weight = 2.0 * jnp.max(jnp.abs(at.multipliers), initial=0.0)
        right = jnp.concatenate([problem.metric @ v, at.residual])
        step = -(at.newton_saddle(problem, v) @ right)[:n]

        def correct(v):
            """Return `v` after two corrections towards the equations, and its merit."""

            def approach(_, v):
                return v - at.saddle[:n, n:] @ (at.basis @ problem.equations(v))

            v = jax.lax.fori_loop(0, 2, approach, v)
            penalty = jnp.sum(jnp.abs(at.basis @ problem.equations(v)))
            return v, 0.5 * v @ problem.metric @ v + weight * penalty

        trials, merits = jax.vmap(correct)(jnp.stack([v + step, v + share * at.step]))
        now = 0.5 * v @ problem.metric @ v + weight * jnp.sum(jnp.abs(at.residual))
        last = jnp.max(jnp.abs(step)) <= tolerance
        full, good = last | (merits[0] < now), merits[1] < now
        v = jnp.where(full, trials[0], jnp.where(good, trials[1], v))
        share = jnp.where(full | good, jnp.minimum(1.0, 2.0 * share), 0.25 * share)
        return v, last, share, k + 1

    def continues(carry):
        _, last, share, k = carry
        return ~last & (share > tolerance) & (k < _NEWTON_STEPS)

    start = v, jnp.array(False), jnp.ones((), v.dtype), 0
    return jax.lax.while_loop(continues, improve, start)[0]


def _tolerance(dtype: jnp.dtype) -> float:
    """Return the tolerance of iterations that converge quadratically."""
    return float(jnp.finfo(dtype).eps) ** 0.5
