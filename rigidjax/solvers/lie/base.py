"""What the explicit Lie-group methods have in common."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Flag, Vector, Y
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...rotations.quaternion import Quaternion
from ..conserving.base import AbstractStructureSolver
from ..terms import unwrap
from .chart import Chart

# A chart ends at rotation vectors of this length, squared.
_LIMIT = (2.0 * 3.141592653589793) ** 2


class AbstractGroupSolver(AbstractStructureSolver):
    """An explicit method that moves unit quaternions by their exponential map.

    On `NullSpace(system, Quaternion())`, with and without joints. The state of the solver is what
    rounding took from the unknowns: it is added to the next step (compensated summation).
    """

    def check_model(self, model: AbstractFormulation) -> None:
        """Raise unless it is `NullSpace` in quaternions.

        **Raises:** `ValueError` that says what to use instead.
        """
        name = type(self).__name__
        if not isinstance(model, NullSpace):
            kind = type(model).__name__
            kind += f"(index={model.index})" if isinstance(model, Absolute) else ""
            raise ValueError(
                f"`{name}` moves unit quaternions by the angular velocities of the bodies: it "
                f"needs `rj.NullSpace(system, rj.Quaternion())`; got `{kind}`. For positions and "
                "multipliers of index 3 use `rj.solvers.GeneralizedAlpha()`, for rates of "
                "quaternions a Runge-Kutta method of diffrax."
            )
        if not isinstance(model.rotation, Quaternion):
            raise ValueError(
                f"`{name}` moves unit quaternions: it needs `rj.NullSpace(system, "
                f"rj.Quaternion())`; got `{type(model.rotation).__name__}`. Use that one, or a "
                "Runge-Kutta method of diffrax for this parametrization."
            )

    def init(self, terms, t0, t1, y0, args) -> Vector:
        """Nothing was rounded yet."""
        self.check_model(unwrap(terms)[0].model)
        return jnp.zeros_like(y0)

    def func(self, terms, t0, y0, args) -> Y:
        return terms.vf(t0, y0, args)


def chart_of(model: NullSpace, y: Vector) -> Chart:
    """The chart at the unknowns `y`; with joints, rotations are turned by body rates."""
    return Chart(y, model.layout, model.rates)


def is_inside(turns: Float[Array, "... 3"]) -> Flag:
    """Whether all rotation vectors are inside the chart."""
    return jnp.all(jnp.sum(turns * turns, axis=-1) < _LIMIT)
