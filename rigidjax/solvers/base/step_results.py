"""Results of steps of the implicit solvers."""

from typing import Any

import diffrax
import jax.numpy as jnp

from ...annotations import Flag, Matrix, Scalar, Time, Vector

RESULTS: Any = diffrax.RESULTS


def newton_result(okay: Flag, K: Scalar | Matrix, size: Scalar) -> diffrax.RESULTS:
    """Return the result of a Newton iteration.

    **Arguments:** `okay`, whether it converged; `K`, the Jacobian or its largest entry; `size`,
    largest entry of the inverse of the Newton matrix.
    **Returns:** a `diffrax.RESULTS`: `successful`, or `nonfinite` for a Jacobian that is not
    finite, `singular` for a singular Newton matrix, `nonlinear_divergence` otherwise.
    """
    finite = jnp.all(jnp.isfinite(K))
    singular = ~(size < 1.0 / jnp.finfo(K.dtype).eps)
    failure = RESULTS.where(singular, RESULTS.singular, RESULTS.nonlinear_divergence)
    failure = RESULTS.where(finite, failure, RESULTS.nonfinite)
    return RESULTS.where(okay, RESULTS.successful, failure)


def stop_at_roundoff(
    t0: Time, t1: Time, size: Scalar, error: Vector, result: diffrax.RESULTS
) -> tuple[Vector, diffrax.RESULTS]:
    """Return the error estimate and the result of a step; end runs at steps of round-off length.

    A step-size controller rejects a step with a large error and tries a shorter one, without end.
    If a failed step is as short as round-off in time, its error is set to zero, so that the
    controller accepts it, and its result ends the run.

    **Arguments:** `t0`, `t1`, s; `size`, norm of the error, below 1 for an acceptable step;
    `error`; `result`.
    """
    info = jnp.finfo(jnp.result_type(t0))
    # At t0 = 0 round-off in time is zero; an absolute bound keeps steps from underflow.
    least = jnp.maximum(10 * info.eps * jnp.maximum(jnp.abs(t0), jnp.abs(t1)), info.tiny**0.5)
    short = (t1 - t0 <= least) & ~(size < 1)
    failure = RESULTS.where(result == RESULTS.successful, RESULTS.dt_min_reached, result)
    return jnp.where(short, 0.0, error), RESULTS.where(short, failure, result)
