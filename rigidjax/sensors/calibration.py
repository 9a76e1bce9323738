"""How a sensor with three axes differs from an ideal one."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..rotations import so3

ZERO = (0.0, 0.0, 0.0)
ONE = (1.0, 1.0, 1.0)


def reading(
    ideal: Float[Array, "3"],
    bias: Float[Array, "3"],
    scale: Float[Array, "3"],
    misalignment: Float[Array, "3"],
) -> Float[Array, "3"]:
    r"""What the sensor reads, $s \circ \exp(\tilde m)^T v + b$.

    **Arguments:** `ideal`, $v$, in body components; `bias`, $b$, in the unit of $v$; `scale`, $s$;
    `misalignment`, $m$, the rotation vector that takes body axes to sensor axes, rad.
    """
    dtype = ideal.dtype
    # As a matrix, which is the same for all samples: a quaternion takes three times the operations.
    turned = so3.exp(misalignment.astype(dtype)).T @ ideal
    return scale.astype(dtype) * turned + bias.astype(dtype)


def ideal_value(
    read: Float[Array, "3"],
    bias: Float[Array, "3"],
    scale: Float[Array, "3"],
    misalignment: Float[Array, "3"],
) -> Float[Array, "3"]:
    """The inverse of `reading`."""
    return so3.rotate(so3.exp_quaternion(misalignment), jnp.asarray((read - bias) / scale))
