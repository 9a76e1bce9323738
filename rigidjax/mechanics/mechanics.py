"""The bodies of a system, stacked, with joints or without: the mechanics that formulations use."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum, euler_equations, solve_inertia
from ..forces.base import AbstractForce, Bodies, JointKinematics, Joints, Kinematics
from ..joints import AbstractJoint
from ..joints.relative_pose import wrap_angle
from ..joints.replacing import replace_fields, without_motion
from ..native.ops import cross, divide_by_invariant, take, vmap_rows
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product, to_space
from ..rotations.so3 import skew
from ..state import State
from .attachment import JointGroup, Placement, Placements, Poses
from .force_groups import ForceGroup
from .lengths import characteristic_lengths
from .numbers import Numbers, grouped_forces, numbers_of
from .other_constraints import OtherConstraints
from .twists import Twists


class SystemMechanics(eqx.Module):
    r"""Poses, twists and their constraints, all bodies of a system stacked.

    The minimal velocities $\nu$ are those of the tree joints, body by body: a body that hangs on a
    joint has its joint rates, a free one $(\dot x, \Omega)$. `reference`, the bodies in the
    reference configuration; `lengths`, (L,) m: the size of the mechanism that a body belongs to
    (see `lengths.characteristic_lengths`).

    **Arguments:** `system`; `numbers`, those of its bodies, joints and forces, if it has none.
    """

    system: Any
    groups: list[JointGroup]
    masses: Float[Array, " L"]
    inertias: Float[Array, "L 3"] | Float[Array, "L 3 3"]
    reference: Bodies
    lengths: Float[Array, " L"]
    forces: list[ForceGroup]

    def __init__(self, system, numbers: Numbers | None = None):
        numbers = numbers_of(system) if numbers is None else numbers
        self.system = system
        self.masses, self.inertias = numbers.masses, numbers.inertias
        x, R = numbers.reference.position, jax.vmap(euler_map)(numbers.reference.orientation)
        self.reference = Bodies(self.masses, x, R, (False,) * len(x))
        poses = self.poses(x, R, jnp.zeros(0))
        at = poses.positions, poses.rotations, system.frames
        self.groups = [group.attached(*at) for group in numbers.joints]
        self.lengths = characteristic_lengths(self.groups, self.masses, self.inertias)
        self.forces = self._attached(numbers.forces)

    def grouped(self, forces: Sequence[AbstractForce]) -> list[ForceGroup]:
        """Forces on these bodies, those of a kind together."""
        return self._attached(grouped_forces(self.system, forces, self.groups))

    def _attached(self, groups: list[ForceGroup]) -> list[ForceGroup]:
        return [group.attached(self.reference, self.system.frames) for group in groups]

    # Counts.

    @property
    def num_bodies(self) -> int:
        return len(self.system.bodies)

    @property
    def is_free(self) -> bool:
        """Whether nothing is imposed on the motion of any body."""
        return not (self.system.joints or self.system.constraints)

    @property
    def num_rates(self) -> int:
        """Number of minimal velocities of the trees."""
        return sum(self.system.rates_of_bodies)

    @property
    def num_joint_constraints(self) -> int:
        """Number of constraints of joints, and of those that are no joint."""
        return self.system.num_constraints

    @property
    def num_velocity_constraints(self) -> int:
        """Number of those that are on velocities alone, the last ones."""
        return sum(one.num_constraints for one in self.system.velocity_constraints)

    @property
    def holonomic(self) -> "SystemMechanics":
        """The same bodies without the constraints on velocities alone: positions are free of
        them."""
        system = self.system
        if not system.velocity_constraints:
            return self
        return replace_fields(
            self, system=replace_fields(system, constraints=system.position_constraints)
        )

    @property
    def num_tree_constraints(self) -> int:
        """Number of constraints of the tree joints, the first ones."""
        return sum(
            len(group.indices) * group.joint.num_constraints
            for group in self.groups
            if not group.closes_loops
        )

    @property
    def tracked(self) -> tuple[int, ...]:
        """Joints whose whole turns matter: their angles are unknowns."""
        return self.system.tracked_joints

    # Poses.

    def poses(self, positions, rotations, angles, joints: Sequence[int] | None = None) -> Poses:
        """Poses with the ground, and the revolutions that bring the angles of `joints` next to
        `angles`; `joints` are those that are `tracked` if left out."""
        x = jnp.concatenate([positions, jnp.zeros((1, 3), positions.dtype)])
        R = jnp.concatenate([rotations, np.eye(3, dtype=rotations.dtype)[None]])
        turns = jnp.zeros(len(self.system.joints), positions.dtype)
        if angles.size == 0:
            return Poses(x, R, turns)
        return self._turned(Poses(x, R, turns), angles, self.tracked if joints is None else joints)

    def poses_of(self, state: State, joints: Sequence[int] | None = None) -> Poses:
        """Poses of a state with unit quaternions, with the revolutions of its joint angles.

        **Arguments:** `joints`, those whose revolutions are wanted; all that the state knows if
        left out.
        """
        rows = {j: self.system.joints[j].name for j in self.system.angle_joints}
        known = [
            (j, state.angle_names.index(name))
            for j, name in rows.items()
            if name in state.angle_names and (joints is None or j in joints)
        ]
        R = jax.vmap(euler_map)(state.orientation)
        angles = jnp.zeros(0)
        if known:
            angles = take(state.joint_angles, [row for _, row in known])
        return self.poses(state.position, R, angles, [j for j, _ in known])

    def with_angles_at(self, state: State, places: Placements) -> State:
        """The state with the unwrapped angles that the joints have in these placements."""
        joints = self.system.angle_joints
        return state.with_angles(self.system.angle_names, self.angles_at(places, joints))

    def _turned(self, poses, angles, joints):
        tracked = np.array(joints)
        found = self.angles(poses, joints)
        turns = jax.lax.stop_gradient(angles - found)
        turns = 2 * jnp.pi * jnp.round(turns / (2 * jnp.pi))
        return Poses(
            poses.positions,
            poses.rotations,
            poses.turns.at[tracked].set(turns, unique_indices=True),
        )

    def angles(self, poses: Poses, followed: Sequence[int]) -> Float[Array, " k"]:
        """Angles of these joints, rad."""
        return self.angles_at(self.place(poses), followed)

    def angles_at(self, places: Placements, followed: Sequence[int]) -> Float[Array, " k"]:
        """Angles of these joints, rad, where they are placed."""
        if not followed:
            return jnp.zeros(0, places.poses.positions.dtype)
        found, joints = self.coordinates(places), self.system.joints
        return jnp.stack([found[j][joints[j].num_translations] for j in followed])

    def angle_rates(
        self, places: Placements, twists: Twists, followed: Sequence[int]
    ) -> Float[Array, " k"]:
        """Rates of the angles of these joints, rad/s."""
        if not followed:
            return jnp.zeros(0, twists.linear.dtype)
        placed, joints = self.by_joint(places), self.system.joints
        relative = self.by_joint(self.joint_twists(places, twists))
        rates = {j: joints[j].rates(placed[j].relative, relative[j]) for j in followed}
        return jnp.stack([rates[j][joints[j].num_translations] for j in followed])

    def place(self, poses: Poses) -> Placements:
        """Placement of every group of joints."""
        return Placements([group.place(poses) for group in self.groups], poses)

    def coordinates(self, places: Placements, t=None) -> dict[int, Float[Array, " k"]]:
        """Coordinates of every joint, by its index; with a time, angles that are prescribed then
        have the whole turns of their motion."""

        def of(joint: AbstractJoint, relative):
            found = joint.coordinates(relative)
            if t is None or not (joint.is_driven and joint.has_angle):
                return found
            wanted = joint.prescribed_coordinate(t)
            return wanted + wrap_angle(found - wanted)

        return self.by_joint(
            [
                group.over(of, place.relative)
                for group, place in zip(self.groups, places, strict=True)
            ]
        )

    def joint_twists(self, places, twists: Twists) -> list[Float[Array, "n 6"]]:
        """Relative twists of every group of joints."""
        v, omega = _with_ground(twists.linear), _with_ground(twists.angular)
        return [g.twists(p, v, omega) for g, p in zip(self.groups, places, strict=True)]

    def by_joint(self, values) -> dict[int, Any]:
        """Values that are stacked group by group, by the index of the joint."""
        return {
            j: jax.tree.map(lambda leaf, k=k: leaf[k], value)
            for group, value in zip(self.groups, values, strict=True)
            for k, j in enumerate(group.indices)
        }

    # Constraints of joints.

    def constraint(self, t, places, loops_only=False) -> Float[Array, " m"]:
        """Constraints of all joints, or of those that close loops, group by group.

        Zero for constraints on velocities alone, which stand behind the others.
        """
        parts = [
            group.over(lambda joint, r: joint.constraint(r, t), place.relative).ravel()
            for group, place in self._chosen(places, loops_only)
        ]
        free = jnp.zeros(self.num_velocity_constraints, self.masses.dtype)
        return jnp.concatenate([*parts, *self.others.values(t, places), free])

    @property
    def others(self) -> OtherConstraints:
        """The constraints that are no joint."""
        return OtherConstraints(self)

    def constraint_rate(self, t, places, twists: Twists, loops_only=False) -> Float[Array, " m"]:
        """Rates of the constraints in the order of `constraint`."""
        relative = self.joint_twists(places, twists)
        of = {id(group): twist for group, twist in zip(self.groups, relative, strict=True)}
        parts = [
            group.over(
                lambda joint, r, s: joint.constraint_rate(r, s, t), place.relative, of[id(group)]
            ).ravel()
            for group, place in self._chosen(places, loops_only)
        ]
        if self.system.constraints:
            parts.append(self.others.rates(t, places, twists))
        return jnp.concatenate([jnp.zeros(0, self.masses.dtype), *parts])

    def constraint_jacobian(self, t, places, trees_only=False) -> Float[Array, "m L 6"]:
        r"""Gradients of the constraints on the twists of all bodies, in the order of
        `constraint`."""
        blocks = []
        for group, place in zip(self.groups, places, strict=True):
            if trees_only and group.closes_loops:
                continue
            on_parent, on_child = group.jacobians(place, t)
            n, m, _ = on_child.shape
            block = jnp.zeros((n, m, self.num_bodies + 1, 6), on_child.dtype)
            k = np.arange(n)
            block = block.at[k, :, np.array(group.parents)].set(on_parent, unique_indices=True)
            block = block.at[k, :, np.array(group.children)].set(on_child, unique_indices=True)
            blocks.append(block[:, :, :-1].reshape(n * m, self.num_bodies, 6))
        if self.system.constraints and not trees_only:
            blocks.append(self.others.jacobian(t, places))
        return jnp.concatenate([jnp.zeros((0, self.num_bodies, 6), self.masses.dtype), *blocks])

    def by_group(self, values: Float[Array, " m"]) -> list[Float[Array, "n m"]]:
        """Values in the order of `constraint`, a row for each joint of every group."""
        counts = [(len(g.indices), g.joint.num_constraints) for g in self.groups]
        ends = np.cumsum([n * m for n, m in counts])[:-1]
        parts = jnp.split(values, ends)
        return [part.reshape(shape) for part, shape in zip(parts, counts, strict=True)]

    def split(self, values: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, " l"]]:
        """Those of the tree joints and those of the loops."""
        count = self.num_tree_constraints
        return values[:count], values[count:]

    def _chosen(self, places, loops_only):
        for group, place in zip(self.groups, places, strict=True):
            if group.closes_loops or not loops_only:
                yield group, place

    @property
    def joint_lengths(self) -> list[Float[Array, " n"]]:
        """Characteristic lengths at the joints of every group, m."""
        rows = [
            [c if c < self.num_bodies else p for p, c in zip(g.parents, g.children, strict=True)]
            for g in self.groups
        ]
        return [take(self.lengths, row) for row in rows]

    @property
    def units(self) -> Float[Array, " m"]:
        """What the values of `constraint` are measured by: the mechanism's length where they are
        lengths, 1 where they are angles."""
        counts = [group.joint.num_constraints for group in self.groups]
        parts = [
            jnp.repeat(length, m) for length, m in zip(self.joint_lengths, counts, strict=True)
        ]
        largest = jnp.max(self.lengths)
        others = [jnp.full(one.num_constraints, largest) for one in self.system.constraints]
        lengths = jnp.concatenate([jnp.zeros(0, self.masses.dtype), *parts, *others])
        return jnp.where(self.are_lengths, lengths, 1.0)

    @property
    def are_lengths(self) -> np.ndarray:
        """Which values of `constraint` are lengths, m; the others are angles, (m,)."""
        joints = [joint for g in self.groups for joint in [g.joint] * len(g.indices)]
        items = [*joints, *self.system.constraints]
        return np.array([x for item in items for x in item.constraint_is_length], bool)

    def constraint_owners(self) -> list[int]:
        """Joint of each constraint in the order of `constraint`; behind the joints, the others."""
        owners = [
            j
            for group in self.groups
            for j in group.indices
            for _ in range(group.joint.num_constraints)
        ]
        others = enumerate(self.system.constraints, len(self.system.joints))
        return owners + [j for j, one in others for _ in range(one.num_constraints)]

    # Dynamics.

    def kinematics(self, poses: Poses, places, twists: Twists) -> Kinematics:
        """What forces see."""
        wanted = {name for group in self.forces for names in group.joints for name in names}
        wanted |= {joint.name for joint in self.system.joints if joint.armatures is not None}
        joints, names = [], []
        groups = zip(self.groups, places, strict=True) if wanted else ()
        for g, (group, place) in enumerate(groups):
            own = [self.system.joints[j].name for j in group.indices]
            members = [k for k, name in enumerate(own) if name in wanted]
            if members:
                twist = self.joint_twists(places, twists)[g]
                seen = take((place, twist), members)
                joints.append(eqx.filter_vmap(_seen_by_forces)(group.member(members), *seen))
                names.append(tuple(own[k] for k in members))
        return Kinematics(
            poses.positions[:-1], poses.rotations[:-1], twists.linear, twists.angular,
            Joints(joints, tuple(names)),
        )  # fmt: skip

    def applied(self, t, kinematics: Kinematics) -> Float[Array, "L 6"]:
        """Applied wrenches: forces in space, moments in body components."""
        return self.wrenches_of(self.forces, t, kinematics)

    def wrenches_of(
        self, groups: Sequence[ForceGroup], t, kinematics: Kinematics
    ) -> Float[Array, "L 6"]:
        """Those of some forces alone."""
        zero = jnp.zeros((self.num_bodies, 3), self.masses.dtype)
        parts = [zero if part is None else part for part in self._loads(groups, t, kinematics)]
        return jnp.concatenate(parts, axis=1)

    def _loads(self, groups, t, kinematics):
        """Forces, space components, and moments, body components; `None` if there are none."""
        forces, moments = None, None
        for group in groups:
            own_forces, own_moments = group.loads(t, kinematics)
            forces, moments = _plus(forces, own_forces), _plus(moments, own_moments)
        return forces, moments

    def virials(self, t, kinematics: Kinematics) -> Float[Array, "L 3 3"]:
        r"""Symmetric part of $\sum f \otimes u$ of each body, forces $f$ at points $u$ from the
        centre of mass in body components, N m. It moves nothing; multipliers of the internal
        constraints depend on it (Sherif 4.2)."""
        zero = jnp.zeros((self.num_bodies, 3, 3), self.masses.dtype)
        return sum((group.virials(t, kinematics) for group in self.forces), zero)

    def momenta(self, linear, angular) -> Float[Array, "L 6"]:
        """The mass matrix times twists or their derivatives."""
        turn = jax.vmap(angular_momentum)(self.inertias, angular)
        return jnp.concatenate([self.masses[:, None] * linear, turn], axis=1)

    def free_forces(self, t, kinematics: Kinematics) -> Float[Array, "L 6"]:
        r"""Applied less gyroscopic wrenches: $M \dot w = $ this plus the reactions."""
        gyroscopic = self.gyroscopic(kinematics.angular_velocities)
        return self.applied(t, kinematics) - jnp.concatenate(
            [jnp.zeros_like(gyroscopic), gyroscopic], axis=1
        )

    def gyroscopic(self, omega: Float[Array, "L 3"]) -> Float[Array, "L 3"]:
        r"""$\Omega \times I\,\Omega$ of every body."""
        return jax.vmap(lambda I, w: cross(w, angular_momentum(I, w)))(self.inertias, omega)

    def inverse_mass(self, wrenches: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
        """Accelerations of the bodies, were they free, under wrenches."""
        angular = jax.vmap(solve_inertia)(self.inertias, wrenches[:, 3:])
        return jnp.concatenate(
            [divide_by_invariant(wrenches[:, :3], self.masses[:, None]), angular], axis=1
        )

    def accelerations(self, t, kinematics: Kinematics) -> Twists:
        """Derivatives of the twists of the bodies, were they free."""
        linear, moments = self.free_loads(t, kinematics)
        omega = kinematics.angular_velocities
        return Twists(linear, vmap_rows(euler_equations, self.inertias, omega, moments))

    def free_loads(
        self, t, kinematics: Kinematics
    ) -> tuple[Float[Array, "L 3"], Float[Array, "L 3"] | None]:
        """Accelerations of the centres of mass of the bodies, were they free, and the applied
        moments, body components; `None` without any, so that no operation is spent on them."""
        forces, moments = self._loads(self.forces, t, kinematics)
        if forces is None:
            return jnp.zeros_like(kinematics.velocities), moments
        return divide_by_invariant(forces, self.masses[:, None]), moments

    def bias(self, function, t, poses: Poses, twists: Twists):
        """Time derivative of `function(t, poses)` along the motion at fixed velocities."""
        return jax.jvp(function, (t, poses), (jnp.ones_like(t), self.pose_rate(poses, twists)))

    def pose_rate(self, poses: Poses, twists: Twists) -> Poses:
        """Time derivative of the poses."""
        R = poses.rotations
        R_dot = jax.vmap(lambda R, w: product(R, skew(w)))(R, _with_ground(twists.angular))
        return Poses(_with_ground(twists.linear), R_dot, jnp.zeros_like(poses.turns))

    # Energies.

    def kinetic_energy(self, kinematics: Kinematics) -> Float[Array, ""]:
        v, omega = kinematics.velocities, kinematics.angular_velocities
        momenta = self.momenta(v, omega)
        energy = 0.5 * jnp.sum(momenta * jnp.concatenate([v, omega], axis=1))
        for group in self.groups:
            if group.joint.armatures is not None:
                names = [self.system.joints[j].name for j in group.indices]
                rates = kinematics.joints.stacked(names).rates
                energy = energy + 0.5 * jnp.sum(group.joint.armatures * rates**2)
        return energy

    def momentum(self, kinematics: Kinematics) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        momenta = self.momenta(kinematics.velocities, kinematics.angular_velocities)
        linear = momenta[:, :3]
        spin = jax.vmap(to_space)(kinematics.rotations, momenta[:, 3:])
        angular = spin + jax.vmap(cross)(kinematics.positions, linear)
        return jnp.sum(linear, axis=0), jnp.sum(angular, axis=0)

    def potential_energy(self, t, kinematics: Kinematics) -> Float[Array, ""]:
        groups = [group for group in self.forces if group.force.has_potential]
        zero = jnp.zeros((), self.masses.dtype)
        return sum((group.potential_energy(t, kinematics) for group in groups), zero)


def _with_ground(values):
    return jnp.concatenate([values, jnp.zeros((1, *values.shape[1:]), values.dtype)])


def _plus(first, second):
    """The sum of two arrays either of which may be absent."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


def _seen_by_forces(joint: AbstractJoint, place: Placement, twist) -> JointKinematics:
    """Return coordinates and rates of a joint, prescribed ones included, and the wrenches that do
    work on them."""
    dual = without_motion(joint).dual(place.relative)
    force = jax.vmap(lambda column: to_space(place.frame, column))(dual[:3].T)
    moment = jax.vmap(lambda column: to_space(place.frame, column))(dual[3:].T)
    return JointKinematics(
        joint.coordinates(place.relative), dual.T @ twist, force, moment, place.parent_arm,
        place.child_arm, place.relative.turns,
    )  # fmt: skip
