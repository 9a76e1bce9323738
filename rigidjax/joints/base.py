r"""What every joint provides.

A joint knows nothing of bodies and parametrizations. It sees the pose of its child's joint frame
from its parent's: the displacement $d$ and the rotation $Q$, both in components of the parent's
frame, which coincide (up to what the joint leaves free) in the reference configuration, where
$d = 0$ and $Q = 1$. Its velocity is the relative twist $(\dot d, \omega)$ in the same components.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, as_leaf, check_all, float_array, is_finite, vector_leaf
from ..native.ops.cross_product import cross
from ..native.ops.linalg import inverse
from ..native.ops.sums import short_sum
from ..rotations.matrix import product
from ..rotations.so3 import exp, skew
from ..signals.laws import as_law, check_shapes
from ..signals.signal import check_motion_signals

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

Vector = Float[Array, "3"]
Module = TypeVar("Module", bound=eqx.Module)


class RelativePose(eqx.Module):
    r"""Pose of the child's joint frame as seen from the parent's.

    `displacement`, $d$, (3,) m; `rotation`, $Q$, (3, 3); `turns`, whole turns of the joint's angle
    beyond $(-\pi, \pi]$, a multiple of $2\pi$, constant while the joint moves.
    """

    displacement: Vector
    rotation: Float[Array, "3 3"]
    turns: Float[Array, ""]


class AbstractJoint(eqx.Module):
    r"""A joint between two bodies, `parent` and `child`, by name; `"ground"` is the inertial frame.

    The name of a `Frame` stands for the body that it is on.

    Points and axes are given in space components in the reference configuration, the poses given to
    the bodies. Constraints are zero there. A point that is `None` is the origin of the frame that
    is named, and moves with it: `point` of the one that is (of both, if they coincide), the fields
    `parent_point` and `child_point` of the frame at that end. A system asks for `points` and
    `frame` once they are known.
    """

    parent: eqx.AbstractVar[str]
    child: eqx.AbstractVar[str]
    name: eqx.AbstractVar[str]

    num_translations: AbstractClassVar[int]  # joint coordinates that are lengths, the first ones
    has_angle: AbstractClassVar[bool]  # whether the next one is an angle that can make turns
    closes_loops_only: AbstractClassVar[bool]  # whether there is no global basis of its null space
    # Whether its last three rates are the angular velocity of a rotation that is not restricted, in
    # components of the child's joint frame.
    turns_freely: ClassVar[bool] = False
    # Whether motions depend on its point; one that they do not depend on, where the reaction is
    # taken, is the origin if it is left out and no frame is named.
    needs_point: ClassVar[bool] = True
    # Whether it leads from the inertial frame to the frame of the child, in its centre of mass.
    at_centre: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def num_constraints(self) -> int:
        """Number of constraints $m$."""

    @property
    @abc.abstractmethod
    def num_rates(self) -> int:
        """Number of independent joint rates $f = 6 - m$."""

    @property
    def num_undriven_rates(self) -> int:
        """Number of joint rates, that of a prescribed motion included."""
        return self.num_rates + self.is_driven

    @property
    def dampings(self) -> Float[Array, " f"] | None:
        """Viscous damping of each rate, that of a prescribed motion included; `None` without
        any."""
        return getattr(self, "damping", None)

    @property
    def armatures(self) -> Float[Array, " f"] | None:
        """Inertia that a rotor adds to each rate, that of a prescribed motion included; `None`
        without any."""
        return getattr(self, "armature", None)

    @property
    def is_driven(self) -> bool:
        """Whether a function of time, the field `motion`, prescribes the coordinate."""
        return getattr(self, "motion", None) is not None

    def check_points(self) -> Any:
        """Raise `ValueError` if its points, known now that none is left out, cannot be these."""
        return None

    def prescribed_coordinate(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """What `motion` wants the coordinate of a driven joint to be."""
        motion: Any = getattr(self, "motion", None)
        return motion_at(type(self).__name__, motion, t)

    @property
    @abc.abstractmethod
    def constraint_is_length(self) -> tuple[bool, ...]:
        """Whether each constraint is a length, m; the others are sines or angles."""

    @abc.abstractmethod
    def points(self) -> tuple[Vector, Vector]:
        """Joint points of parent and child in the reference configuration, space components, m."""

    @abc.abstractmethod
    def frame(self) -> Float[Array, "3 3"]:
        """Joint frame in the reference configuration, columns in space components."""

    @abc.abstractmethod
    def constraint(self, relative: RelativePose, t: Float[Array, ""]) -> Float[Array, " m"]:
        """Constraints $g(d, Q, t)$, shape (m,), lengths in m, angles as sines or in rad."""

    def mean_gradient(
        self,
        first: RelativePose,
        last: RelativePose,
        t: Float[Array, ""],
        multipliers: Float[Array, " m"],
    ) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
        r"""A gradient $\bar\nabla$ of $\lambda \cdot g$ on $(d, Q)$, by nine and three components,
        with $\bar\nabla \cdot (d_1 - d_0, Q_1 - Q_0) = \lambda \cdot (g_1 - g_0)$.

        That half-way between both poses has this property where constraints are of second degree
        in $(d, Q)$, at one time $t$. Steps that conserve energy rest on it.
        """
        mean = jax.tree.map(lambda a, b: 0.5 * (a + b), first, last)
        _, pull_back = jax.vjp(
            lambda d, Q: self.constraint(RelativePose(d, Q, first.turns), t),
            mean.displacement,
            mean.rotation,
        )
        return pull_back(multipliers)

    @abc.abstractmethod
    def alignment(self, relative: RelativePose) -> Float[Array, ""]:
        """Cosine of the angle between directions of parent and child that the joint keeps alike.

        Constraints that are sines vanish at -1 too, where the child is the wrong way round. 1 for a
        joint whose constraints cannot.
        """

    @abc.abstractmethod
    def null_space(self, relative: RelativePose) -> Float[Array, "6 f"]:
        r"""Columns $S$ with $(\dot d, \omega) = S\,\nu + s_t$, shape (6, f)."""

    @abc.abstractmethod
    def prescribed_twist(self, relative: RelativePose, t: Float[Array, ""]) -> Float[Array, "6"]:
        r"""The part $s_t$ of the twist that a prescribed motion causes, shape (6,)."""

    @abc.abstractmethod
    def coordinates(self, relative: RelativePose) -> Float[Array, " k"]:
        """Joint coordinates, lengths (m) before angles (rad); an angle is continuous beyond pi."""

    def pose(
        self, coordinates: Float[Array, " k"], rotation: Float[Array, "3 3"] | None = None
    ) -> RelativePose:
        """Relative pose at given coordinates, without whole turns: the inverse of `coordinates`.

        This one serves joints whose coordinates are lengths and at most one angle, each along or
        about a direction that is fixed in the parent; others have their own.

        **Arguments:** `coordinates`, lengths (m) before angles (rad); of a joint that
        `turns_freely` the lengths alone, and its `rotation` $Q$.
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
        r"""Joint rates $\nu$ nearest to a twist $S\,\nu$, $S^+$ times it."""
        return short_sum(self.dual(relative), twist[:, None], axis=0)

    def coordinate_rates(
        self, relative: RelativePose, twist: Float[Array, "6"]
    ) -> Float[Array, " k"]:
        """Joint rates, of a driven joint and of one that closes loops only those of coordinates."""
        if self.num_rates and not self.closes_loops_only:
            return self.rates(relative, twist)
        s = jnp.zeros((), twist.dtype)
        found = lambda s: self.coordinates(moved(relative, s * twist))  # noqa: E731
        return jax.jvp(found, (s,), (jnp.ones_like(s),))[1]

    def dual(self, relative: RelativePose) -> Float[Array, "6 f"]:
        r"""Wrenches $S (S^T S)^{-1}$, the transpose of $S^+$, that do unit work on one rate each.

        By cofactors: a factorisation would cost more than all the rest of a joint.
        """
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

    def constraint_jacobian(
        self, relative: RelativePose, t: Float[Array, ""]
    ) -> Float[Array, "m 6"]:
        r"""Gradient $G$ of the constraint on twists, $\dot g = G\,(\dot d, \omega) + g_t$."""
        return jax.jacfwd(lambda twist: self.constraint(moved(relative, twist), t))(
            jnp.zeros(6, relative.displacement.dtype)
        )

    def constraint_rate(
        self, relative: RelativePose, twist: Float[Array, "6"], t: Float[Array, ""]
    ) -> Float[Array, " m"]:
        r"""Rate $\dot g = G\,(\dot d, \omega) + g_t$ of the constraint, shape (m,)."""
        t = jnp.asarray(t, relative.displacement.dtype)
        return jax.jvp(
            lambda s, t: self.constraint(moved(relative, s * twist), t),
            (jnp.zeros((), t.dtype), t),
            (jnp.ones((), t.dtype), jnp.ones((), t.dtype)),
        )[1]


def moved(relative: RelativePose, twist: Float[Array, "6"]) -> RelativePose:
    """The relative pose after a small twist, to first order."""
    d, w = twist[:3], twist[3:]
    rotation = relative.rotation + product(skew(w), relative.rotation)
    return RelativePose(relative.displacement + d, rotation, relative.turns)


def per_rate(joint: "AbstractJoint", value: ArrayInput, argument: str) -> Float[Array, " f"] | None:
    """Return a checked constant of a joint for each of its rates, that of a prescribed motion
    included, not negative; `None` for a plain zero.

    **Errors:** `ValueError` for a wrong shape or a negative number.
    """
    kind = type(joint).__name__
    if isinstance(value, int | float) and value == 0:
        return None
    name, count = f"{kind}({argument}=...)", joint.num_undriven_rates
    shape = jnp.shape(jnp.asarray(value))
    checked = float_array(value, name, () if shape == () else (count,))
    rule = (lambda x: (x >= 0).all(), f"`{name}` must not be negative.")
    return jnp.broadcast_to(as_leaf(check_all(checked, [is_finite(name), rule])), count)


def undriven(joint: "AbstractJoint") -> "AbstractJoint":
    """Return the joint without its prescribed motion, whose rate is free."""
    return replaced(joint, motion=None) if joint.is_driven else joint


def shifted(displacement: Sequence[Float[Array, ""]]) -> RelativePose:
    """A relative pose without rotation."""
    d = jnp.stack(list(displacement))
    return RelativePose(d, jnp.eye(3, dtype=d.dtype), jnp.zeros((), d.dtype))


def about_third_axis(
    angle: Float[Array, ""], displacement: Sequence[Float[Array, ""]] = ()
) -> RelativePose:
    """A relative pose turned about the third axis of the frame."""
    c, s, zero = jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(angle)
    rows = [[c, -s, zero], [s, c, zero], [zero, zero, jnp.ones_like(angle)]]
    d = jnp.stack(list(displacement) or [zero] * 3)
    return RelativePose(d, jnp.stack([jnp.stack(row) for row in rows]), zero)


def turned(rotation: Float[Array, "3 3"]) -> RelativePose:
    """A relative pose without displacement."""
    dtype = rotation.dtype
    return RelativePose(jnp.zeros(3, dtype), rotation, jnp.zeros((), dtype))


def angle_about_third_axis(relative: RelativePose) -> Float[Array, ""]:
    """Angle of the rotation about the third axis of the joint frame, rad, continuous."""
    Q = relative.rotation
    return jnp.arctan2(Q[1, 0] - Q[0, 1], Q[0, 0] + Q[1, 1]) + relative.turns


def tilt(relative: RelativePose) -> list[Float[Array, ""]]:
    """The two components of the child's third axis that vanish if the third axes are parallel."""
    Q = relative.rotation
    return [Q[0, 2], Q[1, 2]]


def alignment_of_axes(relative: RelativePose) -> Float[Array, ""]:
    """Cosine of the angle between the third axes of parent and child."""
    return relative.rotation[2, 2]


def alignment_of_frames(relative: RelativePose) -> Float[Array, ""]:
    """Cosine of the angle by which the child is turned."""
    return 0.5 * (jnp.trace(relative.rotation) - 1.0)


def aligned(relative: RelativePose) -> Float[Array, ""]:
    """Alignment of a joint that keeps no directions alike."""
    return jnp.ones((), relative.displacement.dtype)


def columns(*entries: int) -> Float[Array, "6 f"]:
    """Columns of the 6x6 unit matrix."""
    return jnp.eye(6)[:, list(entries)]


def wrapped(angle: Float[Array, ""]) -> Float[Array, ""]:
    r"""An angle up to whole turns, in $[-\pi, \pi]$."""
    return angle - 2 * jnp.pi * jnp.round(angle / (2 * jnp.pi))


def no_twist(relative: RelativePose) -> Float[Array, "6"]:
    """Prescribed twist of a joint without prescribed motion."""
    return jnp.zeros(6, relative.displacement.dtype)


def frame_of_axis(axis: Vector) -> Float[Array, "3 3"]:
    """A right-handed frame whose third axis is the unit vector `axis`; columns.

    The first one is along the cross product of the x axis and `axis`, of the y axis where `axis` is
    within 26 degrees of the x axis: a place where no mechanism has its axes, since frames of axes
    on both sides of it are turned against each other.
    """
    x, y = jnp.eye(2, 3, dtype=axis.dtype)
    first = unit(cross(jnp.where(jnp.abs(axis[0]) < 0.9, x, y), axis))
    return jnp.stack([first, cross(axis, first), axis], axis=1)


def unit(v: Vector) -> Vector:
    """Return the vector of unit length in the direction of `v`, which is not zero."""
    # Squares of scaled components neither overflow nor underflow; the scale's derivative cancels.
    v = v / jax.lax.stop_gradient(jnp.max(jnp.abs(v)))
    return v / jnp.sqrt(jnp.sum(v * v))


def point_leaf(value: ArrayInput | None, argument: str) -> Any:
    """A checked point (3,); `None` for one that is left out, which a system fills in."""
    return None if value is None else vector_leaf(value, argument)


def direction(value: ArrayInput | None, argument: str) -> Vector:
    """A checked axis (3,), space components, not zero; of any length."""
    if value is None or callable(value):
        got = "is missing" if value is None else f"is a function, {value!r}"
        raise TypeError(
            f"`{argument}` {got}: it must be a direction, (3,), space components. The arguments "
            "are parent, child, point and then the direction (`Prismatic` has its axis before its "
            "point); give them by name, as in `axis=(0, 0, 1)`."
        )
    rule = (
        # What is less than the smallest normal number is flushed to zero by compiled code.
        lambda axis: abs(axis).max() >= np.finfo(axis.dtype).tiny,
        f"`{argument}` must not be zero: it is the direction of an axis, space components.",
    )
    return as_leaf(check_all(float_array(value, argument, (3,)), [is_finite(argument), rule]))


def check_names(kind: str, parent: str, child: str, name: str | None) -> str:
    """The joint's name, made of its bodies if `None`; errors for what cannot be joined."""
    for argument, value in (("parent", parent), ("child", child)):
        if not isinstance(value, str):
            raise TypeError(
                f'`{kind}({argument}=...)` takes the name of a body or "ground"; got {value!r}.'
            )
    if parent == child:
        raise ValueError(
            f"`{kind}` joins two different bodies; got {parent!r} as parent and child."
        )
    if name is None:
        return _default_name(kind, parent, child)
    if not isinstance(name, str) or not name:
        raise ValueError(f"`{kind}(name=...)` must be a non-empty string; got {name!r}.")
    return name


def is_default_name(joint: "AbstractJoint") -> bool:
    """Whether the name is the one that a joint without a name gets."""
    return joint.name == _default_name(type(joint).__name__, joint.parent, joint.child)


def _default_name(kind: str, parent: str, child: str) -> str:
    return f"{kind.lower()} {parent}-{child}"


def checked_motion(kind: str, motion: Any) -> Any:
    """`None`, or a function of time as a part of a joint.

    **Errors:** `TypeError` for something else, `ValueError` if it does not return a number, or for
    a signal without rates.
    """
    if motion is None:
        return None
    if not callable(motion):
        raise TypeError(
            f"`{kind}(motion=...)` must be a function of time that returns the joint coordinate, "
            f"such as `lambda t: 2 * t`; got {motion!r}.{_swapped(kind, motion)}"
        )
    check_motion_signals(kind, motion)
    law = as_law(motion, f"{kind}(motion=...)")
    check_shapes(lambda t: motion_at(kind, law, t), ())
    return law


def _swapped(kind: str, motion: Any) -> str:
    """Return a sentence for the argument that was probably meant instead of a motion."""
    if isinstance(motion, str):
        return f" Give a name by keyword, `name={motion!r}`."
    if kind == "Prismatic":
        return (
            " `Prismatic(parent, child, axis, motion, point)` has its axis before its point, "
            "`Revolute(parent, child, point, axis, motion)` after it: give `axis=` and `point=` by "
            "name."
        )
    return ""


def motion_at(kind: str, motion: Callable, t: Float[Array, ""]) -> Float[Array, ""]:
    """The coordinate that `motion` prescribes; `ValueError` if it is not a number."""
    value = jnp.asarray(motion(t))
    if value.shape != ():
        raise ValueError(
            f"The function `{kind}(motion=...)` must return a number, shape (); got shape "
            f"{value.shape}."
        )
    return value.astype(jnp.result_type(t, float))


def motion_rate(kind: str, motion: Callable, t: Float[Array, ""]) -> Float[Array, ""]:
    """Time derivative of the coordinate that `motion` prescribes."""
    t = jnp.asarray(t, jnp.result_type(t, float))
    return jax.jvp(lambda t: motion_at(kind, motion, t), (t,), (jnp.ones_like(t),))[1]


def motion_acceleration(kind: str, motion: Callable, t: Float[Array, ""]) -> Float[Array, ""]:
    """Second time derivative of the coordinate that `motion` prescribes."""
    t = jnp.asarray(t, jnp.result_type(t, float))
    return jax.jvp(lambda t: motion_rate(kind, motion, t), (t,), (jnp.ones_like(t),))[1]


def renamed(joint: AbstractJoint, name: str, parent: str = "", child: str = "") -> AbstractJoint:
    """The same joint under another name; its bodies too if given."""
    bodies = {"parent": parent, "child": child} if parent else {}
    return replaced(joint, name=name, **bodies)


def replaced(module: Module, **fields: Any) -> Module:
    """A module with other values of these fields, static ones too, unchecked."""
    old = {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}
    return unchecked(type(module), **{**old, **fields})


def unchecked(kind: type[Module], **fields: Any) -> Module:
    """A module of these fields, static ones too, without its checks."""
    module = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(module, name, value)
    return module
