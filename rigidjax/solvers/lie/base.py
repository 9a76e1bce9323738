"""Base class of the explicit Lie-group methods."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Args, Flag, Terms, Time, Vector, Y
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...rotations.quaternion import Quaternion
from ...small_arrays import vmap_rows
from ..base.terms import unwrap
from ..conserving.base import AbstractStructureSolver
from .chart import Chart
from .dynamics import Pose

_ROTATION = Quaternion()


class GroupUnknowns(eqx.Module):
    """Conversion between the unknowns in quaternions and poses, twists and multipliers.

    **Arguments:** `model`, `Absolute(index=3)`, or `NullSpace` of bodies without joints.
    """

    model: AbstractFormulation

    @property
    def is_absolute(self) -> bool:
        """Whether the unknowns contain rates of quaternions instead of angular velocities."""
        return isinstance(self.model, Absolute)

    @property
    def num_multipliers(self) -> int:
        """Number of multipliers of the joints."""
        return self.model.num_algebraic - self.model.layout.num_bodies if self.is_absolute else 0

    def pose(self, y: Float[Array, " N"]) -> Pose:
        """Return the configuration."""
        layout = self.model.layout
        x, p = layout.poses(y)
        return Pose(x, p, layout.angles(y))

    def twists(self, y: Float[Array, " N"]) -> Float[Array, "L k"]:
        """Return velocities, space components, and angular velocities, body components."""
        layout = self.model.layout
        v, rotation = layout.twists(y)
        if self.is_absolute:
            rotation = vmap_rows(_ROTATION.angular_velocity, layout.poses(y)[1], rotation)
        return jnp.concatenate([v[:, : layout.shift], rotation], axis=1)

    def multipliers(self, y: Float[Array, " N"]) -> Float[Array, " m"]:
        """Return the multipliers of the joints."""
        return y[y.size - self.num_multipliers :]

    def join(
        self,
        pose: Pose,
        w: Float[Array, "L k"],
        internal: Float[Array, " L"],
        lam: Float[Array, " m"],
    ) -> Float[Array, " N"]:
        """Return the unknowns.

        **Arguments:** `pose`; `w`, twists; `internal`, multipliers of the lengths of the
        quaternions; `lam`, multipliers of the joints.
        """
        layout = self.model.layout
        v, rotation = w[:, :-3], w[:, -3:]
        if self.is_absolute:
            rotation = vmap_rows(_ROTATION.rate, pose.p, rotation)
        y = layout.join_all(pose.x, pose.p, layout.join(v, rotation), pose.angles)
        return jnp.concatenate([y, internal, lam]) if self.is_absolute else y


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
