"""Bias, scale and misalignment of sensors with three axes."""

import jax.numpy as jnp

from ..annotations import Vector3
from ..rotations import so3

ZERO = (0.0, 0.0, 0.0)
ONE = (1.0, 1.0, 1.0)


def apply_calibration(
    ideal: Vector3, bias: Vector3, scale: Vector3, misalignment: Vector3
) -> Vector3:
    r"""Return the reading $s \circ \exp(\tilde m)^T v + b$ of a sensor.

    **Arguments:** `ideal`, $v$, in body components; `bias`, $b$, in the unit of $v$; `scale`, $s$;
    `misalignment`, $m$, the rotation vector from body axes to sensor axes, rad.
    """
    dtype = ideal.dtype
    # The matrix is common to all samples; rotating by a quaternion takes more operations each time.
    sensor_components = so3.exp(misalignment.astype(dtype)).T @ ideal
    return scale.astype(dtype) * sensor_components + bias.astype(dtype)


def remove_calibration(
    reading: Vector3, bias: Vector3, scale: Vector3, misalignment: Vector3
) -> Vector3:
    """Return the ideal value of a reading, the inverse of `apply_calibration`."""
    return so3.rotate(so3.exp_quaternion(misalignment), jnp.asarray((reading - bias) / scale))
