r"""Bodies that are held together by welds alone and move as one free rigid body.

A scheme for free bodies moves the centre of mass of a welded assembly with its mean velocity and
rotates the assembly by the same map as a single body. A body that is welded to another one changes
the motion by its mass only, so that a massless one changes nothing. The reactions of these welds do
not enter the step; their multipliers are zero.
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
from ...mechanics.stacked.joints import Poses
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.matrix import product, relative, to_body, to_space
from ...rotations.so3 import dot
from ...small_arrays import cross, vmap_rows
from .phase import change_frame


def assembly_leads(prepared: PreparedSystem) -> tuple[int, ...] | None:
    """Return the first body of the welded assembly of each body.

    The entry is -1 for a body outside such assemblies. Without any assembly the result is `None`.
    """
    count = prepared.num_bodies
    lead, is_free = np.arange(count + 1), np.ones(count + 1, bool)
    is_free[count] = False  # the ground
    for group in prepared.groups:
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
    leads = np.where(is_free[lead] & (sizes[lead] > 1), lead, -1)
    return tuple(leads.tolist()) if np.any(leads >= 0) else None


class WeldedAssemblies(eqx.Module):
    """Mass properties of the welded assemblies at the start of a step, in axes of the lead bodies.

    The properties of an assembly are stored in the rows of all its bodies; rows of other bodies are
    not used.

    **Attributes:** `leads`, see `assembly_leads`; `first`, poses at the start of the step;
    `body_masses`, of the single bodies; of the assemblies `masses`, `centres`, from the centre of
    mass of the lead body to that of the assembly, (L, 3), and `inertias` about the latter,
    (L, 3, 3); `arms`, from the centre of mass of the assembly to that of the body, (L, 3);
    `rotations`, rotation matrices from body to lead axes.
    """

    leads: tuple[int, ...] = eqx.field(static=True)
    first: Poses
    body_masses: Float[Array, " L"]
    masses: Float[Array, " L"]
    centres: Float[Array, "L 3"]
    inertias: Float[Array, "L 3 3"]
    arms: Float[Array, "L 3"]
    rotations: Float[Array, "L 3 3"]

    def __init__(self, prepared: PreparedSystem, leads: tuple[int, ...], first: Poses):
        self.leads, self.first = leads, first
        x, R, m = first.positions[:-1], first.rotations[:-1], prepared.masses
        arms = jax.vmap(to_body)(R[self._lead_rows], x - x[self._lead_rows])
        self.rotations = jax.vmap(relative)(R[self._lead_rows], R)
        self.body_masses, self.masses = m, self._sum_over_assembly(m)
        self.centres = self._sum_over_assembly(m[:, None] * arms) / self.masses[:, None]
        self.arms = arms - self.centres

        def inertia_about_centre(m, inertia, B, r):
            rotated = product(B, product(inertia_tensor(inertia), B.T))
            return rotated + m * (dot(r, r) * jnp.eye(3, dtype=r.dtype) - r[:, None] * r[None])

        of_bodies = jax.vmap(inertia_about_centre)(m, prepared.inertias, self.rotations, self.arms)
        self.inertias = self._sum_over_assembly(of_bodies)

    @property
    def is_lead(self) -> Bool[np.ndarray, "L"]:
        """Whether each body is the first one of an assembly."""
        return np.array(self.leads) == np.arange(len(self.leads))

    @property
    def is_welded(self) -> Bool[np.ndarray, "L"]:
        """Whether each body belongs to an assembly."""
        return np.array(self.leads) >= 0

    @property
    def _lead_rows(self) -> Int[np.ndarray, "L"]:
        """Row of the lead body of each body; its own row for a body without an assembly."""
        return np.where(self.is_welded, self.leads, np.arange(len(self.leads)))

    def is_weld_constraint(self, prepared: PreparedSystem) -> Bool[np.ndarray, "m"]:
        """Mark the constraints that are imposed by the welds of assemblies."""
        of_joints = [
            np.repeat(self.is_welded[np.array(group.children)], group.joint.num_constraints)
            for group in prepared.groups
        ]
        return np.concatenate(of_joints)

    def rigid_increments(self, change: Float[Array, "L 6"], last: Poses) -> Float[Array, "L 6"]:
        """Return the increments of all bodies that follow from those of their lead bodies."""
        linear = self._displacements(change, last, self.centres + self.arms)
        angular = vmap_rows(to_body, self.rotations, change[self._lead_rows, 3:])
        return jnp.concatenate([linear, angular], axis=1)

    def end_twists(
        self, h: Scalar, start: Float[Array, "L 6"], change: Float[Array, "L 6"], last: Poses
    ) -> Float[Array, "L 6"]:
        """Return the twists at the end of a step from those at its start and the increments."""
        displacements = self._displacements(change, last, self.centres)
        velocity = 2.0 / h * displacements - self._centre_velocities(start)
        omega = (2.0 / h * change - start)[self._lead_rows, 3:]
        lever = vmap_rows(cross, omega, self.arms)
        linear = velocity + vmap_rows(to_space, last.rotations[self._lead_rows], lever)
        return jnp.concatenate([linear, vmap_rows(to_body, self.rotations, omega)], axis=1)

    def replace_midpoint(
        self, change: Float[Array, "L 6"], middle: Poses, last: Poses
    ) -> tuple[Poses, Float[Array, "L 6"]]:
        """Return the midpoint poses and the increments with those of welded bodies replaced.

        Welded bodies are placed, and move, as points of their rigid assembly.
        """
        R = middle.rotations[self._lead_rows]
        start, end = (
            poses.positions[self._lead_rows]
            + vmap_rows(to_space, poses.rotations[self._lead_rows], self.centres)
            for poses in (self.first, last)
        )
        positions = 0.5 * (start + end) + vmap_rows(to_space, R, self.arms)
        lever = vmap_rows(to_space, R, vmap_rows(cross, change[self._lead_rows, 3:], self.arms))
        linear = self._displacements(change, last, self.centres) + lever
        is_welded = self.is_welded[:, None]
        positions = jnp.where(is_welded, positions, middle.positions[:-1])
        linear = jnp.where(is_welded, linear, change[:, :3])
        middle = replace_fields(middle, positions=middle.positions.at[:-1].set(positions))
        return middle, jnp.concatenate([linear, change[:, 3:]], axis=1)

    def momentum_balance(
        self, h: Scalar, start: Float[Array, "L 6"], change: Float[Array, "L 6"],
        middle: Poses, last: Poses, wrench: Float[Array, "L 6"],
    ) -> Float[Array, "L 6"]:  # fmt: skip
        r"""Return the residual of the momentum balance of the assemblies, shape (L, 6).

        Half the gain of momentum minus half the impulse of the loads, both times $h$. The angular
        part is in the axes of the lead body at the start.

        **Arguments:** `h`, length of the step; `start`, twists at its start; `change`, increments;
        `middle`, `last`, poses; `wrench`, forces in space and moments in body components of the
        middle.
        """
        rows, masses = self._lead_rows, self.masses[:, None]
        displacements = self._displacements(change, last, self.centres)
        impulse = 0.5 * h * h * self._sum_over_assembly(wrench[:, :3])
        linear = masses * (displacements - h * self._centre_velocities(start)) - impulse
        before = 0.5 * h * vmap_rows(jnp.matmul, self.inertias, start[rows, 3:])
        after = vmap_rows(jnp.matmul, self.inertias, change[rows, 3:]) - before
        force = vmap_rows(to_body, middle.rotations[rows], wrench[:, :3])
        moment = vmap_rows(to_space, self.rotations, wrench[:, 3:]) + vmap_rows(
            cross, self.arms, force
        )
        frames = self.first.rotations[rows]
        spin = change_frame(after, last.rotations[rows], frames) - before
        moments = self._sum_over_assembly(moment)
        spin = spin - 0.5 * h * h * change_frame(moments, middle.rotations[rows], frames)
        return jnp.concatenate([linear, spin], axis=1)

    def _displacements(
        self, change: Float[Array, "L 6"], last: Poses, arms: Float[Array, "L 3"]
    ) -> Float[Array, "L 3"]:
        """Return the displacements of points of the lead bodies, `arms` from their centres."""
        before, after = (poses.rotations[self._lead_rows] for poses in (self.first, last))
        return change[self._lead_rows, :3] + vmap_rows(to_space, after - before, arms)

    def _centre_velocities(self, twists: Float[Array, "L 6"]) -> Float[Array, "L 3"]:
        """Return the velocities of the centres of mass of the assemblies."""
        momenta = self._sum_over_assembly(self.body_masses[:, None] * twists[:, :3])
        return momenta / self.masses[:, None]

    def _sum_over_assembly(self, values: Float[Array, "L *s"]) -> Float[Array, "L *s"]:
        """Sum over the bodies of each assembly; the sum is in the rows of all of them."""
        same = self._lead_rows[:, None] == self._lead_rows
        return jnp.tensordot(jnp.asarray(same, values.dtype), values, 1)
