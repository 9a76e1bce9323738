"""Base class of the explicit Lie-group methods."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Args, Flag, Terms, Time, Vector, Y
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...rotations.quaternion import Quaternion
from ..conserving.base import AbstractStructureSolver
from ..terms import unwrap
from .chart import Chart

# Squared length of rotation vectors at which the exponential map becomes singular.
_LARGEST_SQUARED_ANGLE = (2.0 * 3.141592653589793) ** 2


class AbstractGroupSolver(AbstractStructureSolver):
    """An explicit method that updates unit quaternions by the exponential map.

    It takes `NullSpace(system, Quaternion())` with or without joints. The state of the solver is
    the rounding error of the unknowns, which is added to the next step (compensated summation).
    """

    def check_model(self, model: AbstractFormulation) -> None:
        """Raise `ValueError` unless the model is `NullSpace` in quaternions.

        The message says what to use instead.
        """
        name = type(self).__name__
        if not isinstance(model, NullSpace):
            kind = type(model).__name__
            kind += f"(index={model.index})" if isinstance(model, Absolute) else ""
            raise ValueError(
                f"`{name}` updates unit quaternions by the angular velocities of the bodies: it "
                f"needs `rj.NullSpace(system, rj.Quaternion())`; got `{kind}`. For positions and "
                "multipliers of index 3 use `rj.solvers.GeneralizedAlpha()`, for rates of "
                "quaternions a Runge-Kutta method of diffrax."
            )
        if not isinstance(model.rotation, Quaternion):
            raise ValueError(
                f"`{name}` updates unit quaternions: it needs `rj.NullSpace(system, "
                f"rj.Quaternion())`; got `{type(model.rotation).__name__}`. Use this model, or a "
                "Runge-Kutta method of diffrax for this parametrization."
            )

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Vector, args: Args) -> Vector:
        """Return a zero rounding error."""
        self.check_model(unwrap(terms)[0].model)
        return jnp.zeros_like(y0)

    def func(self, terms: Terms, t0: Time, y0: Y, args: Args) -> Y:
        return terms.vf(t0, y0, args)


def chart_of(model: NullSpace, y: Vector) -> Chart:
    """Return the chart at the unknowns `y`."""
    return Chart(y, model.layout, model.rates)


def is_inside_chart(rotation_vectors: Float[Array, "... 3"]) -> Flag:
    """Return whether all rotation vectors are inside the chart."""
    return jnp.all(jnp.sum(rotation_vectors * rotation_vectors, axis=-1) < _LARGEST_SQUARED_ANGLE)
