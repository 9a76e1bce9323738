"""Step-size controllers of the implicit solvers: predictive, and for steps that methods propose."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import diffrax
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, PyTree

from ...annotations import Args, Flag, Norm, Number, Scalar, StepSizeResult, Terms, Time, Vector, Y
from .equations import stop_gradients
from .newton import SimplifiedNewton


class PredictiveState(NamedTuple):
    """Length and error of the last accepted step, and whether the last attempt was rejected."""

    h: Scalar
    error: Scalar
    first: Flag
    rejected: Flag


class AbstractToleranceController(diffrax.AbstractAdaptiveStepSizeController):
    """A controller of steps in either direction of time, with the tolerances of the error.

    **Attributes:** `first_error_order`, for the estimate of the first step; `None` for that of the
    solver.
    """

    rtol: Number
    atol: Number
    norm: Norm = optx.rms_norm

    first_error_order: ClassVar[int | None] = None

    @abc.abstractmethod
    def initial_state(self, y0: Y) -> PyTree[Array]:
        """Return the state of the controller before the first step."""

    def wrap(self, direction: Number) -> Self:
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
    ) -> tuple[Time, PyTree[Array]]:
        """Return the end of the first step, estimated if `dt0` is `None`, and the state."""
        if dt0 is None:
            order: Any = self.first_error_order or error_order
            dt0 = estimate_first_step(self, terms, t0, t1, y0, args, func, order)
        return t0 + dt0, self.initial_state(y0)


class PredictiveController(AbstractToleranceController):
    r"""Gustafsson's predictive control, as in the code RADAU5.

    The next step is the smaller of the step that the error allows, and the step that the error
    allows if it continues to change as over the last two steps. The step length is kept where it
    would grow by at most the factor `keep`, so that a solver can reuse its factorisation.

    **Arguments:**

    - `rtol`, `atol`: a step is accepted if the norm of error / (atol + rtol |y|) is below 1;
      scalars or arrays like `y`.
    - `norm`: the root mean square by default.
    - `safety`, `factormin`, `factormax`: safety factor, smallest and largest change of the step.
    - `keep`: largest growth for which the step length is kept.

    **Source:** Hairer-Wanner II, IV.8 (8.25), and "numerical experience" there.
    """

    safety: float = 0.8
    factormin: float = 0.2
    factormax: float = 8.0
    keep: float = 1.2

    def initial_state(self, y0: Y) -> PredictiveState:
        dtype = jnp.result_type(*jax.tree.leaves(y0))
        one, yes = jnp.ones((), dtype), jnp.array(True)
        return PredictiveState(one, one, yes, ~yes)

    def adapt_step_size(
        self,
        t0: Time,
        t1: Time,
        y0: Y,
        y1_candidate: Y,
        args: Args,
        y_error: Y | None,
        error_order: Number,
        controller_state: PredictiveState,
    ) -> StepSizeResult[PredictiveState]:
        """Return whether the step is accepted, and the ends of the next step."""
        if y_error is None:
            raise ValueError(
                "`PredictiveController` needs a solver that estimates its error; use "
                "`diffrax.ConstantStepSize()` with this one."
            )

        def relative_error(y0, y1, error):
            y1 = jnp.where(jnp.any(jnp.isnan(y1)), y0, y1)
            y = jnp.maximum(jnp.abs(y0), jnp.abs(y1))
            return error / (self.atol + self.rtol * y)

        last = controller_state
        h = t1 - t0
        error = self.norm(jax.tree.map(relative_error, y0, y1_candidate, y_error))
        error = jax.lax.stop_gradient(error).astype(last.error.dtype)
        keep = error < 1
        length = jnp.asarray(jax.lax.stop_gradient(h), error.dtype)
        power = 1.0 / error_order
        bounded = jnp.maximum(error, 1e-10)
        factor = self.safety * bounded ** (-power)
        trend = (length / last.h) * (last.error / bounded**2) ** power * self.safety
        factor = jnp.where(keep & jnp.logical_not(last.first), jnp.minimum(factor, trend), factor)
        factor = jnp.clip(factor, self.factormin, self.factormax)
        factor = jnp.where(last.rejected, jnp.minimum(factor, 1.0), factor)
        factor = jnp.where(keep & (factor >= 1) & (factor <= self.keep), 1.0, factor)
        # A rejected first step may be too long by any factor.
        factor = jnp.where(keep, factor, jnp.where(last.first, 0.1, jnp.minimum(factor, 0.9)))
        state = PredictiveState(
            jnp.where(keep, length, last.h),
            jnp.where(keep, jnp.maximum(error, 1e-2), last.error),
            last.first & ~keep,
            ~keep,
        )
        # The length is multiplied by exactly 1 where it is kept, so that factors can be reused.
        start = jnp.where(keep, t1, t0)
        factor = jax.lax.stop_gradient(factor).astype(jnp.result_type(h))
        return keep, start, start + h * factor, False, state, diffrax.RESULTS.successful


def estimate_first_step(
    controller: diffrax.AbstractAdaptiveStepSizeController, terms: Terms, t0: Time, t1: Time, y0: Y,
    args: Args, func: Callable[..., Y], error_order: Number,
) -> Scalar:  # fmt: skip
    """Estimate the first step, at most `t1 - t0`, from the size of the rate and its change.

    An explicit Euler step estimates the second derivative. The estimated error of the first step
    is 0.01 in units of the tolerance.

    **Source:** Hairer-Norsett-Wanner I, II.4, p. 169.
    """

    def size(v):
        scaled = jax.tree.map(
            lambda v, y: v / (controller.atol + controller.rtol * jnp.abs(y)), v, y0
        )
        return controller.norm(scaled)

    def euler_step(h):
        return jax.tree.map(lambda y, f: y + h.astype(y.dtype) * f, y0, f0)

    f0 = func(terms, t0, y0, args)
    d0, d1 = size(y0), size(f0)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1.0, d1))
    h0 = jnp.minimum(h0, t1 - t0)
    f1 = func(terms, t0 + h0.astype(jnp.result_type(t0)), euler_step(h0), args)
    d2 = size(jax.tree.map(lambda a, b: b - a, f0, f1)) / h0
    large = jnp.maximum(d1, d2)
    flat = ~(large > 1e-15)
    h1 = jnp.where(
        flat,
        jnp.maximum(1e-6, 1e-3 * h0),
        (0.01 / jnp.where(flat, 1.0, large)) ** (1 / error_order),
    )
    h = jnp.minimum(jnp.minimum(100 * h0, h1), t1 - t0)
    return jax.lax.stop_gradient(jnp.where(jnp.isfinite(h), h, 1e-6)).astype(jnp.result_type(t0))


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


class ProposedStepController(AbstractToleranceController):
    r"""Step-size controller that takes the steps that a method of variable order proposes.

    **Arguments:** `rtol`, `atol`, `norm`: the tolerances and the norm of the method.
    """

    # The first step is of order 1.
    first_error_order: ClassVar[int | None] = 2

    def initial_state(self, y0: Y) -> Flag:
        return jnp.array(False)

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
