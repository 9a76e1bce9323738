"""Base class of the explicit Lie-group methods."""

import dataclasses

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Args, DenseInfo, Flag, InterpolationClass, Scalar, Terms, Time, Vector, Y
from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...rotations.quaternion import Quaternion
from ...small_arrays import vmap_rows
from ..base.dense import AbstractDenseOutput
from ..base.terms import unwrap
from ..conserving.base import AbstractStructureSolver
from .chart import Chart, ChartIncrement
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


def chart_of(model: NullSpace, y: Vector) -> Chart:
    """Return the chart at the unknowns `y`."""
    return Chart(y, model.layout, model.rates)


def is_inside_chart(rotation_vectors: Float[Array, "... 3"]) -> Flag:
    """Return whether all rotation vectors are inside the chart."""
    return jnp.all(jnp.sum(rotation_vectors * rotation_vectors, axis=-1) < _LARGEST_SQUARED_ANGLE)


@dataclasses.dataclass(frozen=True)
class InChart:
    """Factory of `ChartInterpolation` for an interpolation class, hashable by this class."""

    inner: InterpolationClass

    def __call__(
        self, *, t0: Time, t1: Time, chart: Chart, inner: DenseInfo
    ) -> "ChartInterpolation":
        return ChartInterpolation(t0, t1, chart, self.inner(t0=t0, t1=t1, **inner))


class ChartInterpolation(AbstractDenseOutput):
    """Dense output of the coordinates in a chart, by which quaternions keep unit length."""

    t0: Time
    t1: Time
    chart: Chart
    inner: diffrax.AbstractLocalInterpolation

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`."""
        return self.chart.point(self.inner.evaluate(t))


class PoseInterpolation(AbstractDenseOutput):
    """Cubic Hermite polynomials of poses, in the chart of the step, and of twists.

    Joint angles and multipliers are linear in time.

    **Attributes:** `t0`, `t1`, start and end of the step, s; `y0`, `y1`, unknowns there; `h`,
    length of the step, s, negative in a run backwards; `w` and `w_rate`, twists and accelerations
    at its start; `end`, accelerations at its end; `unknowns`.
    """

    t0: Time
    t1: Time
    y0: Vector
    y1: Vector
    h: Scalar
    w: Float[Array, "L k"]
    w_rate: Float[Array, "L k"]
    end: Float[Array, "L k"]
    unknowns: GroupUnknowns

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at `t`."""
        unknowns, layout = self.unknowns, self.unknowns.model.layout
        chart, h = Chart(self.y0, layout, "body"), self.h
        w1 = unknowns.twists(self.y1)
        # As in the twists, bodies that do not translate have no position columns.
        x0, x1 = (layout.poses(y)[0][:, : layout.shift] for y in (self.y0, self.y1))
        rotation = chart.rotation_between(self.y1)
        last = chart.coordinate_rate(chart.zero._replace(rotation=rotation), _velocity(chart, w1))
        zero = jnp.zeros_like(rotation)
        polynomial = diffrax.ThirdOrderHermitePolynomialInterpolation(
            t0=self.t0,
            t1=self.t1,
            y0=(x0, zero, self.w),
            y1=(x1, rotation, w1),
            k0=(h * self.w[:, :-3], h * self.w[:, -3:], h * self.w_rate),
            k1=(h * w1[:, :-3], h * last.rotation, h * self.end),
        )
        x, psi, w = polynomial.evaluate(t)
        _, p = layout.poses(chart.point(chart.zero._replace(rotation=psi)))
        s = (t - self.t0) / jnp.where(h == 0, 1.0, jnp.abs(h))
        rest = self.y0 + s * (self.y1 - self.y0)
        algebraic = rest[layout.size :]
        count = algebraic.size - unknowns.num_multipliers
        pose = Pose(x, p, layout.angles(rest))
        return unknowns.join(pose, w, algebraic[:count], algebraic[count:])


def _velocity(chart: Chart, w: Float[Array, "L k"]) -> ChartIncrement:
    return chart.zero._replace(shift=w[:, :-3], rotation=w[:, -3:])
