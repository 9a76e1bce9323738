r"""Step of systems that moves bodies by the means of their twists."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector
from ...formulations import AbstractFormulation
from ...mechanics.kinematics.constraints import constraint_values, split_by_group
from ...mechanics.kinematics.poses import joint_frames_at
from ...mechanics.stacked.joints import JointFrames, Poses
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.euler_map import euler_map
from ...rotations.matrix import to_body
from ...small_arrays import cross
from .discrete_gradient import conserving_wrenches, wrenches_in_pose
from .equations import AbstractMultiplierEquations, Root, find_root
from .fixed_point import director_gain, director_rates
from .increments import Map, RotationIncrement, cayley, map_rotations
from .phase import (
    Phase,
    change_frame,
    increment_scales,
    is_jointed,
    midpoint_poses,
    momenta,
    rotate_quaternions,
)
from .welded_assemblies import WeldedAssemblies, assembly_leads


def trapezoidal_step(
    model: AbstractFormulation,
    t0: Scalar,
    h: Scalar,
    start: Phase,
    multipliers: Vector,
    limit: int,
    *,
    free_map: Map,
    conserves: bool = True,
    mean_quaternions: bool = False,
) -> tuple[Phase, Root]:
    r"""Make a step that conserves energy and, for a free system, momentum and angular momentum.

    Bodies move with the mean $\bar w$ of their twists at both ends,
    $x_1 - x_0 = h\,\bar v$, $R_1 = R_0\,\mathrm{cay}(h\,\bar\Omega)$, such that
    $R_1 - R_0 = h\,\bar R\,\bar\Omega^\wedge$ with the mean $\bar R$ of both matrices. Then
    $M(w_1 - w_0)$, with angular momenta in space components, equals the impulse of the applied
    forces and of the joints, $-\bar G^T h\lambda$, where $\bar G\,\bar w\,h = g(q_1) - g(q_0)$
    exactly: relative poses of joints are quadratic in $x$ and $R$, so that their gradient at the
    mean pose is a discrete gradient, which commutes with rotations of the whole system. The
    discrete gradients of the constraints with respect to relative poses are
    `AbstractJoint.mean_gradient`. All joints are closed at the end, $g(q_1) = 0$, to round-off. The
    velocity constraints hold for the mean twists, and at the ends to second order in $h$.

    Bodies without joints, and assemblies that are held together by welds alone (see
    `welded_assemblies`), may rotate by any other map of $h\,\bar\Omega$ about the same axis. For
    QUAT.EM it is $q_1 - q_0 = \frac h2\,\bar q \circ \bar\Omega$ with the mean quaternion $\bar q$.
    In DIR.EM the rates of their directors are independent unknowns, which are updated like the
    twists. With `mean_quaternions` all bodies rotate as in QUAT.EM. In this case the remaining
    factor of $\bar G$ is the chain rule over $R(q)$: $R_1 - R_0 = h\,R(\bar q)\,\bar\Omega^\wedge$,
    so that the moment of a joint contains $R(\bar q)$ instead of $\bar R$, which differs by
    $R(\frac12(q_1 - q_0))$. Energy and joints are as exact as before, and angular momentum is
    conserved to second order.

    No choice of the gradient avoids this. Two bodies that are welded together and rotate by
    $\varphi$ have $h \bar v = 2 \tan\frac\varphi2$ in units of their distances from the axis:
    energy, angular momentum and the weld require $h \bar\Omega = 2 \tan\frac\varphi2$ too, which is
    the Cayley map, while the mean quaternion has $4 \tan\frac\varphi4$.

    **Arguments:** `model`; `t0`, start of the step, and `h`, its length, s; `start`, poses and
    twists; `multipliers`, their initial iterate, from the step before; `limit`, the largest number
    of Newton iterations; `free_map`, the map of bodies without joints; `conserves`, whether the
    work of potentials is exactly the energy that they lose; `mean_quaternions`, whether bodies on
    joints rotate by `free_map` too.
    **Returns:** poses and twists at the end; the result of Newton's method, with increments
    $h\,\bar w$ and multipliers $h^2\lambda/2$.
    **Source:** discrete null-space method: Betsch, Leyendecker, Int. J. Numer. Meth. Engng 67
    (2006); the mid-point rule on rotations: Simo, Wong (1991), Austin, Krishnaprasad, Wang (1993);
    the mean quaternion: Betsch-Siebert (50), (51); rates of directors: Betsch-Siebert, section 3.
    """
    prepared = model.prepared_system
    first, scales = start.poses(prepared), increment_scales(prepared, start.positions)
    uses_cayley, assemblies = np.array(is_jointed(prepared)), None
    if (
        free_map is not cayley
        and not mean_quaternions
        and (leads := assembly_leads(prepared)) is not None
    ):
        assemblies = WeldedAssemblies(prepared, leads, first)
        uses_cayley = uses_cayley & ~assemblies.is_welded
    maps = tuple(
        cayley if on_joint and not mean_quaternions else free_map for on_joint in uses_cayley
    )
    joint_frames = joint_frames_at(prepared, first)
    equations = _Equations(
        prepared,
        scales,
        t0,
        h,
        start,
        first,
        joint_frames,
        maps,
        conserves,
        mean_quaternions,
        assemblies,
    )
    guess = jnp.concatenate([h * start.twists.ravel(), multipliers])
    root = find_root(equations, guess, limit)
    change, _ = equations.split_unknowns(root.Z)
    return equations.end_with_twists(change), root


class _Equations(AbstractMultiplierEquations):
    prepared: PreparedSystem
    scales: Float[Array, "L 6"]
    t0: Scalar
    h: Scalar
    start: Phase
    first: Poses
    joint_frames: JointFrames  # at the start of the step
    maps: tuple[Map, ...] = eqx.field(static=True)
    conserves: bool = eqx.field(static=True)
    mean_quaternions: bool = eqx.field(static=True)
    assemblies: WeldedAssemblies | None

    def increments(self, change: Float[Array, "L 6"]) -> RotationIncrement:
        return map_rotations(self.maps, change[:, 3:])

    def end(self, change: Float[Array, "L 6"]) -> Phase:
        """Return the poses at the end with the twists and rates of the start."""
        start = self.start
        quaternions = rotate_quaternions(start.quaternions, self.increments(change))
        positions = start.positions + change[:, :3]
        return Phase(positions, quaternions, start.twists, start.angles, start.rates)

    def end_with_twists(self, change: Float[Array, "L 6"]) -> Phase:
        """Return the poses, twists and rates at the end."""
        start, end = self.start, self.end(change)
        twists = 2.0 / self.h * change - start.twists
        if self.assemblies is not None:
            last = end.poses(self.prepared)
            of_assemblies = self.assemblies.end_twists(self.h, start.twists, change, last)
            twists = jnp.where(self.assemblies.is_welded[:, None], of_assemblies, twists)
        if start.rates is None:
            return eqx.tree_at(lambda phase: phase.twists, end, twists)
        middle = midpoint_poses(self.prepared, start, end).rotations[:-1]
        rates = jax.vmap(director_rates, in_axes=(0, 0, 0, 0, None))(
            self.increments(change), middle, start.rates, change[:, 3:], self.h
        )
        return eqx.tree_at(lambda phase: (phase.twists, phase.rates), end, (twists, rates))

    def residual(self, Z: Vector) -> Vector:
        prepared, start, h = self.prepared, self.start, self.h
        change, mu = self.split_unknowns(Z)
        end, increments = self.end(change), self.increments(change)
        middle = midpoint_poses(prepared, start, end)
        first, last = self.first, end.poses(prepared)
        L, t = prepared.num_bodies, self.t0 + 0.5 * h
        # Angular momenta are in body components at the start. Components along the axis of the
        # step are then the same in all frames of the step.
        frames = first.rotations[:L]
        body_motion = change
        if self.assemblies is not None:
            middle, body_motion = self.assemblies.replace_midpoint(change, middle, last)
        if self.conserves:
            wrench = conserving_wrenches(
                prepared, t, first, middle, last, body_motion, h, increments.chord
            )
        else:
            wrench = wrenches_in_pose(prepared, t, middle, body_motion / h)
        moment = change_frame(wrench[:, 3:], middle.rotations[:L], frames)
        before = 0.5 * h * momenta(prepared, start.twists)
        after = momenta(prepared, change) - before
        spin = change_frame(after[:, 3:], last.rotations[:L], frames) - before[:, 3:]
        if start.rates is not None:
            spin = self._director_spin(change, increments, middle, spin)
        gain = jnp.concatenate([after[:, :3] - before[:, :3], spin], axis=1)
        impulse = 0.5 * h * h * jnp.concatenate([wrench[:, :3], moment], axis=1)
        if prepared.is_free:
            return (gain - impulse).ravel()
        joint_frames = joint_frames_at(prepared, last)
        reaction = self._reaction(t, last, joint_frames, mu, end.quaternions)
        gap = constraint_values(prepared, self.t0 + h, joint_frames)
        balance = gain - impulse + reaction
        if (assemblies := self.assemblies) is not None:
            of_assemblies = assemblies.momentum_balance(
                h, start.twists, change, middle, last, wrench
            )
            deviation = change - assemblies.rigid_increments(change, last)
            rows = jnp.where(assemblies.is_lead[:, None], of_assemblies, deviation)
            balance = jnp.where(assemblies.is_welded[:, None], rows, balance)
            # Bodies that follow their leads satisfy the welds, whose multipliers are zero.
            gap = jnp.where(assemblies.is_weld_constraint(prepared), mu, gap)
        return jnp.concatenate([balance.ravel(), gap])

    def _director_spin(
        self,
        change: Float[Array, "L 6"],
        increments: RotationIncrement,
        middle: Poses,
        spin: Float[Array, "L 3"],
    ) -> Float[Array, "L 3"]:
        """Replace the gains of angular momentum of bodies without joints by those of directors."""
        assert self.start.rates is not None
        frames = self.first.rotations[:-1]
        rates = jnp.swapaxes(self.start.rates.reshape(-1, 3, 3), 1, 2)
        gain = 0.5 * jax.vmap(director_gain, in_axes=(0, 0, 0, 0, 0, None))(
            self.prepared.inertias, increments, frames, rates, change[:, 3:], self.h
        )
        jointed = np.array(is_jointed(self.prepared))[:, None]
        return jnp.where(jointed, spin, change_frame(gain, middle.rotations[:-1], frames))

    def _reaction(
        self,
        t: Scalar,
        last: Poses,
        joint_frames: JointFrames,
        mu: Float[Array, " m"],
        ends: Float[Array, "L 4"],
    ) -> Float[Array, "L 6"]:
        r"""Return $\bar G^T \mu$, moments in body components at the start."""
        prepared, first = self.prepared, self.first
        mean = jax.tree.map(lambda u, v: 0.5 * (u + v), first, last)

        def relatives(positions, rotations):
            x, R = mean.positions.at[:-1].set(positions), mean.rotations.at[:-1].set(rotations)
            relative_poses = [
                frames.relative for frames in joint_frames_at(prepared, Poses(x, R, mean.turns))
            ]
            return [(relative.displacement, relative.rotation) for relative in relative_poses]

        _, pull_back = jax.vjp(relatives, mean.positions[:-1], mean.rotations[:-1])
        blocks = split_by_group(prepared, mu)
        gradients = [
            group.map(
                lambda joint, r0, r1, mu: joint.mean_gradient(r0, r1, t, mu),
                before.relative, after.relative, block,
            )
            for group, before, after, block in zip(
                prepared.groups, self.joint_frames, joint_frames, blocks, strict=True
            )
        ]  # fmt: skip
        force, gradient = pull_back(gradients)
        matrices = mean.rotations[:-1]
        if self.mean_quaternions:
            matrices = jax.vmap(euler_map)(0.5 * (self.start.quaternions + ends))
        columns, slopes = (jnp.swapaxes(A, 1, 2) for A in (matrices, gradient))
        moment = jnp.sum(jax.vmap(jax.vmap(cross))(columns, slopes), axis=1)
        return jnp.concatenate([force, jax.vmap(to_body)(first.rotations[:-1], moment)], axis=1)
