r"""Bodies that welds alone hold together, which move as one body free in space.

A scheme of free bodies moves the centre of mass of the whole with its mean velocity, and turns all
of it by the same map as a body on its own: what is welded to a body changes its motion by the
mass that it adds, by nothing if it has none. The reactions of such welds count for nothing in the
step of the whole, and are zero among its unknowns.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ...annotations import Scalar
from ...bodies.inertia import inertia_tensor
from ...joints import Weld
from ...joints.replacing import replace_fields
from ...mechanics.attachment import Poses
from ...mechanics.mechanics import SystemMechanics
from ...native.ops import cross, vmap_rows
from ...rotations.matrix import product, relative, to_body, to_space
from ...rotations.so3 import dot
from .phase import carried


def assembly_leads(mechanics: SystemMechanics) -> tuple[int, ...] | None:
    """For each body of a cluster the first one of its cluster, -1 for all others; `None` without
    assemblies."""
    count = mechanics.num_bodies
    lead, is_free = np.arange(count + 1), np.ones(count + 1, bool)
    is_free[count] = False  # the ground
    for group in mechanics.groups:
        if group.joint.num_constraints == 0:
            continue  # `Free`
        is_weld = isinstance(group.joint, Weld)
        for pair in zip(group.parents, group.children, strict=True):
            a, b = (lead[row] for row in pair)
            is_free[[a, b]] = is_weld and is_free[a] and is_free[b]
            if is_weld:
                first, other = min(a, b), max(a, b)
                is_free[first] &= is_free[other]
                lead[lead == other] = first
    lead, is_free = lead[:count], is_free[:count]
    sizes = np.bincount(lead, minlength=count)
    found = np.where(is_free[lead] & (sizes[lead] > 1), lead, -1)
    return tuple(found.tolist()) if np.any(found >= 0) else None


class WeldedAssemblies(eqx.Module):
    """The assemblies of a system at the start of a step, in the axes of their leads.

    What is said of a cluster stands at each of its members; entries of other bodies are not used.

    **Attributes:** `leads`, see `assembly_leads`; `first`, poses; `own_masses` of the bodies;
    of the whole `masses`, `centres` of mass from that of the lead, (L, 3), and `inertias` about
    them, (L, 3, 3); of the members `arms` from there, (L, 3), and `turns`, rotation matrices,
    member to lead.
    """

    leads: tuple[int, ...] = eqx.field(static=True)
    first: Poses
    own_masses: Float[Array, " L"]
    masses: Float[Array, " L"]
    centres: Float[Array, "L 3"]
    inertias: Float[Array, "L 3 3"]
    arms: Float[Array, "L 3"]
    turns: Float[Array, "L 3 3"]

    def __init__(self, mechanics: SystemMechanics, leads: tuple[int, ...], first: Poses):
        self.leads, self.first = leads, first
        x, R, m = first.positions[:-1], first.rotations[:-1], mechanics.masses
        arms = jax.vmap(to_body)(R[self._at], x - x[self._at])
        self.turns = jax.vmap(relative)(R[self._at], R)
        self.own_masses, self.masses = m, self._sum(m)
        self.centres = self._sum(m[:, None] * arms) / self.masses[:, None]
        self.arms = arms - self.centres

        def about_centre(m, inertia, B, r):
            about = product(B, product(inertia_tensor(inertia), B.T))
            return about + m * (dot(r, r) * jnp.eye(3, dtype=r.dtype) - r[:, None] * r[None])

        own = jax.vmap(about_centre)(m, mechanics.inertias, self.turns, self.arms)
        self.inertias = self._sum(own)

    @property
    def is_lead(self) -> Bool[np.ndarray, "L"]:
        """The first of each cluster."""
        return np.array(self.leads) == np.arange(len(self.leads))

    @property
    def is_member(self) -> Bool[np.ndarray, "L"]:
        """All bodies of assemblies."""
        return np.array(self.leads) >= 0

    @property
    def _at(self) -> Int[np.ndarray, "L"]:
        """Where what belongs to a body's cluster stands."""
        return np.where(self.is_member, self.leads, np.arange(len(self.leads)))

    def welds(self, mechanics: SystemMechanics) -> Bool[np.ndarray, "m"]:
        """Which constraints are those of the assemblies' welds."""
        of_joints = [
            np.repeat(self.is_member[np.array(group.children)], group.joint.num_constraints)
            for group in mechanics.groups
        ]
        return np.concatenate(of_joints)

    def following(self, change: Float[Array, "L 6"], last: Poses) -> Float[Array, "L 6"]:
        """The increments with which members follow those of their leads."""
        linear = self._displacements(change, last, self.centres + self.arms)
        return jnp.concatenate(
            [linear, vmap_rows(to_body, self.turns, change[self._at, 3:])], axis=1
        )

    def twists(
        self, h: Scalar, start: Float[Array, "L 6"], change: Float[Array, "L 6"], last: Poses
    ) -> Float[Array, "L 6"]:
        """Twists at the end of a step, from those at its start and from the increments."""
        velocity = 2.0 / h * self._displacements(change, last, self.centres) - self._mean(start)
        omega = (2.0 / h * change - start)[self._at, 3:]
        linear = velocity + vmap_rows(
            to_space, last.rotations[self._at], vmap_rows(cross, omega, self.arms)
        )
        return jnp.concatenate([linear, vmap_rows(to_body, self.turns, omega)], axis=1)

    def in_the_middle(
        self, change: Float[Array, "L 6"], middle: Poses, last: Poses
    ) -> tuple[Poses, Float[Array, "L 6"]]:
        """Poses of the middle and increments, with members where and as the whole has them move."""
        R = middle.rotations[self._at]
        start, end = (
            poses.positions[self._at] + vmap_rows(to_space, poses.rotations[self._at], self.centres)
            for poses in (self.first, last)
        )
        positions = 0.5 * (start + end) + vmap_rows(to_space, R, self.arms)
        turning = vmap_rows(to_space, R, vmap_rows(cross, change[self._at, 3:], self.arms))
        moved = self._displacements(change, last, self.centres) + turning
        mine = self.is_member[:, None]
        positions = jnp.where(mine, positions, middle.positions[:-1])
        moved = jnp.where(mine, moved, change[:, :3])
        middle = replace_fields(middle, positions=middle.positions.at[:-1].set(positions))
        return middle, jnp.concatenate([moved, change[:, 3:]], axis=1)

    def balance(
        self, h: Scalar, start: Float[Array, "L 6"], change: Float[Array, "L 6"],
        middle: Poses, last: Poses, wrench: Float[Array, "L 6"],
    ) -> Float[Array, "L 6"]:  # fmt: skip
        r"""Gains of momentum less half of the impulses, times $h$; the angular one in the axes of
        the lead at the start.

        **Arguments:** twists at the `start`; `wrench`, forces in space and moments in body
        components of the `middle`.
        """
        at, masses = self._at, self.masses[:, None]
        moved = self._displacements(change, last, self.centres)
        linear = masses * (moved - h * self._mean(start)) - 0.5 * h * h * self._sum(wrench[:, :3])
        before = 0.5 * h * vmap_rows(jnp.matmul, self.inertias, start[at, 3:])
        after = vmap_rows(jnp.matmul, self.inertias, change[at, 3:]) - before
        force = vmap_rows(to_body, middle.rotations[at], wrench[:, :3])
        moment = vmap_rows(to_space, self.turns, wrench[:, 3:]) + vmap_rows(cross, self.arms, force)
        frames = self.first.rotations[at]
        spin = carried(after, last.rotations[at], frames) - before
        spin = spin - 0.5 * h * h * carried(self._sum(moment), middle.rotations[at], frames)
        return jnp.concatenate([linear, spin], axis=1)

    def _displacements(self, change, last: Poses, arms) -> Float[Array, "L 3"]:
        """Of points of the leads, `arms` away from their centres of mass."""
        before, after = (poses.rotations[self._at] for poses in (self.first, last))
        return change[self._at, :3] + vmap_rows(to_space, after - before, arms)

    def _mean(self, twists) -> Float[Array, "L 3"]:
        """Velocities of the centres of mass."""
        momenta = self._sum(self.own_masses[:, None] * twists[:, :3])
        return momenta / self.masses[:, None]

    def _sum(self, values: Float[Array, "L *s"]) -> Float[Array, "L *s"]:
        """Of all members."""
        same = self._at[:, None] == self._at
        return jnp.tensordot(jnp.asarray(same, values.dtype), values, 1)
