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
from ..base.terms import Index, flatten
from .equations import index_scaling

# Increments count as round-off after a rate of convergence below `_FAST` followed by one above
# `_STALLED`, up to the fraction `_ROUND_OFF` of the admitted error of a step. With a tolerance
# close to the limit of the conditioning, no shorter step makes such increments smaller.
_FAST, _STALLED, _ROUND_OFF = 0.02, 0.5, 0.3


class SimplifiedNewton(eqx.Module):
    r"""Newton's method with one Jacobian and one factorisation for all of its iterations.

    The iteration converges when $\eta\,\|\Delta\| \le \kappa$ in the norm in which the error of a
    step may be 1, where $\eta = \Theta/(1 - \Theta)$ and $\Theta$ is the rate of convergence. It
    fails when $\Theta$ predicts no convergence within `max_steps`.

    **Arguments:**

    - `rtol`, `atol`, `norm`: tolerances and norm of the error of a step; `diffrax.diffeqsolve`
      takes them from the step-size controller.
    - `kappa`: tolerance $\kappa$ relative to that of the step; `None` for the smaller of 0.03 and
      the square root of `rtol`.
    - `max_steps`: largest number of iterations.
    - `reuse`: the Jacobian is kept for the next step if $\Theta$ is below this value.
    - `patience`: number of iterations before a prediction can end the iteration.

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
        """Return the admitted error of each unknown, flattened.

        **Arguments:** `y`; `exponents`, index of each unknown; `h`, length of the step.
        """
        tree = jax.tree.map(lambda y: self.atol + self.rtol * jnp.abs(y), y)
        return flatten(tree)[0] / index_scaling(exponents, h)

    def tolerance(self, y: Y, scale: Vector) -> Scalar:
        """Return the tolerance $\\kappa$ of the iteration, at least round-off."""
        kappa = self.kappa
        if kappa is None:
            rtol = jnp.max(jnp.asarray(self.rtol))
            kappa = jnp.where(rtol > 0, jnp.minimum(0.03, jnp.sqrt(rtol)), 0.03)
        y, unravel = flatten(y)
        floor = 10 * jnp.finfo(y.dtype).eps * self.norm(unravel(jnp.abs(y) / scale))
        return jnp.maximum(kappa, floor).astype(y.dtype)


def default_newton(kappa: float | None = None) -> SimplifiedNewton:
    """Return a `SimplifiedNewton` that takes its tolerances from the step-size controller."""
    make: Any = diffrax.with_stepsize_controller_tols(SimplifiedNewton)  # pyright: ignore
    return make(kappa=kappa)


class NewtonSolution(NamedTuple):
    """Result of a Newton iteration.

    **Attributes:** `Z`, the solution; `converged`; `theta`, rate of convergence, 0 after a
    single iteration; `eta`, ratio of the estimated error to the last increment; `size`, norm of the
    last increment; `count`, number of iterations.
    """

    Z: Array
    converged: Flag
    theta: Scalar
    eta: Scalar
    size: Scalar
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride]


def iterate(
    residual: Callable[[Array], Array], solve: Callable[[Array], Array], Z: Array, eta: Scalar,
    tolerance: Scalar, norm: Norm, limit: int, patience: int = 1,
) -> NewtonSolution:  # fmt: skip
    r"""Solve nonlinear equations by simplified Newton iterations.

    **Arguments:** `residual`, a function of `Z`; `solve`, solves the linear system with the fixed
    Newton matrix for a residual; `Z`, initial value; `eta`, from the last step; `tolerance`,
    $\kappa$; `norm`, of increments; `limit`, largest number of iterations; `patience`, number of
    iterations before a prediction can end the iteration.
    **Source:** Hairer-Wanner II, IV.8 (8.10), (8.11).
    """
    eps = jnp.finfo(Z.dtype).eps
    one, no = jnp.ones((), Z.dtype), jnp.array(False)

    def advance(carry):
        k, Z, size, ratio, best, _, _, _, _ = carry
        change = -solve(residual(Z))
        new_size = norm(change)
        new_ratio = new_size / jnp.where(size > 0, size, 1.0)
        # From the third iteration on, the rate is the geometric mean of the last two ratios.
        theta = jnp.where(k > 1, jnp.sqrt(new_ratio * ratio), new_ratio)
        theta = jnp.where(k > 0, theta, 0.0)
        slow = (k > 0) & ~(theta < 0.99)
        # Increments at round-off do not decrease; they are accepted if they are small enough.
        factor = jnp.where(slow, 100.0, theta / jnp.where(slow, 1.0, 1.0 - theta))
        new_eta = jnp.where(k > 0, factor, jnp.maximum(eta, eps) ** 0.8)
        error = new_eta * new_size
        # Convergence that was fast and then stalls leaves increments of round-off.
        best = jnp.where(k > 0, jnp.minimum(best, new_ratio), best)
        noise = (best < _FAST) & (new_ratio > _STALLED) & (new_size <= _ROUND_OFF)
        converged = (error <= tolerance) | noise
        # The remaining iterations are predicted to miss the tolerance.
        hopeless = (k > 0) & (theta ** (limit - 1 - k) * error > tolerance)
        gives_up = (slow | hopeless) & (k >= patience)
        failed = ~converged & (gives_up | (k == limit - 1) | ~jnp.isfinite(new_size))
        return k + 1, Z + change, new_size, new_ratio, best, theta, new_eta, converged, failed

    def is_running(carry):
        return ~(carry[-1] | carry[-2])

    start = jnp.array(0), Z, one, one, one, jnp.zeros_like(one), one, no, no
    count, Z, size, _, _, theta, eta, converged, _ = jax.lax.while_loop(is_running, advance, start)
    return NewtonSolution(Z, converged, theta, eta, size, count)
