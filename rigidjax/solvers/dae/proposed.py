"""Step-size control for methods that choose their own steps."""

import diffrax
import jax
import jax.numpy as jnp
import optimistix as optx

from ...annotations import Flag, Norm, Number, Scalar, StepSizeResult, Time, Vector, Y
from .equations import stop_gradients
from .newton import SimplifiedNewton
from .predictive import estimate_first_step

_SAFETY = 0.9
# Relative change of a step that is none: what a projection of the step's end changes in the scale
# of errors.
_UNCHANGED = 1e-3
# Methods propose factors of at least 0.02, errors of at most 0.9 / 0.02.
_LARGEST = 45.0


def encode_step_factor(scale: Vector, accept: Flag, factor: Scalar) -> Vector:
    r"""An error estimate that tells the controller the step that the method wants.

    Methods of variable order know it best, but diffrax leaves it to the controller, and hands it
    the error estimate alone. So they return one with the norm $0.9 / f$ for a change of the step
    by the factor $f$: what a controller with error order 1 makes $f$ of. Of an accepted step that
    should become shorter, $f < 1$, the norm is between 0.9 and 1.

    The scale is that of diffrax's `PIDController`, by the larger of both ends of the step. With the
    start alone a rejected step with a large end would look accurate to it.

    **Arguments:** `scale`, (n,), of norm 1 for the controller, see `controller_scale`; `accept`;
    `factor`.
    """
    below = _SAFETY + 0.25 * jnp.clip(_SAFETY - factor, 0.0, 0.39)
    target = jnp.where(accept & (factor < 1), below, _SAFETY / factor)
    return scale * jnp.where(accept, target, jnp.maximum(target, 1.0))


def controller_scale(finder: SimplifiedNewton, y0: Y, y1: Y) -> Vector:
    """Return an error of a step from `y0` to `y1` whose norm is 1 for step-size controllers, (n,).

    **Arguments:** `finder`, with the tolerances and the norm; `y0`, `y1`, of the same structure.
    """
    largest = jax.tree.map(lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)), y0, y1)
    scale = finder.scale(stop_gradients(largest), None, jnp.ones(()))
    return scale / finder.norm(jax.tree.map(jnp.ones_like, y0))


class ProposedStepController(diffrax.AbstractAdaptiveStepSizeController):
    r"""Takes the steps that a method of variable order proposes.

    **Arguments:** `rtol`, `atol`, `norm`: the tolerances of the method.
    """

    rtol: Number
    atol: Number
    norm: Norm = optx.rms_norm

    def wrap(self, direction) -> "ProposedStepController":
        """Works in either direction of time."""
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order) -> tuple[Time, Flag]:
        """First step, for a method of order 1, from the size of the rates if it is not given."""
        if dt0 is None:
            dt0 = estimate_first_step(self, terms, t0, t1, y0, args, func, 2)
        return t0 + dt0, jnp.array(False)

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state: Flag
    ) -> StepSizeResult[Flag]:
        """Whether the step is accepted, and the ends of the next one."""

        def scaled(y0, y1, error):
            y = jnp.maximum(jnp.abs(y0), jnp.abs(y1))
            return error / (self.atol + self.rtol * y)

        h = t1 - t0
        size = self.norm(jax.tree.map(scaled, y0, y1_candidate, y_error))
        keep = size < 1
        longer = size <= _SAFETY * (1 + _UNCHANGED)
        # The scale of a diverging step is that of its projected end, which says nothing: without a
        # bound the next step could underflow to zero.
        factor = _SAFETY / jnp.clip(size, 1e-3, _LARGEST)
        factor = jnp.where(keep & ~longer, _SAFETY - 4.0 * (size - _SAFETY), factor)
        # As in the code DASSL from the second failure on.
        failed = ~keep & (controller_state | ~jnp.isfinite(size))
        factor = jnp.where(failed, 0.25, factor)
        factor = jnp.where(jnp.abs(factor - 1.0) < _UNCHANGED, 1.0, factor)
        factor = jax.lax.stop_gradient(factor).astype(jnp.result_type(h))
        start = jnp.where(keep, t1, t0)
        return keep, start, start + h * factor, False, ~keep, diffrax.RESULTS.successful
