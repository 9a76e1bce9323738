"""How a step of an implicit solver can fail."""

from typing import Any

import diffrax
import jax.numpy as jnp

from ..annotations import Flag, Matrix, Scalar, Time, Vector

RESULTS: Any = diffrax.RESULTS


def newton_result(okay: Flag, K: Scalar | Matrix, size: Scalar) -> diffrax.RESULTS:
    """Result of a Newton iteration.

    **Arguments:** `okay`, whether it converged; `K`, the Jacobian or its largest entry; `size`, of
    the inverse of the Newton matrix.
    **Returns:** a `diffrax.RESULTS`: `successful`, or `nonfinite` for a Jacobian that is not
    finite, `singular` for a matrix without inverse, `nonlinear_divergence` for anything else.
    """
    finite = jnp.all(jnp.isfinite(K))
    singular = ~(size < 1.0 / jnp.finfo(K.dtype).eps)
    failure = RESULTS.where(singular, RESULTS.singular, RESULTS.nonlinear_divergence)
    failure = RESULTS.where(finite, failure, RESULTS.nonfinite)
    return RESULTS.where(okay, RESULTS.successful, failure)


def stop_at_roundoff(
    t0: Time, t1: Time, size: Scalar, error: Vector, result: diffrax.RESULTS
) -> tuple[Vector, diffrax.RESULTS]:
    """Error estimate and result of a step, such that no run goes on at steps of round-off.

    Controllers reject a step with a large error and make a shorter one, for ever. A step so short
    that it cannot be rejected has no error, and a result that ends the run.

    **Arguments:** `t0`, `t1`; `size` of the error, below 1 if the step is good; `error`; `result`.
    """
    info = jnp.finfo(jnp.result_type(t0))
    # At t0 = 0 there is no round-off; steps must not come to nothing all the same.
    least = jnp.maximum(10 * info.eps * jnp.maximum(jnp.abs(t0), jnp.abs(t1)), info.tiny**0.5)
    short = (t1 - t0 <= least) & ~(size < 1)
    reached = RESULTS.where(result == RESULTS.successful, RESULTS.dt_min_reached, result)
    return jnp.where(short, 0.0, error), RESULTS.where(short, reached, result)
