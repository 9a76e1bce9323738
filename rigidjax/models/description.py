"""Neutral description of a model file, from which a `Model` is assembled."""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import Polynomial
from scipy.spatial.transform import Rotation

from ..bodies import Body
from ..checks import vector_leaf
from .report import Report


class Placement(NamedTuple):
    """Origin and axes of a frame in another: `position`, (3,) m; `rotation`, (3, 3)."""

    position: np.ndarray
    rotation: np.ndarray

    def then(self, other: "Placement") -> "Placement":
        """Return the placement of a frame that is given in this one."""
        return Placement(
            self.position + self.rotation @ other.position, self.rotation @ other.rotation
        )

    def inverse(self) -> "Placement":
        """Return the placement of the outer frame in this one."""
        return Placement(-self.rotation.T @ self.position, self.rotation.T)

    def of_point(self, point: np.ndarray) -> np.ndarray:
        """Return a point of this frame in the outer one."""
        return self.position + self.rotation @ point

    @property
    def quaternion(self) -> np.ndarray:
        """Unit quaternion (4,), scalar first, of the rotation."""
        return Rotation.from_matrix(self.rotation).as_quat(canonical=True, scalar_first=True)


IDENTITY = Placement(np.zeros(3), np.eye(3))


def from_roll_pitch_yaw(position: np.ndarray, angles: np.ndarray) -> Placement:
    """Return the placement with rotation Rz(yaw) Ry(pitch) Rx(roll), angles in rad."""
    r, p, y = angles
    (cr, cp, cy), (sr, sp, sy) = np.cos([r, p, y]), np.sin([r, p, y])
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return Placement(np.asarray(position, float), rotation)


def roll_pitch_yaw(rotation: np.ndarray) -> np.ndarray:
    """Return angles, (3,) rad, of a rotation Rz(yaw) Ry(pitch) Rx(roll), accurate at any pitch."""
    R = rotation
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    # Angles of the rotation that is left after the yaw; at a pitch of pi/2 any yaw will do.
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def from_quaternion(position: np.ndarray, quaternion: np.ndarray) -> Placement:
    """Return the placement of a quaternion (4,), scalar first, of any length."""
    rotation = Rotation.from_quat(quaternion, scalar_first=True).as_matrix()
    return Placement(np.asarray(position, float), rotation)


def placement_of(part: Any) -> Placement:
    """Return the placement of a body of a system in space, or of a frame on its body."""
    position = part.position if isinstance(part, Body) else part.point
    return from_quaternion(np.asarray(position), np.asarray(part.orientation))


def about_axis(point: np.ndarray, axis: np.ndarray, angle: float) -> Placement:
    """Return the placement that a rotation about an axis through a point gives to a frame."""
    rotation = Rotation.from_rotvec(axis * angle).as_matrix()
    return Placement(point - rotation @ point, rotation)


JointKind: TypeAlias = Literal[
    "fixed", "revolute", "prismatic", "cylindrical", "screw", "universal", "planar", "spherical",
    "floating",
]  # fmt: skip

GROUND = "ground"


def make_unique(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, with a number behind it if necessary, and take it."""
    result, count = name, 1
    while result in taken:
        count += 1
        result = f"{name} {count}"
    taken.add(result)
    return result


@dataclasses.dataclass
class LinkShape:
    """A visible solid of a link.

    `kind`, `"box"` (edges), `"cylinder"` and `"capsule"` (radius, length), `"sphere"` (radius),
    `"ellipsoid"` (semi-axes) or `"mesh"` (scale factors); `size`, m; `placement` in the link;
    `path`, of the file of a mesh.
    """

    kind: str
    size: tuple[float, ...]
    placement: Placement = IDENTITY
    path: str = ""


@dataclasses.dataclass
class Link:
    """A link in the reference configuration of the file.

    `placement` of the link frame in space; `center` of mass, (3,) m, and `inertia` about it,
    (3, 3) kg m^2, in link axes; `line` of the file.
    """

    name: str
    placement: Placement = IDENTITY
    mass: float = 0.0
    center: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((3, 3)))
    line: int = 0
    shapes: list[LinkShape] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class JointLimits:
    """Limits of a joint coordinate of the system, `None` where the file gives none.

    `position`, lower and upper coordinate, m or rad, zero in the reference configuration; `rate`,
    m/s or rad/s; `effort`, N or N m.
    """

    position: tuple[float, float] | None = None
    rate: float | None = None
    effort: float | None = None


@dataclasses.dataclass
class JointRecord:
    """A joint in the reference configuration of the file.

    `point`, (3,) m, and `axes`, unit vectors (3,), in space; `zero`, the file's coordinate in the
    reference configuration; `pitch` of a screw, m per revolution; `damping` (N s/m or N m s/rad),
    `armature` (kg or kg m^2), `friction` (N or N m), `stiffness` and the coordinate `rest` at which
    that spring is unloaded, zero in the reference configuration; `is_continuous`, for hinges that
    turn without end; `closes_loop`, for joints that are not part of the tree; `gap`, the
    displacement in space of the child's side of such a joint from the parent's, whose point and
    axes are given, if the loop does not close in the file (see `close_loops`); `stays`, for joints
    that closing a loop does not move.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    point: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    axes: tuple[np.ndarray, ...] = ()
    zero: float = 0.0
    pitch: float = 0.0
    limits: JointLimits | None = None
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    is_continuous: bool = False
    closes_loop: bool = False
    gap: Placement | None = None
    stays: bool = False
    line: int = 0

    def describe(self, kind: str) -> str:
        """Return a line for the report: `kind`, the type in the file, constants, and any limits."""
        constants = [
            f"{name} {getattr(self, name):g}"
            for name in ("damping", "stiffness", "armature")
            if getattr(self, name)
        ]
        return ", ".join([kind, *constants, *(["limits"] if self.limits is not None else [])])


@dataclasses.dataclass(frozen=True)
class CouplingData:
    """The coordinate of `joint` is `ratio` times that of `by`, both zero in the reference
    configuration, plus `offset`, m or rad, which `close_loops` removes.

    `higher`, coefficients of the square and of higher powers of the coordinate of `by`.
    """

    joint: str
    by: str
    ratio: float
    name: str | None = None
    line: int = 0
    offset: float = 0.0
    higher: tuple[float, ...] = ()

    @property
    def polynomial(self) -> Polynomial:
        """The coordinate of `joint` as a function of that of `by`."""
        return Polynomial([self.offset, self.ratio, *self.higher])

    def about(self, by: float) -> "CouplingData":
        """Return the coupling in coordinates from a closed configuration.

        **Arguments:** `by`, the coordinate of the joint of that name there, m or rad.
        """
        ratio, *higher = self.polynomial(Polynomial([by, 1.0])).coef[1:]
        return dataclasses.replace(self, ratio=ratio, higher=tuple(higher), offset=0.0)


@dataclasses.dataclass(frozen=True)
class TendonData:
    """A tendon with a spring and a damper.

    Either on `coefficients` of the coordinates of joints in the file, or over `points`: a link and
    a point in its frame. `length`, the range of unloaded lengths.
    """

    stiffness: float
    damping: float
    length: tuple[float, float]
    coefficients: dict[str, float]
    points: list[tuple[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Actuator:
    """An actuator of a joint, as the file declares it.

    Its force on the coordinate q, which is zero in the reference configuration, is `gear * (gain *
    u + bias[0] + bias[1] * gear * q + bias[2] * gear * q')` with the control u, N or N m. `kind` is
    `"motor"`, `"position"`, `"velocity"` or `"general"`; `control_range` and `force_range` are the
    limits of u and of the force before the gear, `None` where there are none.
    """

    name: str
    joint: str
    kind: str = "motor"
    gear: float = 1.0
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None


@dataclasses.dataclass
class FrameData:
    """A named frame on a link, such as a site; `placement` in the link."""

    name: str
    link: str
    placement: Placement


@dataclasses.dataclass
class Description:
    """Links, joints, tendons and actuators of a model file, in file order, and the report on it.

    `world`, names of links that are the inertial frame; `gravity`, (3,) m/s^2, or `None`.
    """

    name: str
    report: Report
    links: list[Link] = dataclasses.field(default_factory=list)
    joints: list[JointRecord] = dataclasses.field(default_factory=list)
    couplings: list[CouplingData] = dataclasses.field(default_factory=list)
    tendons: list[TendonData] = dataclasses.field(default_factory=list)
    actuators: list[Actuator] = dataclasses.field(default_factory=list)
    frames: list[FrameData] = dataclasses.field(default_factory=list)
    world: set[str] = dataclasses.field(default_factory=set)
    gravity: np.ndarray | None = None


class GroundFrame(eqx.Module):
    """A frame at rest: `point`, its origin, (3,) m; `orientation`, (4,), from frame to space."""

    name: str = eqx.field(static=True)
    point: Float[Array, "3"]
    orientation: Float[Array, "4"]

    def __init__(self, name: str, point: Any, orientation: Any):
        self.name = name
        self.point = vector_leaf(point, "GroundFrame(point=...)")
        self.orientation = jnp.asarray(orientation, float)

    @property
    def body(self) -> str:
        """Name of the body: the ground."""
        return GROUND
