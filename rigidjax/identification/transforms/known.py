"""Known values, which are not fitted."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .base import AbstractTransform, ActiveLimit, Limits, no_limits


class Known(AbstractTransform):
    """A leaf that keeps its start value: a known input of each run, such as a payload.

    ```python
    load = rj.Parameter(
        "load", lambda e: e.model.system.bodies[1].mass, rj.identification.Known(),
        per_run=True, start=[0.0, 0.5, 1.0],
    )
    ```

    It has no components in reports, and no effect on intervals.
    """

    is_bounded: ClassVar[bool] = False

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        return ()

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return ()

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return jnp.zeros(0, leaf.dtype)

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        return reference

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return jnp.zeros(0, leaf.dtype)

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return jnp.zeros(0, leaf.dtype)

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.zeros(0, reference.dtype)

    def limits(self, reference: Array) -> Limits:
        return no_limits(0, reference.dtype)

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        return ()
