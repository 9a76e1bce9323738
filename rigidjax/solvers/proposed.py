"""Step-size control for methods that choose their own steps."""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import optimistix as optx

from .predictive import first_step

_SAFETY = 0.9


def proposal(scale: Any, accept: Any, factor: Any) -> Any:
    r"""An error estimate that tells the controller the step that the method wants.

    Methods of variable order know it best, but diffrax leaves it to the controller, and hands it
    the error estimate alone. So they return one with the norm $0.9 / f$ for a change of the step
    by the factor $f$: what a controller with error order 1 makes $f$ of. Of an accepted step that
    should become shorter, $f < 1$, the norm is between 0.9 and 1.

    **Arguments:** `scale`, (n,), of norm 1 for the controller; `accept`; `factor`.
    """
    below = _SAFETY + 0.25 * jnp.clip(_SAFETY - factor, 0.0, 0.39)
    target = jnp.where(accept & (factor < 1), below, _SAFETY / factor)
    return scale * jnp.where(accept, target, jnp.maximum(target, 1.0))


class ProposedStepController(diffrax.AbstractAdaptiveStepSizeController):
    r"""Takes the steps that a method of variable order proposes.

    **Arguments:** `rtol`, `atol`, `norm`: the tolerances of the method.
    """

    rtol: Any
    atol: Any
    norm: Callable[[Any], Any] = optx.rms_norm

    def wrap(self, direction: Any) -> "ProposedStepController":
        """Works in either direction of time."""
        return self

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Any,
        dt0: Any,
        args: Any,
        func: Any,
        error_order: Any,
    ) -> tuple[Any, Any]:
        """First step, for a method of order 1, from the size of the rates if it is not given."""
        if dt0 is None:
            dt0 = first_step(self, terms, t0, t1, y0, args, func, 2)
        return t0 + dt0, jnp.array(False)

    def adapt_step_size(
        self, t0: Any, t1: Any, y0: Any, y1_candidate: Any, args: Any, y_error: Any,
        error_order: Any, controller_state: Any,
    ) -> tuple[Any, Any, Any, Any, Any, diffrax.RESULTS]:  # fmt: skip
        """Whether the step is accepted, and the ends of the next one."""

        def scaled(y0, error):
            return error / (self.atol + self.rtol * jnp.abs(y0))

        h = t1 - t0
        size = self.norm(jax.tree.map(scaled, y0, y_error))
        keep = size < 1
        longer = size <= _SAFETY * (1 + 1e-6)
        factor = _SAFETY / jnp.maximum(size, 1e-3)
        factor = jnp.where(keep & ~longer, _SAFETY - 4.0 * (size - _SAFETY), factor)
        # As in the code DASSL from the second failure on.
        failed = ~keep & (controller_state | ~jnp.isfinite(size))
        factor = jnp.where(failed, 0.25, factor)
        factor = jnp.where(jnp.abs(factor - 1.0) < 1e-6, 1.0, factor)
        factor = jax.lax.stop_gradient(factor).astype(h.dtype)
        start = jnp.where(keep, t1, t0)
        return keep, start, start + h * factor, False, ~keep, diffrax.RESULTS.successful
