"""Projection in closed form."""

import diffrax
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from .base import AbstractProjection, check_closed


class Explicit(AbstractProjection):
    r"""The closed-form projection of each parametrization, `model.project`; the default.

    Quaternions are normalised, Lang (63), which is the mass-metric projection too. For directors
    the attitude follows from the explicit algorithm of Lang, Section 6, and the rates from the
    closed form of the mass-metric projection, (62, V): the velocities of index-3 steps have errors
    of lower order in the direction of the constraint forces, and the projection must remove these
    without changing other components. With joints the projection makes one or two Newton steps of
    Lang (62). A joint that is still open ends the run.
    """

    def __call__(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        return check_closed(model, t, model.project(t, y))
