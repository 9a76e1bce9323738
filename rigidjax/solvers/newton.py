"""Tolerances of the simplified Newton iteration of the implicit solvers."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

from .equations import scaling
from .terms import flattened


class SimplifiedNewton(eqx.Module):
    r"""Newton's method with one Jacobian and one factorisation for all of its iterations.

    It ends when $\eta\,\|\Delta\| \le \kappa$ in the norm in which the error of a step may be 1,
    $\eta = \Theta/(1 - \Theta)$ with $\Theta$ the rate of convergence, and gives up when $\Theta$
    says that it will not end within `max_steps`.

    **Arguments:** `rtol`, `atol`, `norm`: of the error of a step (`diffrax.diffeqsolve` fills them
    in from the step-size controller); `kappa`: the tolerance, as a part of that of the step; `None`
    for the smaller of 0.03 and the root of `rtol`; `max_steps`; `reuse`: a Jacobian is kept for
    the next step if $\Theta$ is below this.
    **Source:** Hairer-Wanner II, IV.8 (8.10), (8.11).
    """

    rtol: Any
    atol: Any
    norm: Callable[[Any], Any] = optx.rms_norm
    kappa: float | None = None
    max_steps: int = eqx.field(static=True, default=8)
    reuse: float = 1e-3

    def scale(self, y: Any, exponents: tuple[int, ...] | None, h: Any) -> Float[Array, " n"]:
        """Error of each unknown that counts as 1, flattened."""
        tree = jax.tree.map(lambda y: self.atol + self.rtol * jnp.abs(y), y)
        return flattened(tree)[0] / scaling(exponents, h)

    def tolerance(self, y: Any, scale: Float[Array, " n"]) -> Float[Array, ""]:
        """End of the iteration, never below round-off."""
        kappa = self.kappa
        if kappa is None:
            rtol = jnp.max(jnp.asarray(self.rtol))
            kappa = jnp.where(rtol > 0, jnp.minimum(0.03, jnp.sqrt(rtol)), 0.03)
        y, unravel = flattened(y)
        floor = 10 * jnp.finfo(y.dtype).eps * self.norm(unravel(jnp.abs(y) / scale))
        return jnp.maximum(kappa, floor).astype(y.dtype)


def default_newton() -> Any:
    """A `SimplifiedNewton` that takes its tolerances from the step-size controller."""
    make: Any = diffrax.with_stepsize_controller_tols(SimplifiedNewton)  # pyright: ignore
    return make()
