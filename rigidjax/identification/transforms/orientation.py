"""Orientations, stored as unit quaternions."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...rotations import so3
from .base import AbstractTransform, ActiveLimit, Limits, element_names, no_limits


class Orientation(AbstractTransform):
    r"""Unit quaternions (..., 4), by rotation vectors from the start value, $p = p_0 \exp(u)$.

    Reports contain the rotation vector of $p$ and, as its uncertainty, that of a small rotation
    about the body axes, rad.
    """

    is_bounded: ClassVar[bool] = False

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        if not shape or shape[-1] != 4:
            raise ValueError(f"`Orientation` takes quaternions of shape (..., 4); got {shape}")
        return element_names((*shape[:-1], 3))

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(range(3 * int(np.prod(shape[:-1]))))

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        norm = np.linalg.norm(leaf, axis=-1, keepdims=True)
        if not np.all(np.abs(norm - 1) <= 1e-6):
            raise ValueError(f"an orientation must start as a unit quaternion; got {leaf}")
        return leaf / norm, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return jnp.zeros(leaf.size // 4 * 3, leaf.dtype)

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        rotated = jax.vmap(lambda p, v: so3.multiply(p, so3.exp_quaternion(v)))(
            reference.reshape(-1, 4), u.reshape(-1, 3)
        )
        return rotated.reshape(reference.shape)

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return jax.vmap(so3.log_quaternion)(leaf.reshape(-1, 4)).reshape(-1)

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return self.leaf(change, leaf)

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        rotation = jax.vmap(lambda p, q: so3.log_quaternion(so3.multiply(so3.conjugate(p), q)))(
            leaf.reshape(-1, 4), new.reshape(-1, 4)
        )
        return rotation.reshape(-1)

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.ones_like(self.coordinates(reference))

    def limits(self, reference: Array) -> Limits:
        return no_limits(reference.size // 4 * 3, reference.dtype)

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        return ()
