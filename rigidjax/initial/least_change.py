r"""The nearest solution of equations: $\min \frac12 v^T M v$ with $c(v) = 0$."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..native.ops.linalg import inverse, one_by_one

# Singular values of the gradient below this part of the largest belong to redundant equations.
_CUTOFF = 1e-6
# Sizes of the disturbances of the start, tried one after the other where an iteration from the
# undisturbed one ends without a solution: at a stationary point, as half a turn of a child is.
_DISTURBANCES = (0.0, 1e-2, 0.3, 1.0)
_LEVENBERG_STEPS = 128
_NEWTON_STEPS = 64


class LeastChange(eqx.Module):
    """Equations (m,) of a change (n,), and the metric (n, n) in which it is measured.

    Equations are of order one where changes are. What they close over is made a part of this
    module, so that the solution has derivatives by it.
    """

    equations: Callable[[Array], Array]
    metric: Float[Array, "n n"]

    def __init__(self, equations: Callable[[Array], Array], metric: Float[Array, "n n"]):
        change = jnp.zeros(len(metric), metric.dtype)
        self.equations = eqx.filter_closure_convert(equations, change)
        self.metric = metric / jnp.max(jnp.diagonal(metric))

    def solve(self) -> Float[Array, " n"]:
        """The change; of least size nearby where there are several, anything if there is none.

        Levenberg-Marquardt's method finds a solution; Newton's method for the stationary value goes
        on to the nearest one. Derivatives, in both modes and of any order, are those of the
        stationary value (implicit function theorem) and not of the iterations.
        """
        return _solve(self)


class _Linearised(eqx.Module):
    """The equations around a change: independent combinations of them, multipliers, saddles."""

    basis: Float[Array, "m m"]
    multipliers: Float[Array, " m"]
    step: Float[Array, " n"]
    saddle: Float[Array, "n+m n+m"]  # inverse, without the curvature of the equations
    residual: Float[Array, " m"]
    jacobian: Float[Array, "m n"]
    padding: Float[Array, "m m"]

    def __init__(self, problem: LeastChange, v):
        r, J = _valued(problem.equations, v)
        U, keep = _independent(J)
        self.basis = keep[:, None] * U.T
        self.padding = jnp.diag(1.0 - keep)
        self.jacobian = self.basis @ J
        self.residual = self.basis @ r
        self.saddle = inverse(self._matrix(problem.metric))
        solution = -self.saddle @ jnp.concatenate([problem.metric @ v, self.residual])
        self.step, self.multipliers = solution[: len(v)], solution[len(v) :]

    def _matrix(self, curvature):
        return jnp.block([[curvature, self.jacobian.T], [self.jacobian, -self.padding]])

    def newton_saddle(self, problem: LeastChange, v):
        """Inverse of the matrix of Newton's method for the stationary value."""
        multipliers = self.basis.T @ self.multipliers
        gradient = jax.grad(lambda v: multipliers @ problem.equations(v))
        return inverse(self._matrix(problem.metric + jax.jacfwd(gradient)(v)))


@eqx.filter_custom_jvp
def _solve(problem: LeastChange):
    v, size = _some(problem)
    closed = size < _small(v.dtype)
    return jax.lax.cond(closed, lambda v: _nearest(problem, v), lambda v: v, v)


@_solve.def_jvp
def _solve_jvp(primals, tangents):
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


def _decomposed(J):
    m, n = J.shape
    U, s, _ = jnp.linalg.svd(J, full_matrices=True)
    keep = (s > _CUTOFF * jnp.max(s, initial=0.0)).astype(J.dtype)
    return U, jnp.concatenate([keep, jnp.zeros(max(m - n, 0), J.dtype)])


_decomposed_in_turn = one_by_one(_decomposed)


@jax.custom_jvp
def _independent(J: Float[Array, "m n"]) -> tuple[Float[Array, "m m"], Float[Array, " m"]]:
    """Orthogonal combinations of the rows, and which are independent; both without derivatives."""
    return _decomposed_in_turn(J)


@_independent.defjvp
def _independent_jvp(primals, tangents):
    out = _independent(*primals)
    return out, jax.tree.map(jnp.zeros_like, out)


def _valued(equations, v):
    """Values and gradient of the equations."""

    def twice(v):
        r = equations(v)
        return r, r

    J, r = jax.jacfwd(twice, has_aux=True)(v)
    return r, J


def _some(problem: LeastChange) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Some solution and its largest residual; of the smallest residual if none is found."""
    n, dtype = len(problem.metric), problem.metric.dtype
    directions = np.random.default_rng(0).normal(size=(len(_DISTURBANCES), n))
    starts = jnp.asarray(np.array(_DISTURBANCES)[:, None] * directions, dtype)
    small = _small(dtype)

    def wanted(carry):
        k, _, size = carry
        return (k < len(_DISTURBANCES)) & ~(size < small)

    def attempt(carry):
        k, best, smallest = carry
        found, size = _levenberg(problem, starts[k], small)
        better = size < smallest
        return k + 1, jnp.where(better, found, best), jnp.where(better, size, smallest)

    return jax.lax.while_loop(wanted, attempt, (0, starts[0], jnp.asarray(jnp.inf, dtype)))[1:]


def _levenberg(problem: LeastChange, v, small):
    """Levenberg's method in the metric, until the residual is small."""
    weights = inverse(problem.metric)

    def improved(carry):
        v, _, damping, k = carry
        r, J = _valued(problem.equations, v)
        S = J @ weights @ J.T
        damped = S + damping * jnp.trace(S) / len(r) * jnp.eye(len(r), dtype=r.dtype)
        trial = v - weights @ (J.T @ (inverse(damped) @ r))
        after = problem.equations(trial)
        good = jnp.sum(after**2) < jnp.sum(r**2)
        damping = jnp.where(good, 0.1 * damping, 10.0 * damping)
        size = jnp.max(jnp.abs(jnp.where(good, after, r)), initial=0.0)
        return jnp.where(good, trial, v), size, jnp.maximum(damping, 0.01 * small**2), k + 1

    def wanted(carry):
        _, size, damping, k = carry
        return ~(size < small) & (damping < 1.0 / small) & (k < _LEVENBERG_STEPS)

    start = v, jnp.asarray(jnp.inf, v.dtype), jnp.asarray(1e-2, v.dtype), 0
    return jax.lax.while_loop(wanted, improved, start)[:2]


def _nearest(problem: LeastChange, v):
    """The solution next to the solution `v` with a stationary size."""
    n, small = len(v), _small(v.dtype)

    def improved(carry):
        v, _, share, k = carry
        at = _Linearised(problem, v)
        weight = 2.0 * jnp.max(jnp.abs(at.multipliers), initial=0.0)
        right = jnp.concatenate([problem.metric @ v, at.residual])
        step = -(at.newton_saddle(problem, v) @ right)[:n]

        def back(v):
            """A step along the tangent leaves the equations: two steps back, and the merit."""

            def closer(_, v):
                return v - at.saddle[:n, n:] @ (at.basis @ problem.equations(v))

            v = jax.lax.fori_loop(0, 2, closer, v)
            penalty = jnp.sum(jnp.abs(at.basis @ problem.equations(v)))
            return v, 0.5 * v @ problem.metric @ v + weight * penalty

        trials, merits = jax.vmap(back)(jnp.stack([v + step, v + share * at.step]))
        now = 0.5 * v @ problem.metric @ v + weight * jnp.sum(jnp.abs(at.residual))
        last = jnp.max(jnp.abs(step)) <= small
        full, good = last | (merits[0] < now), merits[1] < now
        v = jnp.where(full, trials[0], jnp.where(good, trials[1], v))
        share = jnp.where(full | good, jnp.minimum(1.0, 2.0 * share), 0.25 * share)
        return v, last, share, k + 1

    def wanted(carry):
        _, last, share, k = carry
        return ~last & (share > small) & (k < _NEWTON_STEPS)

    start = v, jnp.array(False), jnp.ones((), v.dtype), 0
    return jax.lax.while_loop(wanted, improved, start)[0]


def _small(dtype) -> float:
    """What counts as small where convergence is quadratic."""
    return float(jnp.finfo(dtype).eps) ** 0.5
