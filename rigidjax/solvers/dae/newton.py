"""The simplified Newton iteration of the implicit solvers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array

from ...annotations import Count, Flag, Norm, Number, Scalar, Vector, Y
from ..terms import Index, flatten
from .equations import index_scaling

# Increments of round-off: the iteration was this fast, and then is no longer faster than that; they
# may have this part of the error of a step. Where the tolerance is close to what the conditioning
# allows they stay above any smaller part, and no shorter step makes them smaller (Andrews'
# mechanism at index 1 and 3e-11: 0.04 to 0.14).
_FAST, _STALLED, _ROUND_OFF = 0.02, 0.5, 0.3


class SimplifiedNewton(eqx.Module):
    r"""Newton's method with one Jacobian and one factorisation for all of its iterations.

    It ends when $\eta\,\|\Delta\| \le \kappa$ in the norm in which the error of a step may be 1,
    $\eta = \Theta/(1 - \Theta)$ with $\Theta$ the rate of convergence, and gives up when $\Theta$
    says that it will not end within `max_steps`.

    **Arguments:** `rtol`, `atol`, `norm`: of the error of a step (`diffrax.diffeqsolve` fills them
    in from the step-size controller); `kappa`: the tolerance, as a part of that of the step; `None`
    for the smaller of 0.03 and the root of `rtol`; `max_steps`; `reuse`: a Jacobian is kept for
    the next step if $\Theta$ is below this; `patience`: iterations before it may give up.
    **Source:** Hairer-Wanner II, IV.8 (8.10), (8.11).
    """

    rtol: Number
    atol: Number
    norm: Norm = optx.rms_norm
    kappa: float | None = None
    max_steps: int = eqx.field(static=True, default=8)
    reuse: float = 1e-3
    patience: int = eqx.field(static=True, default=1)

    def scale(self, y: Y, exponents: Index, h: Scalar) -> Vector:
        """Error of each unknown that counts as 1, flattened."""
        tree = jax.tree.map(lambda y: self.atol + self.rtol * jnp.abs(y), y)
        return flatten(tree)[0] / index_scaling(exponents, h)

    def tolerance(self, y: Y, scale: Vector) -> Scalar:
        """End of the iteration, never below round-off."""
        kappa = self.kappa
        if kappa is None:
            rtol = jnp.max(jnp.asarray(self.rtol))
            kappa = jnp.where(rtol > 0, jnp.minimum(0.03, jnp.sqrt(rtol)), 0.03)
        y, unravel = flatten(y)
        floor = 10 * jnp.finfo(y.dtype).eps * self.norm(unravel(jnp.abs(y) / scale))
        return jnp.maximum(kappa, floor).astype(y.dtype)


def default_newton(kappa: float | None = None) -> SimplifiedNewton:
    """A `SimplifiedNewton` that takes its tolerances from the step-size controller."""
    make: Any = diffrax.with_stepsize_controller_tols(SimplifiedNewton)  # pyright: ignore
    return make(kappa=kappa)


class NewtonSolution(NamedTuple):
    """How an iteration ended.

    **Attributes:** `Z`, the solution; `converged`; `theta`, rate of convergence, 0 after a
    single iteration; `eta`, the factor of the last increment that estimates the error; `count`,
    of iterations.
    """

    Z: Array
    converged: Flag
    theta: Scalar
    eta: Scalar
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride]


def iterate(
    residual: Callable[[Array], Array], solve: Callable[[Array], Array], Z: Array, eta: Scalar,
    tolerance: Scalar, norm: Norm, limit: int, patience: int = 1,
) -> NewtonSolution:  # fmt: skip
    r"""Simplified Newton iterations.

    **Arguments:** `residual`, a function of `Z`; `solve`, that of a fixed Newton matrix, a function
    of the residual; `Z`, start; `eta`, of the last step; `tolerance`; `norm`, of increments;
    `limit`, of iterations; `patience`, iterations before it may give up.
    **Returns:** a `NewtonSolution`.
    **Source:** Hairer-Wanner II, IV.8 (8.10), (8.11).
    """
    eps = jnp.finfo(Z.dtype).eps
    one, no = jnp.ones((), Z.dtype), jnp.array(False)

    def turn(carry):
        k, Z, size, ratio, best, _, _, _, _ = carry
        change = -solve(residual(Z))
        new_size = norm(change)
        new_ratio = new_size / jnp.where(size > 0, size, 1.0)
        # From the third iteration on the mean of the last two.
        theta = jnp.where(k > 1, jnp.sqrt(new_ratio * ratio), new_ratio)
        theta = jnp.where(k > 0, theta, 0.0)
        slow = (k > 0) & ~(theta < 0.99)
        # Increments at round-off do not get smaller; if small enough they are good nevertheless.
        rest = jnp.where(slow, 100.0, theta / jnp.where(slow, 1.0, 1.0 - theta))
        new_eta = jnp.where(k > 0, rest, jnp.maximum(eta, eps) ** 0.8)
        error = new_eta * new_size
        # Fast at first, and then not: what is left of the increments is round-off.
        best = jnp.where(k > 0, jnp.minimum(best, new_ratio), best)
        noise = (best < _FAST) & (new_ratio > _STALLED) & (new_size <= _ROUND_OFF)
        converged = (error <= tolerance) | noise
        # What the remaining iterations would leave.
        hopeless = (k > 0) & (theta ** (limit - 1 - k) * error > tolerance)
        given_up = (slow | hopeless) & (k >= patience)
        failed = ~converged & (given_up | (k == limit - 1) | ~jnp.isfinite(new_size))
        return k + 1, Z + change, new_size, new_ratio, best, theta, new_eta, converged, failed

    def running(carry):
        return ~(carry[-1] | carry[-2])

    start = jnp.array(0), Z, one, one, one, jnp.zeros_like(one), one, no, no
    count, Z, _, _, _, theta, eta, converged, _ = jax.lax.while_loop(running, turn, start)
    return NewtonSolution(Z, converged, theta, eta, count)
