"""The physical, parametrization-free state of a system of rigid bodies."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .checks import ArrayInput, as_leaf, float_array


def _rows(name: str, value: Any, width: int) -> Any:
    # An array of single precision makes a state of single precision.
    if not (
        isinstance(value, jax.Array | np.ndarray) and jnp.issubdtype(value.dtype, jnp.floating)
    ):
        value = float_array(value, f"State({name}=...)")
    value = value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
    if value.ndim == 1:
        value = value[None]
    if value.ndim != 2 or value.shape[1] != width:
        raise ValueError(
            f"`State({name}=...)` must have shape (L, {width}), one row for each body; "
            f"got shape {value.shape}. For many states at once use `jax.vmap`."
        )
    return value


class State(eqx.Module):
    """Poses and twists of all bodies, whatever the parametrization.

    **Arguments:**

    - `position`: positions of the centres of mass, shape (L, 3), space components, m.
    - `orientation`: unit quaternions, scalar first, shape (L, 4); body to space.
    - `velocity`: velocities of the centres of mass, shape (L, 3), space components, m/s.
    - `angular_velocity`: shape (L, 3), **body** components, rad/s.

    What is left out is zero (position, velocity, angular velocity) or the identity
    (orientation). One body may be given without its leading axis. A `FixedPointBody` has
    orientation (1, 4) and angular velocity (1, 3); its position and velocity are zero.

    **Raises:** `ValueError` for a wrong shape or different numbers of bodies.
    """

    position: Float[Array, "L 3"]
    orientation: Float[Array, "L 4"]
    velocity: Float[Array, "L 3"]
    angular_velocity: Float[Array, "L 3"]

    def __init__(
        self,
        position: ArrayInput | None = None,
        orientation: ArrayInput | None = None,
        velocity: ArrayInput | None = None,
        angular_velocity: ArrayInput | None = None,
    ):
        given = {
            name: _rows(name, value, width)
            for name, value, width in (
                ("position", position, 3),
                ("orientation", orientation, 4),
                ("velocity", velocity, 3),
                ("angular_velocity", angular_velocity, 3),
            )
            if value is not None
        }
        counts = {name: value.shape[0] for name, value in given.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"`State(...)` needs one row for each body in every part; got {counts}."
            )
        num_bodies = next(iter(counts.values()), 1)
        dtype = jnp.result_type(*given.values()) if given else jnp.result_type(float)
        given = {name: value.astype(dtype) for name, value in given.items()}
        zeros, identity = np.zeros((num_bodies, 3), dtype), np.eye(1, 4, dtype=dtype)
        self.position = as_leaf(given.get("position", zeros))
        self.orientation = as_leaf(given.get("orientation", identity.repeat(num_bodies, 0)))
        self.velocity = as_leaf(given.get("velocity", zeros))
        self.angular_velocity = as_leaf(given.get("angular_velocity", zeros))

    def normalized(self) -> "State":
        """The same state with quaternions of unit length."""
        p = self.orientation
        p = p / jnp.sqrt(jnp.sum(p * p, axis=-1, keepdims=True))
        return State(self.position, p, self.velocity, self.angular_velocity)

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return self.orientation.shape[-2]

    def check_rows(self, num_bodies: int) -> None:
        """Raise `ValueError` unless it has a row for each of so many bodies."""
        if self.num_bodies != num_bodies:
            raise ValueError(
                f"The system has {num_bodies} bodies, the state has {self.num_bodies}. Give "
                "`State` one row for each body."
            )
