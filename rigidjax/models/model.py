"""Models that were loaded from a file."""

import dataclasses

import equinox as eqx
from jaxtyping import Array, Float

from ..bodies.frame import Frame
from ..mechanics import System
from ..state import State
from . import exchange
from .description import Actuator, GroundFrame, JointKind, JointLimits
from .exchange import Program, VelocityMap
from .report import Report


@dataclasses.dataclass(frozen=True)
class Names:
    """Names in file order: `bodies` and `joints` of the system, and all `links` of the file.

    For each joint its kind in `kinds` and its links, parent and child, in `ends`. `continuous` are
    the hinges without limits of a URDF file, `closing` the joints that close loops, and
    `depth_first` all joints in Pinocchio's order. `fixed` are the fixed joints between links of one
    body: name, parent and child.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    links: tuple[str, ...]
    kinds: tuple[JointKind, ...]
    ends: tuple[tuple[str, str], ...]
    continuous: tuple[str, ...]
    closing: tuple[str, ...]
    depth_first: tuple[str, ...]
    fixed: tuple[tuple[str, str, str], ...]


class Model(eqx.Module):
    """A robot or mechanism from a file.

    **Attributes:**

    - `system`: bodies, joints, forces and the frames of lumped links. The body of a link has its
      name, its origin is the centre of mass and its axes are those of the link.
    - `frames`: the frame of every link of the file, and every named site, by name: a `Frame` with
      the body it is on, or `"ground"`.
    - `names`: of bodies, joints and links in file order.
    - `limits`: of joint coordinates, rates and efforts, by name of the joint. Nothing
      enforces them.
    - `actuators`, as the file declares them. They exert no forces, and an actuator that is added to
      the system does not know their ranges: give its law or its `limit=` the range.
    - `state`: the reference configuration of the file, at rest.
    - `zeros`: the file's coordinate of each joint in the reference configuration, where the
      coordinate of the system is zero; m or rad.
    - `report`: account of all elements of the file, see `Report`.
    """

    system: System
    frames: dict[str, Frame | GroundFrame]
    names: Names = eqx.field(static=True)
    limits: dict[str, JointLimits] = eqx.field(static=True)
    actuators: tuple[Actuator, ...] = eqx.field(static=True)
    state: State
    zeros: dict[str, float] = eqx.field(static=True)
    report: Report = eqx.field(static=True)

    def from_pinocchio(self, q: Float[Array, " n"], v: Float[Array, " m"] | None = None) -> State:
        """Return the state with the configuration `q` and velocity `v` of Pinocchio.

        Joints are in Pinocchio's order, depth first with children sorted by the name of their
        joint. A floating joint has the position of its link frame, (3,) m, and the quaternion
        (x, y, z, w), from the joint frame; its velocity is that of the frame's origin, link axes,
        and the angular velocity, link axes. A continuous joint has cosine and sine of its angle.

        **Arguments:** `q`, (n,); `v`, (m,), by default zero.
        **Errors:** `ValueError` for a wrong shape, or a joint that Pinocchio does not have.
        """
        return exchange.from_coordinates(self, "pinocchio", q, v)

    def to_pinocchio(self, state: State) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Return Pinocchio's configuration and velocity of a state; see `from_pinocchio`."""
        return exchange.to_coordinates(self, "pinocchio", state)

    def from_mujoco(
        self, qpos: Float[Array, " n"], qvel: Float[Array, " m"] | None = None
    ) -> State:
        """Return the state with MuJoCo's coordinates `qpos` and velocities `qvel`.

        Joints are in the order of the MJCF file, depth first. A free joint has the position of the
        body frame, (3,) m, and the quaternion, scalar first; its velocity is that of the frame's
        origin, space axes, and the angular velocity, body axes.

        **Arguments:** `qpos`, (n,); `qvel`, (m,), by default zero.
        **Errors:** `ValueError` for a wrong shape, or a joint that MuJoCo does not have.
        """
        return exchange.from_coordinates(self, "mujoco", qpos, qvel)

    def to_mujoco(self, state: State) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Return MuJoCo's coordinates and velocities of a state; see `from_mujoco`."""
        return exchange.to_coordinates(self, "mujoco", state)

    def velocity_map(self, state: State, program: Program) -> VelocityMap:
        """Return the conversion of generalised velocities, forces and mass matrices in a state.

        **Arguments:** `state`, with the poses; `program`, `"pinocchio"` or `"mujoco"`.
        """
        return exchange.velocity_map(self, program, state)
