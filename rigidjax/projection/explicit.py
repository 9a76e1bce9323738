"""Projection in closed form."""

import diffrax
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from .base import AbstractProjection, closed_or_not


class Explicit(AbstractProjection):
    r"""The closed-form projection of each parametrization, `model.project`; the default.

    Quaternions: Lang (63), which for a quaternion is the mass-metric projection too. Directors:
    the explicit algorithm of Lang, Section 6, for attitudes; rates in closed form in the mass
    metric, (62, V), since the velocities of index-3 steps have errors of lower order in the
    direction of the constraint forces, and those alone may be taken away (Example A, Radau5 at
    1e-8, 1 s: 4e-8; with rates projected in the metric of the unit matrix 2e-4).
    With joints: two Newton steps of Lang (62). A joint that is open after that ends a run.
    """

    def __call__(
        self, model: AbstractFormulation, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        return closed_or_not(model, t, model.project(t, y))
