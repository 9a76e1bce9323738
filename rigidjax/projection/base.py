"""What a projection provides."""

import abc

import diffrax
import equinox as eqx
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns


class AbstractProjection(eqx.Module):
    """Moves drifted unknowns back onto the constraints."""

    @abc.abstractmethod
    def __call__(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        """Projected unknowns, and whether the projection succeeded."""
