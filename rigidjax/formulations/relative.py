"""Joint coordinates, a minimal set of unknowns for trees of bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..bodies.fixed_point import FixedPointBody
from ..mechanics import System, check_system
from ..mechanics.dynamics.loops import factor_loops
from ..mechanics.dynamics.projections import regular_inertias
from ..mechanics.kinematics.constraints import constraint_values
from ..mechanics.kinematics.forward import plain_counts, tree_poses, turning_bodies
from ..mechanics.kinematics.poses import (
    Motion,
    Twists,
    joint_angles,
    joint_frames_at,
    poses_of_state,
    with_joint_angles,
)
from ..mechanics.kinematics.trees import free_bodies, in_order, tree_joints
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import PreparedSystem, StackedSystem
from ..rotations.base import AbstractRotation, Rates
from ..rotations.conversion import spurrier_klumpp
from ..small_arrays import take
from ..state import State
from .binding import compile_free_method
from .charts import Unknowns, join_chart, split_chart
from .constrained import check_rotation
from .layout import TreeLayout
from .null_space import AbstractNullSpace, NullSpace


class Relative(AbstractNullSpace):
    r"""The equations of motion in joint coordinates, $y = (q, \nu)$.

    Each body has the coordinates of the joint that attaches it to its tree: lengths and angles, of
    any number of revolutions, and for a ball joint or a body that is free in space the coordinates
    $a$ of the chosen parametrization. Velocities are the joint rates, those of `NullSpace`, so that
    constraints are left only where loops close: they hold on the rates by construction and on the
    coordinates by projection. Seven hinges have 14 unknowns.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (the same as `NullSpace` then).
    - `rotation`: the parametrization of ball joints and free bodies.
    - `recharting`: let a minimal parametrization move its reference on before it becomes
      singular. If `False`, `simulate` stops at the singularity with a named result.

    **Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Chapters 4 and 8.
    """

    system: System | FixedPointBody
    arrays: PreparedSystem | StackedSystem | None
    rotation: AbstractRotation
    recharting: bool = eqx.field(static=True)

    def __init__(
        self,
        system: System | FixedPointBody,
        rotation: AbstractRotation | None = None,
        recharting: bool = True,
    ):
        check_system(system)
        self.system = system
        self.arrays = None
        self.rotation = check_rotation(rotation)
        self.recharting = recharting and self.rotation.num_constraints == 0

    @property
    def rates(self) -> Rates:
        """Angular velocities are in body components."""
        return "body"

    @property
    def coordinate_labels(self) -> tuple[str, ...]:
        """Names of the position-level unknowns, in their order.

        The name of a joint; `"joint[0]"`, ... if it has several coordinates; `"body.x1"` ... and
        `"body.a1"` ... of a free body.
        """
        n = self.rotation.num_coordinates
        turn = [f"a{k + 1}" for k in range(n)]
        labels: list[str] = []
        layout, system = self.layout, self.multibody
        for body, j in enumerate(system.topology.joints):
            if j is None and not system.translates:
                labels += turn
                continue
            if j is None:
                name = system.bodies[body].name
                labels += [f"{name}.{part}" for part in ("x1", "x2", "x3", *turn)]
                continue
            count = layout.plain[body] + (n if body in layout.turning else 0)
            name = system.joints[j].name
            labels += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
        return tuple(labels)

    @property
    def layout(self) -> TreeLayout:
        system = self.multibody
        return TreeLayout(
            plain_counts(system), turning_bodies(system), self.rotation.num_coordinates,
            system.rates_of_bodies, len(self.unwrapped_joints), system.translates,
            system.num_states,
        )  # fmt: skip

    @property
    def unwrapped_joints(self) -> tuple[int, ...]:
        """Joints of loops whose revolutions matter; coordinates of tree joints contain theirs."""
        loops = self.multibody.topology.loops
        return tuple(j for j in self.multibody.tracked_joints if j in loops)

    def poses(self, t: Scalar, y: Unknowns) -> Poses:
        values, reference = split_chart(y)
        plain, a = self.layout.split(values)
        t = jnp.asarray(t, values.dtype)
        poses = tree_poses(self.prepared_system, t, plain, self.matrices(a, reference))
        followed = self.unwrapped_joints
        if not followed:
            return poses
        missing = self.layout.angles(values) - self._angles(poses)
        turns = 2 * jnp.pi * jnp.round(jax.lax.stop_gradient(missing) / (2 * jnp.pi))
        turns = poses.turns.at[np.array(followed)].add(turns)
        return Poses(poses.positions, poses.rotations, turns)

    def _angles(self, poses: Poses) -> Float[Array, " A"]:
        """Return the unwrapped angles of the joints of loops."""
        return joint_angles(
            self.prepared_system,
            joint_frames_at(self.prepared_system, poses),
            self.unwrapped_joints,
        )

    def quaternions(self, state: State) -> Float[Array, "k 4"]:
        return self._quaternions(
            state,
            joint_frames_at(self.prepared_system, poses_of_state(self.prepared_system, state)),
        )

    def _quaternions(self, state: State, joint_frames: JointFrames) -> Float[Array, "k 4"]:
        parts, where = [], []
        for _, group, frames, bodies, _ in tree_joints(self.prepared_system, joint_frames):
            if group.joint.turns_freely:
                parts.append(jax.vmap(spurrier_klumpp)(frames.relative.rotation))
                where.append(bodies)
        free = free_bodies(self.prepared_system)
        parts.append(take(state.orientation, free))
        return in_order(parts, [*where, free], state.orientation)

    def _plain(self, state: State, joint_frames: JointFrames) -> Float[Array, " q"]:
        """Return the lengths and angles of the joints of the trees, body after body."""
        first = np.concatenate([[0], np.cumsum(self.layout.plain)]).astype(int)
        parts, where = [jnp.zeros(0, state.position.dtype)], [np.zeros(0, int)]
        for _, group, frames, bodies, _ in tree_joints(self.prepared_system, joint_frames):
            count = self.layout.plain[bodies[0]]
            found = group.map(lambda joint, r: joint.coordinates(r), frames.relative)
            parts.append(found[:, :count].ravel())
            where.append(np.add.outer(first[bodies], np.arange(count)).ravel())
        free = free_bodies(self.prepared_system)
        if self.layout.translates:
            parts.append(take(state.position, free).ravel())
            where.append(np.add.outer(first[free], np.arange(3)).ravel())
        return in_order(parts, where, parts[0])

    def pack_prepared(
        self, t: Scalar, state: State, reference: Float[Array, "k 4"] | None
    ) -> Float[Array, " N"]:
        poses = poses_of_state(self.prepared_system, state)
        joint_frames = joint_frames_at(self.prepared_system, poses)
        a = self.coordinates_of(self._quaternions(state, joint_frames), reference)
        twists = Twists(state.velocity, state.angular_velocity)
        nu = self.velocities_of(t, poses, joint_frames, a, twists)
        angles = joint_angles(self.prepared_system, joint_frames, self.unwrapped_joints)
        rest = self.with_initial_states(angles)
        return self.layout.join(self._plain(state, joint_frames), a, nu, rest)

    @compile_free_method
    def decode(self, t: Scalar, y: Unknowns) -> State:
        poses, joint_frames, twists = self.motion(t, y)
        p = jax.vmap(spurrier_klumpp)(poses.rotations[:-1])
        state = State(poses.positions[:-1], p, twists.linear, twists.angular)
        return with_joint_angles(self.prepared_system, state, joint_frames)

    def _rotation_rates(self, y: Unknowns, nu: Float[Array, " f"]) -> Float[Array, "k n"]:
        """Return the rates of the rotation coordinates."""
        _, omega = self.layout.split_rates(nu)
        return jax.vmap(self.rotation.rate)(self.layout.rotations(split_chart(y)[0]), omega)

    def coordinate_rates(self, y: Unknowns, twists: Twists) -> Float[Array, "k n"]:
        return self._rotation_rates(y, self.layout.velocities(split_chart(y)[0]))

    def joined_rates(self, y: Unknowns, joint_frames: JointFrames, of: Motion):
        plain, _ = self.layout.split_rates(of.rates)
        rest = self.rest_rates(joint_frames, of.twists)
        return self.layout.join(plain, self._rotation_rates(y, of.rates), of.derivatives, rest)

    def project_rotations(self, y: Unknowns) -> Unknowns:
        values, _ = split_chart(y)
        layout = self.layout
        plain, a = layout.split(values)
        a, nu = jax.vmap(self.rotation.project)(a), layout.velocities(values)
        return join_chart(layout.join(plain, a, nu, layout.angles_and_states(values)), y)

    def relative_change(self, y: Unknowns, new: Unknowns) -> Scalar:
        """Return zero: the rotations of a tree are projected exactly by one step."""
        return jnp.zeros((), split_chart(y)[0].dtype)

    def newton_step(self, t: Scalar, y: Unknowns) -> Unknowns:
        y = self.project_rotations(y)
        layout, prepared = self.layout, self.prepared_system.holonomic
        if not prepared.system.has_loops:
            return y
        values, _ = split_chart(y)
        plain, a = layout.split(values)
        nu, rest = layout.velocities(values), layout.angles_and_states(values)
        poses = self.poses(t, y)
        joint_frames = joint_frames_at(prepared, poses)
        residual = constraint_values(prepared, t, joint_frames, loops_only=True)
        inertias = regular_inertias(prepared)
        change = factor_loops(prepared, t, poses, joint_frames, inertias).correction(residual)
        moved, _ = layout.split_rates(change)
        plain, a = plain + moved, a + self._rotation_rates(y, change)
        y = self.project_rotations(join_chart(layout.join(plain, a, nu, rest), y))
        if not layout.num_angles:
            return y
        rest = jnp.concatenate([self._angles(self.poses(t, y)), layout.states(values)])
        return join_chart(layout.join(*layout.split(split_chart(y)[0]), nu, rest), y)

    def multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        """Return the multipliers of the joints, group by group, N and N m, in postprocessing.

        **Returns:** shape (m,), in the order of `Absolute.multipliers`; those of the internal
        constraints of a `FixedPointBody`.
        """
        if not self.multibody.translates:
            return NullSpace(self.system, self.rotation).multipliers(t, y)
        return self.joint_multipliers(t, y)
