r"""The base class of joints.

A joint knows neither bodies nor parametrizations of rotations. It sees the pose of the child's
joint frame from the parent's: the displacement $d$ and the rotation $Q$, both in components of the
parent's frame. In the reference configuration the frames coincide up to the joint's own freedoms,
$d = 0$ and $Q = 1$. The velocity of the joint is the relative twist $(\dot d, \omega)$ in the same
components.
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..rotations.so3 import exp
from ..small_arrays import cross, inverse, short_sum
from .axes import frame_of_axis, unit_vector
from .motion import motion_at
from .relative_pose import RelativePose, apply_small_twist, zero_twist

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class AbstractJoint(eqx.Module):
    r"""A joint between two bodies, `parent` and `child`, by name; `"ground"` is the inertial frame.

    The name of a `Frame` stands for the body that carries the frame.

    Points and axes are given in space components in the reference configuration, which consists of
    the poses given to the bodies; the constraints are zero there. A point that is `None` is the
    origin of the named frame and moves with it. For a field `point` that is the frame at either
    end (if both ends are frames, their origins coincide); for `parent_point` and `child_point` it
    is the frame at that end. A system calls `points` and `frame` after it has filled in all points.
    """

    parent: eqx.AbstractVar[str]
    child: eqx.AbstractVar[str]
    name: eqx.AbstractVar[str]

    num_translations: AbstractClassVar[
        int
    ]  # number of coordinates that are lengths; they come first
    has_angle: AbstractClassVar[bool]  # whether the next coordinate is an angle without bounds
    closes_loops_only: ClassVar[bool] = False  # whether its null space has no global basis
    # Whether the last three rates are the angular velocity of an unrestricted rotation, in
    # components of the child's joint frame.
    turns_freely: ClassVar[bool] = False
    # Whether the motion depends on the joint point. A point that only says where the reaction acts
    # defaults to the origin.
    needs_point: ClassVar[bool] = True
    # Whether the joint frames are the body frames at the centres of mass, or the inertial frame.
    at_centre: ClassVar[bool] = False

    # Fields that a joint may declare: for each rate viscous damping, inertia of a rotor, friction,
    # a spring of some `stiffness` that is unloaded at `rest` (`None` for zero), and `limits` with a
    # `stop`; and the function of time that prescribes the coordinate.
    damping = None
    armature = None
    friction = None
    stiffness = None
    rest = None
    limits = None
    stop = None
    motion = None

    @property
    def num_constraints(self) -> int:
        """Number of constraints $m$."""
        return len(self.constraint_is_length)

    @property
    def num_rates(self) -> int:
        """Number of independent joint rates $f = 6 - m$."""
        return 6 - self.num_constraints

    @property
    def num_undriven_rates(self) -> int:
        """Number of joint rates, a prescribed one included."""
        return self.num_rates + self.is_driven

    @property
    def dampings(self) -> Float[Array, " f"] | None:
        """Viscous damping of each rate, also of a prescribed one; `None` without damping."""
        return self.damping

    @property
    def armatures(self) -> Float[Array, " f"] | None:
        """Rotor inertia of each rate, also of a prescribed one; `None` without rotors."""
        return self.armature

    @property
    def is_elastic(self) -> bool:
        """Whether it has a force that depends on its coordinates, a spring or stops."""
        return self.stiffness is not None or self.limits is not None

    @property
    def is_driven(self) -> bool:
        """Whether a function of time, the field `motion`, prescribes the coordinate."""
        return self.motion is not None

    def check_points(self) -> Any:
        """Raise `ValueError` if the points, all filled in by now, are not admissible."""
        return None

    def prescribed_coordinate(self, t: Scalar) -> Scalar:
        """Return the coordinate that the `motion` of a driven joint prescribes."""
        motion: Any = self.motion
        return motion_at(type(self).__name__, motion, t)

    @property
    @abc.abstractmethod
    def constraint_is_length(self) -> tuple[bool, ...]:
        """Whether each constraint is a length, m; the others are sines or angles."""

    def points(self) -> tuple[Vector3, Vector3]:
        """Return the joint points of parent and child, space components, m; by default `point`."""
        joint: Any = self
        return joint.point, joint.point

    def frame(self) -> Matrix3:
        """Return the joint frame in the reference configuration, columns in space components.

        By default its third column is along the field `axis`.
        """
        joint: Any = self
        return frame_of_axis(unit_vector(joint.axis))

    @abc.abstractmethod
    def constraint(self, relative: RelativePose, t: Scalar) -> Float[Array, " m"]:
        """Return the constraints $g(d, Q, t)$, (m,); lengths in m, angles as sines or in rad."""

    def mean_gradient(
        self, first: RelativePose, last: RelativePose, t: Scalar, multipliers: Float[Array, " m"]
    ) -> tuple[Vector3, Matrix3]:
        r"""Return a discrete gradient of $\lambda \cdot g$ in $d$, (3,), and $Q$, (3, 3).

        It satisfies $\bar\nabla \cdot (d_1 - d_0, Q_1 - Q_0) = \lambda \cdot (g_1 - g_0)$ at the
        time $t$, which energy-conserving steps need. The gradient at the mean of both poses has
        this property if the constraints are of second degree in $(d, Q)$; joints with other
        constraints override this method.
        """
        mean = jax.tree.map(lambda a, b: 0.5 * (a + b), first, last)
        _, pull_back = jax.vjp(
            lambda d, Q: self.constraint(RelativePose(d, Q, first.turns), t),
            mean.displacement,
            mean.rotation,
        )
        return pull_back(multipliers)

    def alignment(self, relative: RelativePose) -> Scalar:
        """Return the cosine of the angle between directions that the joint keeps aligned.

        Constraints that are sines also vanish where the child is the wrong way round, at -1. The
        default for joints without such constraints is 1.
        """
        return jnp.ones((), relative.displacement.dtype)

    @abc.abstractmethod
    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        r"""Return the motion subspace $S$ with $(\dot d, \omega) = S\,\nu + s_t$, shape (6, f)."""

    def prescribed_twist(self, relative: RelativePose, t: Scalar) -> Float[Array, "6"]:
        r"""Return the part $s_t$ of the twist that a prescribed motion causes, (6,); else zero."""
        return zero_twist(relative)

    @abc.abstractmethod
    def coordinates(self, relative: RelativePose) -> Vector:
        """Return the coordinates, lengths (m) before angles (rad), continuous beyond pi."""

    def pose(self, coordinates: Vector, rotation: Matrix3 | None = None) -> RelativePose:
        """Return the relative pose at given coordinates: the inverse of `coordinates`.

        This implementation serves joints whose coordinates are lengths and at most one angle, each
        along or about a direction that is fixed in the parent. Other joints override it.

        **Arguments:** `coordinates`, lengths (m) before angles (rad); `rotation`, $Q$, for a joint
        that `turns_freely`, whose `coordinates` are then the lengths alone.
        **Returns:** the pose, with `turns` zero.
        **Errors:** `NotImplementedError` for a joint with several angles.
        """
        if self.num_rates - self.num_translations > 1:
            raise NotImplementedError(
                f"`{type(self).__name__}` has several angles: it needs a method `pose(coordinates, "
                "rotation)`, the inverse of `coordinates`."
            )
        dtype = coordinates.dtype
        start = RelativePose(jnp.zeros(3, dtype), jnp.eye(3, dtype=dtype), jnp.zeros((), dtype))
        twist = short_sum(self.null_space(start), coordinates[None], axis=1)
        return RelativePose(twist[:3], exp(twist[3:]), start.turns)

    def rates(self, relative: RelativePose, twist: Float[Array, "6"]) -> Float[Array, " f"]:
        r"""Return the joint rates $S^+ (\dot d, \omega)$, those nearest to a twist."""
        return short_sum(self.dual(relative), twist[:, None], axis=0)

    def coordinate_rates(self, relative: RelativePose, twist: Float[Array, "6"]) -> Vector:
        """Return the rates of the coordinates, prescribed ones included.

        For a joint that has rates and can be part of a tree, these are the joint rates.
        """
        if self.num_rates and not self.closes_loops_only:
            return self.rates(relative, twist)
        s = jnp.zeros((), twist.dtype)
        along = lambda s: self.coordinates(apply_small_twist(relative, s * twist))  # noqa: E731
        return jax.jvp(along, (s,), (jnp.ones_like(s),))[1]

    def dual(self, relative: RelativePose) -> Float[Array, "6 f"]:
        r"""Return $S (S^T S)^{-1}$, the transpose of $S^+$: a wrench of unit power per rate."""
        # By cofactors: a factorisation would cost more than the rest of the joint.
        S = self.null_space(relative)
        columns = jnp.unstack(S, axis=1)
        gram = [[jnp.sum(u * v) for v in columns] for u in columns]
        if len(columns) == 1:
            return S / gram[0][0]
        if len(columns) == 2:
            (a, b), (_, c) = gram
            first, second = columns
            dual = jnp.stack([c * first - b * second, a * second - b * first], axis=1)
            return dual / (a * c - b * b)
        if len(columns) > 3:
            return S @ inverse(jnp.stack([jnp.stack(row) for row in gram]))
        u, v, w = (jnp.stack(row) for row in gram)
        cofactors = jnp.stack([cross(v, w), cross(w, u), cross(u, v)])
        return short_sum(S[:, :, None], cofactors[None], axis=1) / jnp.sum(u * cofactors[0])

    def constraint_jacobian(self, relative: RelativePose, t: Scalar) -> Float[Array, "m 6"]:
        r"""Return the Jacobian $G$ in twists, $\dot g = G\,(\dot d, \omega) + g_t$, (m, 6)."""
        return jax.jacfwd(lambda twist: self.constraint(apply_small_twist(relative, twist), t))(
            jnp.zeros(6, relative.displacement.dtype)
        )

    def constraint_rate(
        self, relative: RelativePose, twist: Float[Array, "6"], t: Scalar
    ) -> Float[Array, " m"]:
        r"""Return the rate $\dot g = G\,(\dot d, \omega) + g_t$ of the constraints, shape (m,)."""
        t = jnp.asarray(t, relative.displacement.dtype)
        return jax.jvp(
            lambda s, t: self.constraint(apply_small_twist(relative, s * twist), t),
            (jnp.zeros((), t.dtype), t),
            (jnp.ones((), t.dtype), jnp.ones((), t.dtype)),
        )[1]


class AbstractNamedJoint(AbstractJoint):
    """A joint of this package, whose bodies and name are fields."""

    parent: str = eqx.field(static=True)
    child: str = eqx.field(static=True)
    name: str = eqx.field(static=True)
