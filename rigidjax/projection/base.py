"""Interface of projections."""

import abc
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..mechanics import has_joints
from ..mechanics.violations import violation_tolerance
from ..results import JOINTS_OPEN


class AbstractProjection(eqx.Module):
    """A map of unknowns onto the constraints."""

    @abc.abstractmethod
    def __call__(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        """Project unknowns onto the constraints of `model` at time `t`.

        **Returns:** the projected unknowns; the result, `diffrax.RESULTS.successful` or a failure.
        """


class ConvertedProjection(AbstractProjection):
    """A projection onto the constraints of one model, traced once for all its calls.

    **Arguments:** `function` of time and unknowns, without anything that it closes over.
    """

    function: Callable[..., tuple[Unknowns, diffrax.RESULTS]]

    def __call__(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        return self.function(t, y)


def check_closed(
    model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
) -> tuple[Unknowns, diffrax.RESULTS]:
    """Return projected unknowns with the result `JOINTS_OPEN` if they leave a joint open.

    Unknowns that are not finite do not change the result here; they are reported at the end of the
    run.
    """
    successful = diffrax.RESULTS.successful
    if not has_joints(model.system):
        return y, successful
    gap = jnp.max(model.gaps(t, y), initial=0.0)
    is_open = gap > violation_tolerance(gap.dtype)
    return y, diffrax.RESULTS.where(is_open, JOINTS_OPEN, successful)  # pyright: ignore[reportArgumentType]
