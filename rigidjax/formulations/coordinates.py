r"""Unknowns and the motion of all bodies that they stand for.

Methods are compiled (one by one they would be hundreds of small programs), of a model whose
mechanics is built once.
"""

import abc
import functools
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..checks import ArrayInput
from ..forces.base import Kinematics
from ..joints.replacing import replace_fields
from ..mechanics import System, system_of
from ..mechanics.constraints import constraint_rates, constraint_values
from ..mechanics.dynamics.projections import pose_correction
from ..mechanics.kinematics.poses import (
    assemble_poses,
    joint_angle_rates,
    joint_angles,
    joint_coordinates,
    joint_frames_at,
    joint_twists,
    kinematics_for_forces,
    poses_of_state,
    split_by_joint,
)
from ..mechanics.kinematics.twists import Twists
from ..mechanics.reactions import ConstraintReaction, Reaction, multipliers, reactions
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import (
    PreparedSystem,
    StackedSystem,
    prepare_system,
    separate_arrays,
)
from ..mechanics.violations import constraint_violations
from ..native.ops import vmap_rows
from ..rotations.base import AbstractRotation
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product
from ..rotations.so3 import conjugate, multiply
from ..state import State
from .charts import Unknowns, join_chart, split_chart
from .compiled import compiled

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

# Newton steps of the projection after a time step: what a step leaves is small, so that the second
# one reaches round-off. With loops it is made where the first one did not, which is seldom; a step
# of a tree costs about as much as to look.
_NEWTON_STEPS = 2
# Gap of a joint that counts as round-off, in units of the last place.
_ROUND_OFF = 64
# Reverse mode computes a Newton step again: to keep what it computed, entry by entry, would take
# more than half of the program.
_computed_again = functools.partial(jax.checkpoint, prevent_cse=False)


class AbstractCoordinates(eqx.Module):
    """Poses and twists of all bodies from unknowns, and back.

    `built` is the mechanics without its system, once it is computed for a run, or the numbers of
    the system, once they are `gathered`.
    """

    system: eqx.AbstractVar[System | FixedPointBody]
    arrays: eqx.AbstractVar[PreparedSystem | StackedSystem | None]
    rotation: eqx.AbstractVar[AbstractRotation]
    needs_all_mass: AbstractClassVar[bool]  # or in the directions that the joints leave free

    @property
    def multibody(self) -> System:
        """The system; of a body with a fixed point that of one body."""
        return system_of(self.system)

    @property
    def prepared(self) -> PreparedSystem:
        """The arrays that algorithms work on."""
        if isinstance(self.arrays, PreparedSystem):
            return replace_fields(self.arrays, system=self.multibody)
        return prepare_system(self.multibody, self.arrays)

    def separate_arrays(self) -> Self:
        """Return the model for a call of a compiled function: parameters in one array per kind."""
        if self.arrays is not None or not isinstance(self.system, System):
            return self
        system, arrays = separate_arrays(self.system)
        return replace_fields(self, system=system, arrays=arrays)

    def prepare(self, t: Float[Array, ""] | None = None) -> Self:
        """Return the model with its arrays prepared, with the masses at a time if they change."""
        if isinstance(self.arrays, PreparedSystem):
            return self
        if t is not None and self.multibody.has_changing_mass:
            return replace_fields(self, system=self.multibody.at_time(t)).prepare()
        return replace_fields(self, arrays=replace_fields(self.prepared, system=None))

    @property
    @abc.abstractmethod
    def layout(self) -> Any:
        """Where the unknowns stand in `y`, an `AbstractLayout`."""

    @property
    @abc.abstractmethod
    def sizes(self) -> set[int]:
        """Numbers of unknowns that its methods take, with and without multipliers."""

    @property
    def followed(self) -> tuple[int, ...]:
        """Joints whose angles are unknowns of their own, because their whole turns matter."""
        return self.multibody.tracked_joints

    @abc.abstractmethod
    def motion(self, t, y: Unknowns) -> tuple[Poses, JointFrames, Twists]:
        """Poses, placement of the joints, and twists of all bodies."""

    @abc.abstractmethod
    def velocities_of(
        self, t, poses, joint_frames, coordinates, twists: Twists
    ) -> Float[Array, " V"]:
        """Velocity-level unknowns of twists, nearest to them if the joints do not allow them."""

    @abc.abstractmethod
    def coordinate_rates(self, y: Unknowns, twists: Twists) -> Float[Array, "k n"]:
        """Rates of the rotation coordinates."""

    @abc.abstractmethod
    def accelerations(self, t: Float[Array, ""], y: Unknowns) -> Twists:
        r"""Accelerations of all bodies, joints included.

        **Returns:** `linear`, of the centres of mass (of the fixed point, zero), space components,
        (L, 3) m/s^2; `angular`, $\dot\Omega$, body components, (L, 3) rad/s^2.
        """

    def poses(self, t, y: Unknowns) -> Poses:
        """Poses of all bodies and turns of the joints."""
        values, reference = split_chart(y)
        x, a = self.layout.poses(values)
        return assemble_poses(
            self.prepared, x, self.matrices(a, reference), self.layout.angles(values)
        )

    def matrices(self, a, reference) -> Float[Array, "k 3 3"]:
        """Rotation matrices of coordinates in the charts `reference`."""
        R = vmap_rows(self.rotation.to_matrix, a)
        if reference is None:
            return R
        return vmap_rows(lambda p, R: product(euler_map(p), R), reference, R)

    def coordinates_of(self, p: Float[Array, "k 4"], reference) -> Float[Array, "k n"]:
        """Coordinates of unit quaternions in the charts `reference`."""
        if reference is not None:
            p = jax.vmap(lambda ref, p: multiply(conjugate(ref), p))(reference, p)
        return jax.vmap(self.rotation.from_quaternion)(p)

    def quaternions(self, state: State) -> Float[Array, "k 4"]:
        """Rotations that the unknowns have coordinates of."""
        return state.orientation

    @eqx.filter_jit
    def pack(
        self,
        state: State,
        reference: Float[Array, "k 4"] | None = None,
        t: ArrayInput = 0.0,
    ) -> Float[Array, " N"]:
        """Unknowns of a state with unit quaternions, unchecked, in the charts `reference`;
        velocities nearest to it that the joints allow."""
        return self.prepare().packed(jnp.asarray(t, state.position.dtype), state, reference)

    def packed(self, t, state: State, reference) -> Float[Array, " N"]:
        """`pack` of a model that is ready."""
        prepared, p = self.prepared, state.orientation
        a = self.coordinates_of(p, reference)
        poses = poses_of_state(prepared, state, self.followed)
        joint_frames = joint_frames_at(prepared, poses)
        angles = joint_angles(prepared, joint_frames, self.followed)
        twists = Twists(state.velocity, state.angular_velocity)
        velocities = self.velocities_of(t, poses, joint_frames, a, twists)
        return self.layout.join_all(state.position, a, velocities, angles)

    @compiled
    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        """Poses and twists of all bodies, as forces see them."""
        return kinematics_for_forces(self.prepared, *self.motion(t, y))

    def angle_rates(self, joint_frames: JointFrames, twists: Twists) -> Float[Array, " A"]:
        """Rates of the angles that are unknowns."""
        return joint_angle_rates(self.prepared, joint_frames, twists, self.followed)

    @compiled
    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Largest violation of the constraints: position level and velocity level (1/s)."""
        _, joint_frames, twists = self.motion(t, y)
        a = self.layout.rotations(split_chart(y)[0])
        position = constraint_values(self.prepared, t, joint_frames)
        velocity = constraint_rates(self.prepared, t, joint_frames, twists)
        if self.rotation.num_constraints > 0 and len(a):
            internal = jax.vmap(self.rotation.constraint)(a)
            a_dot = self.coordinate_rates(y, twists)
            rate = jax.vmap(lambda a, v: self.rotation.constraint_jacobian(a) @ v)(a, a_dot)
            position = jnp.concatenate([position, internal.ravel()])
            velocity = jnp.concatenate([velocity, rate.ravel()])
        return jnp.max(jnp.abs(position), initial=0.0), jnp.max(jnp.abs(velocity), initial=0.0)

    def gaps(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " J"]:
        """How far each joint is open: lengths over that of the mechanism, angles in rad.

        The chord of the angle where the child is the wrong way round in its joint.
        **Returns:** shape (J,), in the order of the system's joints, then of its other constraints;
        empty without any.
        """
        return self._gaps(t, self.without_multipliers(y))

    @compiled
    def _gaps(self, t, y: Unknowns) -> Float[Array, " J"]:
        return constraint_violations(
            self.prepared, t, joint_frames_at(self.prepared, self.poses(t, y))
        )

    def without_multipliers(self, y: Unknowns) -> Unknowns:
        """The unknowns but for multipliers behind them."""
        return join_chart(split_chart(y)[0][: self.layout.size], y)

    @compiled
    def _joint_coordinates(self, t, y: Unknowns):
        prepared = self.prepared
        _, joint_frames, twists = self.motion(t, y)
        found = joint_coordinates(prepared, joint_frames, t)
        rates = split_by_joint(
            prepared,
            [
                group.map(lambda joint, r, s: joint.coordinate_rates(r, s), frames.relative, twist)
                for group, frames, twist in zip(
                    prepared.groups,
                    joint_frames,
                    joint_twists(prepared, joint_frames, twists),
                    strict=True,
                )
            ],
        )
        names = {str(joint.name): j for j, joint in enumerate(prepared.system.joints)}
        coordinates = {name: found[j] for name, j in names.items()}
        return coordinates, {name: rates[j] for name, j in names.items()}

    def closed(self, t, y: Unknowns) -> Unknowns:
        """Unknowns whose positions satisfy all constraints; velocities as they were."""
        if self.prepared.is_free:
            return self.on_rotations(y)
        step = _computed_again(lambda y: self.newton_step(t, y))
        if not self.multibody.closes:
            # A loop, since it compiles in half the time.
            return jax.lax.fori_loop(0, _NEWTON_STEPS, lambda _, y: step(y), y)

        def improved(_, carry):
            y, gap = carry
            y = jax.lax.cond(gap > limit, step, lambda y: y, y)
            return y, jax.lax.stop_gradient(jnp.max(self._gaps(t, y), initial=0.0))

        dtype = split_chart(y)[0].dtype
        limit = _ROUND_OFF * float(jnp.finfo(dtype).eps)
        start = y, jnp.asarray(jnp.inf, dtype)
        return jax.lax.fori_loop(0, _NEWTON_STEPS, improved, start)[0]

    def on_rotations(self, y: Unknowns) -> Unknowns:
        """Unknowns whose rotation coordinates satisfy their own constraints."""
        values, _ = split_chart(y)
        x, a = self.layout.poses(values)
        a, angles = vmap_rows(self.rotation.project, a), self.layout.angles(values)
        return join_chart(self.layout.join_all(x, a, self.layout.velocities(values), angles), y)

    def newton_step(self, t, y: Unknowns) -> Unknowns:
        """One Newton step towards poses that satisfy all constraints."""
        y = self.on_rotations(y)
        values, reference = split_chart(y)
        x, a = self.layout.poses(values)
        prepared, angles, poses = self.prepared, self.layout.angles(values), self.poses(t, y)
        change = pose_correction(prepared, t, poses, joint_frames_at(prepared, poses))
        a = a + jax.vmap(self.rotation.rate)(a, change[:, 3:])
        a = jax.vmap(self.rotation.project)(a)
        x = x + change[:, :3]
        if angles.size:
            poses = assemble_poses(prepared, x, self.matrices(a, reference), angles)
            angles = joint_angles(prepared, joint_frames_at(prepared, poses), self.followed)
        velocities = self.layout.velocities(values)
        return join_chart(self.layout.join_all(x, a, velocities, angles), y)

    @compiled
    def joint_multipliers(self, t, y: Unknowns) -> Float[Array, " m"]:
        """Multipliers of the joints and other constraints, group by group; see `reactions`."""
        poses, joint_frames, twists = self.motion(t, y)
        accelerations = self.accelerations(t, y)
        return multipliers(self.prepared, t, poses, joint_frames, twists, accelerations)

    @compiled
    def reactions(
        self, t: Float[Array, ""], y: Unknowns
    ) -> dict[str, Reaction | ConstraintReaction]:
        """Reaction force and moment of every joint on its child, by the joint's name.

        Space components, about the joint point of the child. A constraint that is no joint
        (`Constraint`, `VelocityConstraint`, `Coupling`) has a `ConstraintReaction`: forces and
        moments on each of its bodies. With redundant constraints they are those of the multipliers
        of least norm.
        """
        _, joint_frames, _ = self.motion(t, y)
        return reactions(self.prepared, t, joint_frames, self.joint_multipliers(t, y))
