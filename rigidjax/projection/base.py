"""What a projection provides."""

import abc

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..mechanics import has_joints
from ..mechanics.gaps import closed_gap
from ..results import JOINTS_OPEN


class AbstractProjection(eqx.Module):
    """Moves drifted unknowns back onto the constraints."""

    @abc.abstractmethod
    def __call__(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        """Projected unknowns, and whether the projection succeeded."""


def closed_or_not(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
) -> tuple[Unknowns, diffrax.RESULTS]:
    """Projected unknowns, and `JOINTS_OPEN` where they leave a joint open.

    Unknowns that are not finite have an outcome of their own.
    """
    successful = diffrax.RESULTS.successful
    if not has_joints(model.system):
        return y, successful
    gap = jnp.max(model.gaps(t, y), initial=0.0)
    is_open = gap > closed_gap(gap.dtype)
    return y, diffrax.RESULTS.where(is_open, JOINTS_OPEN, successful)  # pyright: ignore[reportArgumentType]
