"""Motion of all bodies from the unknowns of a formulation, and back.

Methods are compiled once for all times (`compile_method`), and a run prepares the arrays of its
model once.
"""

import abc
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..bodies.fixed_point import FixedPointBody
from ..checks import ArrayInput
from ..forces.base import Kinematics
from ..joints.replacing import replace_fields
from ..mechanics import System, system_of
from ..mechanics.dynamics.projections import pose_correction
from ..mechanics.dynamics.reactions import ConstraintReaction, Reaction, multipliers, reactions
from ..mechanics.kinematics.constraints import (
    constraint_rates,
    constraint_values,
    constraint_violations,
)
from ..mechanics.kinematics.poses import (
    Twists,
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
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import (
    PreparedSystem,
    StackedSystem,
    prepare_system,
    separate_arrays,
)
from ..persistent_jit import persistent_jit
from ..rotations.base import AbstractRotation
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product
from ..rotations.so3 import conjugate, multiply
from ..signals.shared_tables import freeze_signals
from ..small_arrays import vmap_rows
from ..state import State
from .binding import (
    bind_controls,
    compile_free_method,
    compile_method,
    held_inputs,
    initial_states,
    state_rates,
)
from .charts import Unknowns, join_chart, split_chart

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

# Newton steps of the projection after a time step. The violation is small, so that the first step
# mostly reaches round-off; the second is made only where it did not.
_NEWTON_STEPS = 2
# Violation of a joint that counts as round-off, in units of the last place.
_ROUND_OFF = 64
# Reverse mode recomputes a Newton step: to store its intermediate values would take more than half
# of the equations.
_rematerialise = functools.partial(jax.checkpoint, prevent_cse=False)


class AbstractCoordinates(eqx.Module):
    """Map between unknowns and the poses and twists of all bodies.

    `arrays`: `None`, or the parameters of the system stacked for a call of a compiled function, or
    prepared for a run.
    """

    system: eqx.AbstractVar[System | FixedPointBody]
    arrays: eqx.AbstractVar[PreparedSystem | StackedSystem | None]
    rotation: eqx.AbstractVar[AbstractRotation]
    # Whether every body needs mass and inertia, not only those that the joints leave free to move.
    needs_all_mass: AbstractClassVar[bool]
    # Whether `place_start` replaces the given state.
    places_start: ClassVar[bool] = False
    takes_controllers: ClassVar[bool] = True
    # Whether joints may have rotors.
    takes_armature: ClassVar[bool] = True

    @property
    def multibody(self) -> System:
        """The system; of a body with a fixed point, a system of one body."""
        return system_of(self.system)

    @property
    def prepared_system(self) -> PreparedSystem:
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

    def bind(self, t: Scalar, y: Unknowns) -> Self:
        """Return the model with the values that its inputs and actuators have at `(t, y)`."""
        return bind_controls(self, t, y)

    def held_inputs(self, y: Unknowns) -> dict[str, Array]:
        """Return the values of inputs that sampled controllers or transitions have set."""
        return held_inputs(self, y)

    def prepare(self, t: Scalar | None = None) -> Self:
        """Return the model with its arrays prepared, at a time if it is given.

        Masses that change then have their values at this time, and signals that are laws by
        themselves are polynomials around it.
        """
        if isinstance(self.arrays, PreparedSystem):
            return self
        if t is None:
            return replace_fields(self, arrays=replace_fields(self.prepared_system, system=None))
        model = freeze_signals(self, t, lambda signal: signal.is_law)
        if self.multibody.has_changing_mass:
            model = replace_fields(model, system=model.multibody.at_time(t))
        return model.prepare()

    @property
    @abc.abstractmethod
    def layout(self) -> Any:
        """Positions of the unknowns in `y`, an `AbstractLayout`."""

    @property
    @abc.abstractmethod
    def sizes(self) -> set[int]:
        """Numbers of unknowns that its methods take, with and without multipliers."""

    @property
    def unwrapped_joints(self) -> tuple[int, ...]:
        """Joints whose angles are unknowns of their own, because their revolutions matter."""
        return self.multibody.tracked_joints

    @abc.abstractmethod
    def motion(self, t: Scalar, y: Unknowns) -> tuple[Poses, JointFrames, Twists]:
        """Return poses, joint frames and twists of all bodies."""

    @abc.abstractmethod
    def velocities_of(
        self,
        t: Scalar,
        poses: Poses,
        joint_frames: JointFrames,
        coordinates: Float[Array, "k n"],
        twists: Twists,
    ) -> Float[Array, " V"]:
        """Return the velocity-level unknowns of twists, nearest to twists that the joints do not
        allow."""

    @abc.abstractmethod
    def coordinate_rates(self, y: Unknowns, twists: Twists) -> Float[Array, "k n"]:
        """Return the rates of the rotation coordinates."""

    @abc.abstractmethod
    def accelerations(self, t: Scalar, y: Unknowns) -> Twists:
        r"""Return the accelerations of all bodies, joints included.

        **Returns:** `linear`, of the centres of mass (of the fixed point, zero), space components,
        (L, 3) m/s^2; `angular`, $\dot\Omega$, body components, (L, 3) rad/s^2.
        """

    def poses(self, t: Scalar, y: Unknowns) -> Poses:
        """Return the poses of all bodies and the revolutions of the joints."""
        values, reference = split_chart(y)
        x, a = self.layout.poses(values)
        return assemble_poses(
            self.prepared_system, x, self.matrices(a, reference), self.layout.angles(values)
        )

    def matrices(
        self, a: Float[Array, "k n"], reference: Float[Array, "k 4"] | None
    ) -> Float[Array, "k 3 3"]:
        """Return the rotation matrices of coordinates in the charts `reference`."""
        R = vmap_rows(self.rotation.to_matrix, a)
        if reference is None:
            return R
        return vmap_rows(lambda p, R: product(euler_map(p), R), reference, R)

    def coordinates_of(
        self, p: Float[Array, "k 4"], reference: Float[Array, "k 4"] | None
    ) -> Float[Array, "k n"]:
        """Return the coordinates of unit quaternions in the charts `reference`."""
        if reference is not None:
            p = jax.vmap(lambda ref, p: multiply(conjugate(ref), p))(reference, p)
        return jax.vmap(self.rotation.from_quaternion)(p)

    def quaternions(self, state: State) -> Float[Array, "k 4"]:
        """Return the rotations whose coordinates are unknowns."""
        return state.orientation

    @persistent_jit
    def pack(
        self, state: State, reference: Float[Array, "k 4"] | None = None, t: ArrayInput = 0.0
    ) -> Float[Array, " N"]:
        """Return the unknowns of a state with unit quaternions in charts `reference`, unchecked.

        Velocities are the nearest that the joints allow.
        """
        return self.prepare().pack_prepared(jnp.asarray(t, state.position.dtype), state, reference)

    def pack_prepared(
        self, t: Scalar, state: State, reference: Float[Array, "k 4"] | None
    ) -> Float[Array, " N"]:
        """Return `pack` of a prepared model."""
        prepared, p = self.prepared_system, state.orientation
        a = self.coordinates_of(p, reference)
        poses = poses_of_state(prepared, state, self.unwrapped_joints)
        joint_frames = joint_frames_at(prepared, poses)
        angles = joint_angles(prepared, joint_frames, self.unwrapped_joints)
        twists = Twists(state.velocity, state.angular_velocity)
        velocities = self.velocities_of(t, poses, joint_frames, a, twists)
        return self.layout.join_all(state.position, a, velocities, self.with_initial_states(angles))

    def with_initial_states(self, angles: Float[Array, " A"]) -> Float[Array, " A+s"]:
        """Append the initial states of actuators and controllers to the joint angles."""
        if not self.layout.num_states:
            return angles
        return jnp.concatenate([angles, initial_states(self.multibody, angles.dtype)])

    @compile_free_method
    def kinematics(self, t: Scalar, y: Unknowns) -> Kinematics:
        """Return poses and twists of all bodies, as forces see them."""
        return kinematics_for_forces(self.prepared_system, *self.motion(t, y))

    def angle_rates(self, joint_frames: JointFrames, twists: Twists) -> Float[Array, " A"]:
        """Return the rates of the angles that are unknowns."""
        return joint_angle_rates(self.prepared_system, joint_frames, twists, self.unwrapped_joints)

    def rest_rates(self, joint_frames: JointFrames, twists: Twists) -> Float[Array, " A+s"]:
        """Return the rates of the angles that are unknowns, and of the states.

        The values at one time of inputs and states are in the forces of the model.
        """
        rates = self.angle_rates(joint_frames, twists)
        if not self.layout.num_states:
            return rates
        return jnp.concatenate([rates, state_rates(self.multibody, rates.dtype)])

    @compile_method
    def drift(self, t: Scalar, y: Unknowns) -> tuple[Scalar, Scalar]:
        """Return the largest constraint violation: position level and velocity level (1/s)."""
        _, joint_frames, twists = self.motion(t, y)
        a = self.layout.rotations(split_chart(y)[0])
        position = constraint_values(self.prepared_system, t, joint_frames)
        velocity = constraint_rates(self.prepared_system, t, joint_frames, twists)
        if self.rotation.num_constraints > 0 and len(a):
            internal = jax.vmap(self.rotation.constraint)(a)
            a_dot = self.coordinate_rates(y, twists)
            rate = jax.vmap(lambda a, v: self.rotation.constraint_jacobian(a) @ v)(a, a_dot)
            position = jnp.concatenate([position, internal.ravel()])
            velocity = jnp.concatenate([velocity, rate.ravel()])
        return jnp.max(jnp.abs(position), initial=0.0), jnp.max(jnp.abs(velocity), initial=0.0)

    def gaps(self, t: Scalar, y: Unknowns) -> Float[Array, " J"]:
        """Return the violation of each joint, lengths over that of the mechanism, angles in rad.

        It is the chord of the angle where the child is the wrong way round in its joint.
        **Returns:** shape (J,), in the order of the system's joints, then of its other constraints;
        empty without any.
        """
        return self._gaps(t, self.without_multipliers(y))

    @compile_free_method
    def _gaps(self, t: Scalar, y: Unknowns) -> Float[Array, " J"]:
        return constraint_violations(
            self.prepared_system, t, joint_frames_at(self.prepared_system, self.poses(t, y))
        )

    def without_multipliers(self, y: Unknowns) -> Unknowns:
        """Return the unknowns without the multipliers that follow them."""
        return join_chart(split_chart(y)[0][: self.layout.size], y)

    @compile_free_method
    def _joint_coordinates(
        self, t: Scalar, y: Unknowns
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        prepared = self.prepared_system
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

    def close_joints(self, t: Scalar, y: Unknowns) -> Unknowns:
        """Return unknowns whose positions satisfy all constraints; velocities do not change."""
        if self.prepared_system.is_free:
            return self.project_rotations(y)
        step = _rematerialise(lambda y: self.newton_step(t, y))
        dtype = split_chart(y)[0].dtype
        eps = float(jnp.finfo(dtype).eps)
        if self.multibody.has_loops:
            limit, remaining = _ROUND_OFF * eps, lambda _, y: jnp.max(self._gaps(t, y), initial=0.0)
        else:
            # A Newton step leaves a violation of the order of the square of its change of the
            # coordinates. The change costs less to evaluate than the violation itself.
            limit, remaining = eps**0.5, self.relative_change

        def improve(_, carry):
            y, size = carry
            new = jax.lax.cond(size > limit, step, lambda y: y, y)
            return new, jax.lax.stop_gradient(remaining(y, new))

        start = y, jnp.asarray(jnp.inf, dtype)
        return jax.lax.fori_loop(0, _NEWTON_STEPS, improve, start)[0]

    def relative_change(self, y: Unknowns, new: Unknowns) -> Scalar:
        """Return the largest change of a rotation coordinate or, in units of the size of its
        mechanism, of a position."""
        (x, a), (new_x, new_a) = (self.layout.poses(split_chart(z)[0]) for z in (y, new))
        moved = jnp.abs(new_x - x) / self.prepared_system.lengths[:, None]
        return jnp.maximum(jnp.max(moved, initial=0.0), jnp.max(jnp.abs(new_a - a), initial=0.0))

    def project_rotations(self, y: Unknowns) -> Unknowns:
        """Return unknowns whose rotation coordinates satisfy their own constraints."""
        values, _ = split_chart(y)
        x, a = self.layout.poses(values)
        a, rest = vmap_rows(self.rotation.project, a), self.layout.angles_and_states(values)
        return join_chart(self.layout.join_all(x, a, self.layout.velocities(values), rest), y)

    def newton_step(self, t: Scalar, y: Unknowns) -> Unknowns:
        """Make one Newton step towards poses that satisfy all constraints."""
        y = self.project_rotations(y)
        values, reference = split_chart(y)
        x, a = self.layout.poses(values)
        prepared, angles, poses = self.prepared_system, self.layout.angles(values), self.poses(t, y)
        change = pose_correction(prepared, t, poses, joint_frames_at(prepared, poses))
        a = a + jax.vmap(self.rotation.rate)(a, change[:, 3:])
        a = jax.vmap(self.rotation.project)(a)
        x = x + change[:, :3]
        if angles.size:
            poses = assemble_poses(prepared, x, self.matrices(a, reference), angles)
            angles = joint_angles(prepared, joint_frames_at(prepared, poses), self.unwrapped_joints)
        velocities = self.layout.velocities(values)
        rest = jnp.concatenate([angles, self.layout.states(values)])
        return join_chart(self.layout.join_all(x, a, velocities, rest), y)

    @compile_method
    def joint_multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        """Return the multipliers of the joints and other constraints, group by group; see
        `reactions`."""
        poses, joint_frames, twists = self.motion(t, y)
        accelerations = self.accelerations(t, y)
        return multipliers(self.prepared_system, t, poses, joint_frames, twists, accelerations)

    @compile_method
    def reactions(self, t: Scalar, y: Unknowns) -> dict[str, Reaction | ConstraintReaction]:
        """Return the reaction force and moment of every joint on its child, by the joint's name.

        Space components, about the joint point of the child. A constraint that is no joint
        (`Constraint`, `VelocityConstraint`, `Coupling`) has a `ConstraintReaction`: forces and
        moments on each of its bodies. With redundant constraints they belong to the multipliers of
        least norm.
        """
        _, joint_frames, _ = self.motion(t, y)
        return reactions(self.prepared_system, t, joint_frames, self.joint_multipliers(t, y))
