"""Constraints other than joints: on joint coordinates, and on poses of any number of bodies."""

import abc
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..checks import ArrayInput, finite_leaf, scalar_leaf
from ..signals.laws import as_law
from .arguments import checked_name
from .base import AbstractJoint
from .relative_pose import wrap_angle
from .replacing import replace_fields

# Position of the centre of mass, (3,) m, space components, and rotation matrix, body to space.
Pose = tuple[Vector3, Matrix3]


class Configuration(eqx.Module):
    """Arguments of constraints: poses of bodies and coordinates of joints, by name."""

    poses: dict[str, Pose]
    coordinates: dict[str, Vector]


class AbstractConstraint(eqx.Module):
    """Equations on several bodies or joints, imposed like a joint that closes a loop."""

    name: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def constraint_is_length(self) -> tuple[bool, ...]:
        """Whether each equation is a length, m; the others are angles or dimensionless."""

    @property
    @abc.abstractmethod
    def is_on_positions(self) -> bool:
        """Whether the equations constrain positions; if not, they constrain only velocities."""

    @property
    def num_constraints(self) -> int:
        """Number of equations."""
        return len(self.constraint_is_length)

    @abc.abstractmethod
    def body_names(self) -> tuple[str, ...]:
        """Return the names of the bodies that the equations depend on."""

    @abc.abstractmethod
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints whose coordinates the equations depend on."""

    @abc.abstractmethod
    def bind_joints(self, joints: Mapping[str, AbstractJoint]) -> "AbstractConstraint":
        """Return the constraint in a system with these joints; `ValueError` if it is impossible."""


class AbstractPositionConstraint(AbstractConstraint):
    """Equations $g = 0$ on the positions of bodies."""

    @property
    def is_on_positions(self) -> bool:
        """Whether the equations constrain positions: true."""
        return True

    @abc.abstractmethod
    def value(self, t: Scalar, configuration: Configuration) -> Float[Array, " m"]:
        """Return the values of the equations, zero where they hold."""


class AbstractCoupling(AbstractPositionConstraint):
    """A coordinate of a joint as a function of that of another, rad or m."""

    joint: str = eqx.field(static=True)
    by: str = eqx.field(static=True)
    name: str = eqx.field(static=True)
    is_length: bool | None = eqx.field(static=True)

    def __init__(self, joint: str | AbstractJoint, by: str | AbstractJoint, name: str | None):
        self.joint, self.by = _coupled_joints(type(self).__name__, joint, by)
        self.name = checked_name(type(self).__name__, name, f"coupling {self.joint} by {self.by}")
        self.is_length = None

    @abc.abstractmethod
    def position(self, by: Scalar) -> Scalar:
        """Return the coordinate of `joint` at that of `by`."""

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return (bool(self.is_length),)

    def body_names(self) -> tuple[str, ...]:
        return ()

    def joint_names(self) -> tuple[str, ...]:
        return (self.joint, self.by)

    def bind_joints(self, joints: Mapping[str, AbstractJoint]) -> Self:
        kind = type(self).__name__
        for name in self.joint_names():
            check_single_coordinate(joints[name], kind)
        return replace_fields(self, is_length=not joints[self.joint].has_angle)

    def value(self, t: Scalar, configuration: Configuration) -> Float[Array, " m"]:
        driven, by = (configuration.coordinates[name][0] for name in self.joint_names())
        violation = driven - self.position(by)
        return (violation if self.is_length else wrap_angle(violation))[None]


class Coupling(AbstractCoupling):
    r"""A linear coupling of two joint coordinates, $q = r\,q_b + q_0$: gears, racks, mimic joints.

    Both joints have one coordinate each (`Revolute`, `Prismatic`, `Screw`), rad or m. A coupling of
    two angles is a gear; a coupling of an angle and a length is a rack or a spindle, with the
    `ratio` in m/rad or rad/m. The angles of both joints are unwrapped beyond pi: they become
    unknowns of `NullSpace` and `Absolute`. Add the coupling to the joints of a `System`.

    **Arguments:** `joint`, with the coordinate $q$: a joint of the system or its name; `by`, with
    the coordinate $q_b$, likewise; `ratio`, $r$; `offset`, $q_0$, m or rad; `name`, by default
    `"coupling <joint> by <by>"`.
    **Errors:** `ValueError` for a joint with itself or wrong shapes; when the `System` is built,
    for unknown joints and for joints without a coordinate or with several.
    """

    ratio: Scalar
    offset: Scalar

    def __init__(
        self,
        joint: str | AbstractJoint,
        by: str | AbstractJoint,
        ratio: ArrayInput,
        offset: ArrayInput = 0.0,
        name: str | None = None,
    ):
        super().__init__(joint, by, name)
        self.ratio = scalar_leaf(ratio, "Coupling(ratio=...)")
        self.offset = scalar_leaf(offset, "Coupling(offset=...)")

    def position(self, by: Scalar) -> Scalar:
        return self.ratio * by + self.offset


class PolynomialCoupling(AbstractCoupling):
    r"""A coupling of two joint coordinates by a polynomial, $q = \sum_k c_k q_b^k$: a cam.

    Joints and units are those of `rj.Coupling`, which is faster and simpler for a constant ratio.

    **Arguments:** `joint`, `by`, joints of the system or their names, with the coordinates $q$ and
    $q_b$; `coefficients`, (n,), $c_0$ first, rad or m per power of rad or m; `name`, of the
    coupling.
    **Errors:** as of `Coupling`.
    **Source:** MuJoCo, XML reference, `equality/joint`, without its softness.
    """

    coefficients: Vector

    def __init__(
        self,
        joint: str | AbstractJoint,
        by: str | AbstractJoint,
        coefficients: ArrayInput,
        name: str | None = None,
    ):
        super().__init__(joint, by, name)
        argument = "PolynomialCoupling(coefficients=...)"
        self.coefficients = finite_leaf(coefficients, argument, (np.size(coefficients),))

    def position(self, by: Scalar) -> Scalar:
        return jnp.polyval(self.coefficients[::-1], by)


def _coupled_joints(kind: str, *joints: str | AbstractJoint) -> tuple[str, str]:
    """Return the names of the joints of a coupling."""
    names = []
    for argument, value in zip(("joint", "by"), joints, strict=True):
        value = value.name if isinstance(value, AbstractJoint) else value
        if not isinstance(value, str):
            raise TypeError(f"`{kind}({argument}=...)` takes a joint or its name; got {value!r}.")
        names.append(value)
    if names[0] == names[1]:
        raise ValueError(f"`{kind}` couples two different joints; got {names[0]!r} twice.")
    return names[0], names[1]


def check_single_coordinate(joint: AbstractJoint, kind: str) -> None:
    """Raise `ValueError` unless a joint of a `kind` of law has one coordinate."""
    count = joint.num_translations + joint.has_angle
    if count != 1 or joint.num_rates > 1:
        raise ValueError(
            f"`{kind}` is for joints with one coordinate; the {type(joint).__name__} "
            f"{joint.name!r} has {'none' if count == 0 else max(count, joint.num_rates)}."
        )


class AbstractUserConstraint(AbstractConstraint):
    """Equations that a user's function returns.

    **Attributes:** `function`; `bodies`, names of the bodies and frames that the function depends
    on; `lengths`, whether each equation is a length; `name`.
    """

    arguments: ClassVar[str]  # what the function takes, for messages

    function: Any
    bodies: tuple[str, ...] = eqx.field(static=True)
    lengths: tuple[bool, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[..., Any],
        bodies: str | Sequence[str],
        lengths: bool | Sequence[bool] = True,
        name: str | None = None,
    ):
        kind = type(self).__name__
        if not callable(function):
            raise TypeError(
                f"`{kind}(function=...)` must be a function of {self.arguments}; got {function!r}."
            )
        self.bodies = (bodies,) if isinstance(bodies, str) else tuple(bodies)
        if not self.bodies:
            raise ValueError(f"`{kind}(bodies=...)` needs at least one body; got none.")
        words = re.sub("(?<=[a-z])(?=[A-Z])", " ", kind).lower()
        self.name = checked_name(kind, name, f"{words} {'-'.join(self.bodies)}")
        self.function = as_law(function, f"{kind}(function=...)")
        shape = jax.eval_shape(lambda: self._at_rest()).shape
        if len(shape) > 1 or shape == (0,):
            raise ValueError(
                f"`{kind}(function=...)` must return a number or a vector; got shape {shape}."
            )
        count = shape[0] if shape else 1
        self.lengths = (
            (lengths,) * count if isinstance(lengths, bool) else tuple(map(bool, lengths))
        )
        if len(self.lengths) != count:
            raise ValueError(
                f"`{kind}(lengths=...)` must have one flag for each equation; got "
                f"{len(self.lengths)} for {count} equations."
            )

    @abc.abstractmethod
    def _at_rest(self) -> Array:
        """Return the values of the function with all bodies at the origin, at rest."""

    def _values(self, *arguments: Any) -> Array:
        return jnp.asarray(self.function(*arguments))

    def _origins(self) -> dict[str, Pose]:
        return {name: (jnp.zeros(3), jnp.eye(3)) for name in self.bodies}

    @property
    def constraint_is_length(self) -> tuple[bool, ...]:
        return self.lengths

    def body_names(self) -> tuple[str, ...]:
        return self.bodies

    def joint_names(self) -> tuple[str, ...]:
        return ()

    def bind_joints(self, joints: Mapping[str, AbstractJoint]) -> Self:
        return self


class Constraint(AbstractUserConstraint, AbstractPositionConstraint):
    r"""User-defined equations $g(t, x_1, R_1, x_2, R_2, \dots) = 0$ on poses of bodies and frames.

    Add the constraint to the joints of a `System`. The reference configuration need not satisfy
    the equations.

    **Arguments:**

    - `function`: `function(t, poses)` with `poses[name] = (x, R)`, the position of the centre of
      mass, (3,) m, space components, and the rotation matrix (3, 3) from body to space; for a
      `Frame` its origin and the matrix from frame to space. The function returns a scalar or a
      vector, zero where the equations hold. An Equinox module keeps its parameters as leaves.
    - `bodies`: names of the bodies and frames that the function depends on.
    - `lengths`: whether the values are lengths, m; other values are angles or dimensionless. One
      flag per value, or one for all.
    - `name`: by default `"constraint <bodies>"`.

    **Errors:** `TypeError` if `function` is not callable; `ValueError` for no bodies, a function
    that returns neither a scalar nor a vector, or a wrong number of `lengths`.
    """

    arguments = "time and poses"

    def value(self, t: Scalar, configuration: Configuration) -> Float[Array, " m"]:
        return self._values(t, configuration.poses).reshape(len(self.lengths))

    def _at_rest(self) -> Array:
        return self._values(jnp.zeros(()), self._origins())
