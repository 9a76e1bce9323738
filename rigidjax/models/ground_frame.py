"""Frames at rest."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..checks import vector_leaf
from .description import GROUND


class GroundFrame(eqx.Module):
    """A frame at rest: `point`, its origin, (3,) m; `orientation`, (4,), from frame to space."""

    name: str = eqx.field(static=True)
    point: Float[Array, "3"]
    orientation: Float[Array, "4"]

    def __init__(self, name: str, point: Any, orientation: Any):
        self.name = name
        self.point = vector_leaf(point, "GroundFrame(point=...)")
        self.orientation = jnp.asarray(orientation, float)

    @property
    def body(self) -> str:
        """Name of the body: the ground."""
        return GROUND
