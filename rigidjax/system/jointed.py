"""A system of bodies with joints, as formulations see it."""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum, solve_inertia
from ..bodies.inertia import inertia_tensor
from ..forces.base import Kinematics
from ..rotations.euler_map import euler_map
from ..rotations.matrix import cross, product, to_body, to_space
from ..rotations.so3 import skew
from .attachment import JointGroup, Placement, Poses, group_joints
from .rows import take
from .topology import GROUND

# Minimal velocities up to which a dense mass matrix is faster (4 ball joints or 12 hinges).
DENSE_LIMIT = 12


class Twists(eqx.Module):
    r"""Velocities of all centres of mass, (L, 3) m/s, space components, and angular velocities,
    (L, 3) rad/s, body components."""

    linear: Float[Array, "L 3"]
    angular: Float[Array, "L 3"]


class JointedMechanics(eqx.Module):
    r"""Poses, twists and their constraints for bodies with joints, all bodies stacked.

    The minimal velocities $\nu$ are those of the tree joints, body by body: a body that hangs on a
    joint has its joint rates, a free one $(\dot x, \Omega)$.
    """

    system: Any
    groups: list[JointGroup]
    masses: Float[Array, " L"]
    inertias: Float[Array, "L 3"] | Float[Array, "L 3 3"]
    translates: ClassVar[bool] = True

    def __init__(self, system):
        bodies = system.bodies
        self.system = system
        self.masses = jnp.stack([body.mass for body in bodies])
        inertias = [body.inertia for body in bodies]
        if len({inertia.ndim for inertia in inertias}) > 1:
            inertias = [inertia_tensor(inertia) for inertia in inertias]
        self.inertias = jnp.stack(inertias)
        reference = system.reference_state()
        rows = {body.name: i for i, body in enumerate(bodies)} | {"ground": len(bodies)}
        rotations = jax.vmap(euler_map)(reference.orientation)
        poses = self.poses(reference.position, rotations, jnp.zeros(0))
        self.groups = group_joints(system.joints, rows, poses.positions, poses.rotations)

    # Counts.

    @property
    def num_bodies(self) -> int:
        return len(self.system.bodies)

    @property
    def num_rates(self) -> int:
        """Number of minimal velocities of the trees."""
        return sum(self.system.rates_of_bodies)

    @property
    def eliminates(self) -> bool:
        """Whether accelerations are found by elimination along the trees, at linear cost.

        A dense mass matrix is faster for few rates, and needs mass in fewer directions.
        """
        system = self.system
        return self.num_rates > DENSE_LIMIT and not system.topology.loops and system.has_all_mass

    @property
    def num_joint_constraints(self) -> int:
        return sum(joint.num_constraints for joint in self.system.joints)

    @property
    def tracked(self) -> tuple[int, ...]:
        """Joints whose whole turns matter: their angles are unknowns."""
        return self.system.tracked_joints

    # Poses.

    def poses(self, positions, rotations, angles) -> Poses:
        """Poses with the ground, and the turns that bring the joints' angles next to `angles`."""
        x = jnp.concatenate([positions, jnp.zeros((1, 3), positions.dtype)])
        R = jnp.concatenate([rotations, jnp.eye(3, dtype=rotations.dtype)[None]])
        turns = jnp.zeros(len(self.system.joints), positions.dtype)
        return Poses(x, R, turns) if angles.size == 0 else self._turned(Poses(x, R, turns), angles)

    def _turned(self, poses, angles):
        tracked = np.array(self.tracked)
        found = self.angles(poses)
        turns = jax.lax.stop_gradient(angles - found)
        turns = 2 * jnp.pi * jnp.round(turns / (2 * jnp.pi))
        return Poses(poses.positions, poses.rotations, poses.turns.at[tracked].set(turns))

    def angles(self, poses: Poses) -> Float[Array, " k"]:
        """Angles of the tracked joints, rad."""
        by_joint = self.coordinates(self.place(poses))
        joints = self.system.joints
        return jnp.stack([by_joint[j][joints[j].num_translations] for j in self.tracked])

    def place(self, poses: Poses) -> list[Placement]:
        """Placement of every group of joints."""
        return [group.place(poses) for group in self.groups]

    def coordinates(self, places: list[Placement]) -> dict[int, Float[Array, " k"]]:
        """Coordinates of every joint, by its index."""
        return self.by_joint(
            [
                group.over(lambda joint, r: joint.coordinates(r), place.relative)
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

    # The null space of the trees.

    def screws(self, t, poses: Poses, places) -> tuple[Float[Array, "f 6"], Float[Array, "L 6"]]:
        r"""Motions that the tree joints allow and those that they prescribe, space components.

        One row for each minimal velocity, $(v, \omega)$ with $v$ the velocity at the root body of
        the tree; and one row for each body.
        """
        topology, x = self.system.topology, poses.positions
        L, f = self.num_bodies, self.num_rates
        start = np.concatenate([[0], np.cumsum(self.system.rates_of_bodies)])
        rows, where, prescribed, of = [], [], [], []
        hung = {j: i for i, j in enumerate(topology.joints) if j is not None}
        for group, place in zip(self.groups, places, strict=True):
            members = [k for k, j in enumerate(group.indices) if j in hung]
            if not members:
                continue
            bodies = np.array([hung[group.indices[k]] for k in members])
            sign = np.where(np.array(topology.reversed)[bodies], -1.0, 1.0)
            root = take(x, topology.roots[bodies])
            some = members if len(members) < len(group.indices) else None
            S = group.over(lambda joint, r: joint.null_space(r).T, place.relative)
            s = group.over(lambda joint, r: joint.prescribed_twist(r, t), place.relative)
            columns = jnp.concatenate([S, s[:, None]], axis=1)
            point, frame = place.point, place.frame
            if some is not None:
                pick = np.array(some)
                columns, point, frame = columns[pick], point[pick], frame[pick]

            def one(columns, point, frame, root, sign):
                def motion(column):
                    v, w = to_space(frame, column[:3]), to_space(frame, column[3:])
                    return sign * jnp.concatenate([v + cross(point - root, w), w])

                return jax.vmap(motion)(columns)

            motions = jax.vmap(one)(columns, point, frame, root, jnp.asarray(sign, x.dtype))
            count = S.shape[1]
            rows.append(motions[:, :count].reshape(-1, 6))
            where.append((start[bodies][:, None] + np.arange(count)).ravel())
            if any(getattr(self.system.joints[group.indices[k]], "motion", None) for k in members):
                prescribed.append(motions[:, count])
                of.append(bodies)
        free = np.array([i for i, j in enumerate(topology.joints) if j is None], int)
        if len(free):
            R = poses.rotations[free]
            shift = jnp.broadcast_to(jnp.eye(3, 6, dtype=x.dtype), (len(free), 3, 6))
            turn = jnp.concatenate([jnp.zeros_like(R), jnp.swapaxes(R, 1, 2)], axis=2)
            rows.append(jnp.concatenate([shift, turn], axis=1).reshape(-1, 6))
            where.append((start[free][:, None] + np.arange(6)).ravel())
        columns = jnp.concatenate(rows) if rows else jnp.zeros((0, 6), x.dtype)
        order = np.argsort(np.concatenate(where)) if where else np.arange(0)
        columns = columns if np.array_equal(order, np.arange(f)) else columns[order]
        rates = jnp.zeros((L, 6), x.dtype)
        for motions, bodies in zip(prescribed, of, strict=True):
            rates = rates.at[bodies].set(motions)
        return columns, rates

    @functools.cached_property
    def owners(self) -> np.ndarray:
        """Body of each minimal velocity, shape (f,)."""
        return np.repeat(np.arange(self.num_bodies), self.system.rates_of_bodies)

    def null_space(self, poses: Poses, columns) -> Float[Array, "L 6 f"]:
        r"""The external null-space matrix $T$ with $(\dot x, \Omega) = T\,\nu - r$ of each body.

        **Source:** Lang (11), and Example C for the multiplicative form that it generalises.
        """
        mask = jnp.asarray(self.system.topology.ancestors[:, self.owners], columns.dtype)
        x, R = poses.positions[:-1], poses.rotations[:-1]
        root = take(x, self.system.topology.roots)

        def one(mask, x, R, root):
            def column(s, on):
                v = s[:3] + cross(s[3:], x - root)
                return on * jnp.concatenate([v, to_body(R, s[3:])])

            return jax.vmap(column, out_axes=1)(columns, mask)

        return jax.vmap(one)(mask, x, R, root)

    def tree_twists(self, t, poses: Poses, places, nu) -> Twists:
        r"""Twists of all bodies from the minimal velocities of the trees."""
        topology = self.system.topology
        columns, prescribed = self.screws(t, poses, places)
        own = self._sum_by_body(columns * nu[:, None]) + prescribed
        own = self._sum_along_paths(own)
        x, R = poses.positions[:-1], poses.rotations[:-1]
        root = take(x, topology.roots)
        linear = own[:, :3] + jax.vmap(cross)(own[:, 3:], x - root)
        return Twists(linear, jax.vmap(to_body)(R, own[:, 3:]))

    def _sum_by_body(self, rows: Float[Array, "f k"]) -> Float[Array, "L k"]:
        """Sums of the rows of each body's minimal velocities."""
        counts = self.system.rates_of_bodies
        if len(set(counts)) == 1 and counts[0] > 0:
            return jnp.sum(rows.reshape(len(counts), counts[0], -1), axis=1)
        start = np.concatenate([[0], np.cumsum(counts)])
        width = max(counts)
        index = [
            [start[i] + k if k < n else start[-1] for k in range(width)]
            for i, n in enumerate(counts)
        ]
        rows = jnp.concatenate([rows, jnp.zeros((1, rows.shape[1]), rows.dtype)])
        return jnp.sum(rows[np.array(index, int).reshape(len(counts), width)], axis=1)

    def _sum_along_paths(self, values: Float[Array, "L k"]) -> Float[Array, "L k"]:
        """Sum over each body and those that it hangs on, by doubling: log2 of the depth steps."""
        L = self.num_bodies
        parents = np.array([L if p == GROUND else p for p in self.system.topology.parents] + [L])
        values = jnp.concatenate([values, jnp.zeros((1, values.shape[1]), values.dtype)])
        while np.any(parents != L):
            values = values + take(values, parents)
            parents = parents[parents]
        return values[:-1]

    def tree_rates(self, t, places, twists: Twists, bias=None) -> Float[Array, " f"]:
        r"""Minimal velocities of the trees nearest to the twists, joint by joint.

        With `bias` (see `joint_bias`): derivatives of minimal velocities, from those of twists.
        """
        topology = self.system.topology
        relative = self.joint_twists(places, twists)
        rows, where = [], []
        start = np.concatenate([[0], np.cumsum(self.system.rates_of_bodies)])
        hung = {j: i for i, j in enumerate(topology.joints) if j is not None}
        for g, (group, place, twist) in enumerate(zip(self.groups, places, relative, strict=True)):
            members = [k for k, j in enumerate(group.indices) if j in hung]
            count = group.joint.num_rates
            if not members or count == 0:
                continue

            if bias is None:
                twist = twist - group.over(
                    lambda joint, r: joint.prescribed_twist(r, t), place.relative
                )
            else:
                twist = twist + bias[g]
            nu = group.over(lambda joint, r, s: joint.rates(r, s), place.relative, twist)
            nu = nu if len(members) == len(group.indices) else nu[np.array(members)]
            bodies = np.array([hung[group.indices[k]] for k in members])
            rows.append(nu.ravel())
            where.append((start[bodies][:, None] + np.arange(count)).ravel())
        free = np.array([i for i, j in enumerate(topology.joints) if j is None], int)
        if len(free):
            own = jnp.concatenate([twists.linear[free], twists.angular[free]], axis=1)
            rows.append(own.ravel())
            where.append((start[free][:, None] + np.arange(6)).ravel())
        if not rows:
            return jnp.zeros(0, twists.linear.dtype)
        order = np.argsort(np.concatenate(where))
        flat = jnp.concatenate(rows)
        return flat if np.array_equal(order, np.arange(len(order))) else flat[order]

    def joint_bias(self, t, poses: Poses, nu, twists: Twists) -> list[Float[Array, "n 6"]]:
        r"""What turns accelerations of bodies into those of joints, $S\dot\nu$ = theirs + bias.

        The relative twist is $P w = S\nu + s_t$, so that it is
        $\dot P w - \dot S\nu - \dot s_t$, for each group of joints.
        """
        start = np.concatenate([[0], np.cumsum(self.system.rates_of_bodies)])
        hung = {j: i for i, j in enumerate(self.system.topology.joints) if j is not None}
        own = []
        for group in self.groups:
            at = [start[hung[j]] for j in group.indices]
            rows = np.add.outer(np.array(at, int), np.arange(group.joint.num_rates)).ravel()
            own.append(take(nu, rows).reshape(len(at), -1))

        def free(joint, r, rates, t):
            return joint.null_space(r) @ rates + joint.prescribed_twist(r, t)

        def gap(t, poses):
            places = self.place(poses)
            return [
                twist - group.over(lambda j, r, v: free(j, r, v, t), place.relative, v)
                for group, place, twist, v in zip(
                    self.groups, places, self.joint_twists(places, twists), own, strict=True
                )
            ]

        return self.bias(gap, t, poses, twists)[1]

    # Constraints of joints.

    def constraint(self, t, places, only=None) -> Float[Array, " m"]:
        """Constraints of the joints `only` (all if `None`), group by group."""
        parts = [
            group.over(lambda joint, r: joint.constraint(r, t), place.relative)[pick].ravel()
            for group, place, pick in self._picked(places, only)
        ]
        return jnp.concatenate([jnp.zeros(0, self.masses.dtype), *parts])

    def constraint_rate(self, t, places, twists: Twists, only=None) -> Float[Array, " m"]:
        """Rates of the constraints in the order of `constraint`."""
        relative = self.joint_twists(places, twists)
        of = {id(group): twist for group, twist in zip(self.groups, relative, strict=True)}
        parts = [
            group.over(
                lambda joint, r, s: joint.constraint_rate(r, s, t), place.relative, of[id(group)]
            )[pick].ravel()
            for group, place, pick in self._picked(places, only)
        ]
        return jnp.concatenate([jnp.zeros(0, self.masses.dtype), *parts])

    def constraint_jacobian(self, t, places, only=None) -> Float[Array, "m L 6"]:
        r"""Gradients of the constraints on the twists of all bodies, in the order of
        `constraint`."""
        blocks = []
        for group, place, pick in self._picked(places, only):
            on_parent, on_child = group.jacobians(place, t)
            on_parent, on_child = on_parent[pick], on_child[pick]
            n, m, _ = on_child.shape
            block = jnp.zeros((n, m, self.num_bodies + 1, 6), on_child.dtype)
            k = np.arange(n)
            block = block.at[k, :, np.array(group.parents)[pick]].set(on_parent)
            block = block.at[k, :, np.array(group.children)[pick]].set(on_child)
            blocks.append(block[:, :, :-1].reshape(n * m, self.num_bodies, 6))
        return jnp.concatenate([jnp.zeros((0, self.num_bodies, 6), self.masses.dtype), *blocks])

    def _picked(self, places, only):
        for group, place in zip(self.groups, places, strict=True):
            pick = [k for k, j in enumerate(group.indices) if only is None or j in only]
            if pick:
                yield group, place, np.array(pick)

    def constraint_owners(self, only=None) -> list[int]:
        """Joint of each constraint in the order of `constraint`."""
        return [
            j
            for group in self.groups
            for j in group.indices
            if only is None or j in only
            for _ in range(self.system.joints[j].num_constraints)
        ]

    # Dynamics.

    def kinematics(self, poses: Poses, places, twists: Twists) -> Kinematics:
        """What forces see."""
        wanted = self.system.force_joints
        joints = {}
        if wanted:
            coordinates = self.coordinates(places)
            relative = self.by_joint(self.joint_twists(places, twists))
            placed = self.by_joint(places)
            for j in wanted:
                joints[self.system.joints[j].name] = self.joint_kinematics(
                    j, placed[j], coordinates[j], relative[j]
                )
        return Kinematics(
            poses.positions[:-1], poses.rotations[:-1], twists.linear, twists.angular, joints
        )

    def joint_kinematics(self, j, place, coordinates, twist):
        """Coordinates and rates of one joint, and the wrenches that do work on them."""
        from ..forces.base import JointKinematics

        joint = self.system.joints[j]
        dual = joint.dual(place.relative)
        force = jax.vmap(lambda column: to_space(place.frame, column))(dual[:3].T)
        moment = jax.vmap(lambda column: to_space(place.frame, column))(dual[3:].T)
        index = {body.name: i for i, body in enumerate(self.system.bodies)} | {"ground": GROUND}
        return JointKinematics(
            coordinates, dual.T @ twist, force, moment, place.child_arm, place.parent_arm,
            index[joint.parent], index[joint.child],
        )  # fmt: skip

    def applied(self, t, kinematics: Kinematics) -> Float[Array, "L 6"]:
        """Applied wrenches: forces in space, moments in body components."""
        zero = jnp.zeros(3, self.masses.dtype)
        wrenches = self.system.wrenches(t, kinematics)
        return jnp.stack(
            [
                jnp.concatenate([zero if f is None else f, zero if m is None else m])
                for f, m in wrenches
            ]
        )

    def momenta(self, linear, angular) -> Float[Array, "L 6"]:
        """The mass matrix times twists or their derivatives."""
        turn = jax.vmap(angular_momentum)(self.inertias, angular)
        return jnp.concatenate([self.masses[:, None] * linear, turn], axis=1)

    def free_forces(self, t, kinematics: Kinematics) -> Float[Array, "L 6"]:
        r"""Applied less gyroscopic wrenches: $M \dot w = $ this plus the reactions."""
        gyroscopic = self.gyroscopic(jnp.asarray(kinematics.angular_velocities))
        return self.applied(t, kinematics) - jnp.concatenate(
            [jnp.zeros_like(gyroscopic), gyroscopic], axis=1
        )

    def gyroscopic(self, omega: Float[Array, "L 3"]) -> Float[Array, "L 3"]:
        r"""$\Omega \times I\,\Omega$ of every body."""
        return jax.vmap(lambda I, w: cross(w, angular_momentum(I, w)))(self.inertias, omega)

    def inverse_mass(self, wrenches: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
        """Accelerations of the bodies, were they free, under wrenches."""
        angular = jax.vmap(solve_inertia)(self.inertias, wrenches[:, 3:])
        return jnp.concatenate([wrenches[:, :3] / self.masses[:, None], angular], axis=1)

    def bias(self, function, t, poses: Poses, twists: Twists):
        """Time derivative of `function(t, poses)` along the motion at fixed velocities."""
        x_dot, R = _with_ground(twists.linear), poses.rotations
        R_dot = jax.vmap(lambda R, w: product(R, skew(w)))(R, _with_ground(twists.angular))
        rate = Poses(x_dot, R_dot, jnp.zeros_like(poses.turns))
        return jax.jvp(function, (t, poses), (jnp.ones_like(t), rate))

    # Energies.

    def kinetic_energy(self, kinematics: Kinematics) -> Float[Array, ""]:
        v, omega = jnp.asarray(kinematics.velocities), jnp.asarray(kinematics.angular_velocities)
        momenta = self.momenta(v, omega)
        return 0.5 * jnp.sum(momenta * jnp.concatenate([v, omega], axis=1))

    def momentum(self, kinematics: Kinematics) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        momenta = self.momenta(kinematics.velocities, kinematics.angular_velocities)
        linear = momenta[:, :3]
        spin = jax.vmap(to_space)(jnp.asarray(kinematics.rotations), momenta[:, 3:])
        angular = spin + jax.vmap(cross)(jnp.asarray(kinematics.positions), linear)
        return jnp.sum(linear, axis=0), jnp.sum(angular, axis=0)

    def potential_energy(self, t, kinematics: Kinematics) -> Float[Array, ""]:
        return self.system.potential_energy(t, kinematics)


def _with_ground(values):
    return jnp.concatenate([values, jnp.zeros((1, *values.shape[1:]), values.dtype)])
