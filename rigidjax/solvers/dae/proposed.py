"""Step-size control for methods of variable order, which propose their own steps."""

from collections.abc import Callable

import diffrax
import jax
import jax.numpy as jnp
import optimistix as optx

from ...annotations import Args, Flag, Norm, Number, Scalar, StepSizeResult, Terms, Time, Vector, Y
from .equations import stop_gradients
from .newton import SimplifiedNewton
from .predictive import estimate_first_step

_SAFETY = 0.9
# Relative change of a step that counts as none: a projection of the end of the step changes the
# scale of the error slightly.
_UNCHANGED = 1e-3
# Largest encoded error: methods propose factors of at least 0.02, and 0.9 / 0.02 = 45.
_LARGEST = 45.0


def encode_step_factor(scale: Vector, accept: Flag, factor: Scalar) -> Vector:
    r"""Return an error estimate that encodes the step factor that the method proposes.

    A method of variable order chooses its own step, but diffrax passes only the error estimate to
    the controller, which computes the step. The method therefore returns an error with the norm
    $0.9 / f$ for the step factor $f$: a controller of error order 1 recovers $f$ from it. For an
    accepted step with $f < 1$ the norm is between 0.9 and 1.

    Errors are scaled by the larger of both ends of the step, as in diffrax's `PIDController`. With
    the scale of the start, that controller would accept a rejected step with a large end.

    **Arguments:** `scale`, (n,), error of norm 1, see `controller_scale`; `accept`, whether the
    step is accepted; `factor`, $f$.
    """
    below = _SAFETY + 0.25 * jnp.clip(_SAFETY - factor, 0.0, 0.39)
    target = jnp.where(accept & (factor < 1), below, _SAFETY / factor)
    return scale * jnp.where(accept, target, jnp.maximum(target, 1.0))


def controller_scale(finder: SimplifiedNewton, y0: Y, y1: Y) -> Vector:
    """Return an error of a step from `y0` to `y1` whose norm is 1 for step-size controllers, (n,).

    **Arguments:** `finder`, with the tolerances and the norm; `y0`, `y1`, ends of the step.
    """
    largest = jax.tree.map(lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)), y0, y1)
    scale = finder.scale(stop_gradients(largest), None, jnp.ones(()))
    return scale / finder.norm(jax.tree.map(jnp.ones_like, y0))


class ProposedStepController(diffrax.AbstractAdaptiveStepSizeController):
    r"""Step-size controller that takes the steps that a method of variable order proposes.

    **Arguments:** `rtol`, `atol`, `norm`: the tolerances and the norm of the method.
    """

    rtol: Number
    atol: Number
    norm: Norm = optx.rms_norm

    def wrap(self, direction: Number) -> "ProposedStepController":
        """Return the controller itself, which works in both directions of time."""
        return self

    def init(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        dt0: Time | None,
        args: Args,
        func: Callable[..., Y],
        error_order: Number | None,
    ) -> tuple[Time, Flag]:
        """Return the end of the first step, estimated for order 1 if `dt0` is `None`."""
        if dt0 is None:
            dt0 = estimate_first_step(self, terms, t0, t1, y0, args, func, 2)
        return t0 + dt0, jnp.array(False)

    def adapt_step_size(
        self,
        t0: Time,
        t1: Time,
        y0: Y,
        y1_candidate: Y,
        args: Args,
        y_error: Y | None,
        error_order: Number,
        controller_state: Flag,
    ) -> StepSizeResult[Flag]:
        """Return whether the step is accepted, and the ends of the next step."""

        def relative_error(y0, y1, error):
            y = jnp.maximum(jnp.abs(y0), jnp.abs(y1))
            return error / (self.atol + self.rtol * y)

        h = t1 - t0
        size = self.norm(jax.tree.map(relative_error, y0, y1_candidate, y_error))
        keep = size < 1
        longer = size <= _SAFETY * (1 + _UNCHANGED)
        # The scale is meaningless for the projected end of a diverging step: the bound prevents the
        # next step from underflow to zero.
        factor = _SAFETY / jnp.clip(size, 1e-3, _LARGEST)
        factor = jnp.where(keep & ~longer, _SAFETY - 4.0 * (size - _SAFETY), factor)
        # From the second failure on the factor is fixed, as in the code DASSL.
        failed = ~keep & (controller_state | ~jnp.isfinite(size))
        factor = jnp.where(failed, 0.25, factor)
        factor = jnp.where(jnp.abs(factor - 1.0) < _UNCHANGED, 1.0, factor)
        factor = jax.lax.stop_gradient(factor).astype(jnp.result_type(h))
        start = jnp.where(keep, t1, t0)
        return keep, start, start + h * factor, False, ~keep, diffrax.RESULTS.successful
