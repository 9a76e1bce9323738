r"""Gonzalez' discrete derivative, by which forces do exactly the work that potentials lose.

The force of a potential in the middle of a step does this work up to a defect of third order in the
step, which is zero for a linear potential. An additional force along the motion of the bodies, in
the metric of the kinetic energy, removes the defect.

In a short step the defect is far below the round-off of the potential at both ends, and it is
divided by the length of the step. It is therefore computed from slopes of the potential instead of
its values.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.inertia import inertia_tensor
from ...forces.base import Kinematics
from ...joints.base import AbstractJoint
from ...joints.replacing import replace_fields
from ...mechanics.dynamics.loads import applied_wrenches
from ...mechanics.kinematics.poses import joint_frames_at, kinematics_for_forces
from ...mechanics.stacked.forces import ForceGroup, energy_of
from ...mechanics.stacked.joints import Poses, frames_between
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product, to_body, to_space
from ...rotations.so3 import skew
from ...small_arrays import cross, take
from .phase import split_twists


def defect(values: Sequence[Scalar], slopes: Sequence[Scalar], size: Scalar) -> Scalar:
    r"""Return $V_1 - V_0 - b$, in a short step with the relative accuracy of the slopes $a, b, c$.

    The slopes are $dV/ds$ at the start, middle and end of a path through these points along which
    the parameter $s$ grows by 1. By Simpson's rule the defect is $(a - 2b + c)/6$. This value is
    returned where it agrees with the difference of the values up to their round-off.

    **Arguments:** `values`, $V_0, V_1$, J; `slopes`, $a, b, c$, J; `size`, of the terms that cancel
    in the values, J.
    """
    (start, end), (a, b, c) = values, slopes
    by_values, by_slopes = end - start - b, (a - 2.0 * b + c) / 6.0
    eps = jnp.finfo(by_values.dtype).eps
    round_off = 16.0 * eps * (jnp.abs(start) + jnp.abs(end) + size)
    return jnp.where(jnp.abs(by_values - by_slopes) > round_off, by_values, by_slopes)


def energy_correction(
    prepared: PreparedSystem, group: ForceGroup, t: Scalar, h: Scalar,
    poses: Sequence[Kinematics], chords: Float[Array, " L"],
) -> Float[Array, "L 6"]:  # fmt: skip
    """Return wrenches along the motion of the bodies that remove the defects of a group of forces.

    The correction of an internal force, whose work depends on relative motion only, is along the
    relative motion, so that it changes neither momentum nor angular momentum.

    **Arguments:** `prepared`; `group`, forces of one kind; `t`, the middle of the step, s; `h`,
    its length, s; `poses`, kinematics at its start, middle and end, with the mean twists; `chords`,
    of the rotations (see `RotationIncrement`), (L,).
    **Returns:** a wrench for each body, (L, 6), moments in body components of the middle.
    """
    between_bodies = not group.acts_on_all and len(group.rows) > 1 and None not in group.rows
    joints = [_joint_rows(prepared, names) for names in group.joints]

    def correct_force(force, bodies, first, middle, last, chords, inertias, joints):
        def energy(x, R, turns):
            joint_views = []
            for i, (old, (joint, attachments)) in enumerate(
                zip(middle.joints, joints, strict=True)
            ):
                row = len(x) + 2 * (i - len(joints))  # of the parent; the child is in the next row
                frames = frames_between(
                    x[row], R[row], x[row + 1], R[row + 1], attachments, turns[i]
                )
                joint_views.append(
                    replace_fields(old, coordinates=joint.coordinates(frames.relative))
                )
            view = replace_fields(middle, positions=x, rotations=R, joints=tuple(joint_views))
            return energy_of(force, t, bodies, view)

        # Evaluating the three points in one batch takes a third of the compile time.
        poses = jax.tree.map(
            lambda *leaves: jnp.stack(leaves),
            *(
                (k.positions, k.rotations, tuple(joint.turns for joint in k.joints))
                for k in (first, middle, last)
            ),
        )
        values, gradients = jax.vmap(jax.value_and_grad(energy, argnums=(0, 1)))(*poses)
        v, omega = middle.velocities, middle.angular_velocities
        slopes = _path_slopes(poses[1], gradients, h * v, h * omega, chords)
        terms = jax.tree.map(
            lambda pose, gradient: jnp.sum(jnp.abs(pose * gradient).reshape(3, -1), axis=1),
            poses[:2],
            gradients,
        )
        size = jnp.max(terms[0] + terms[1])
        defect_of_work = defect((values[0], values[2]), slopes, jax.lax.stop_gradient(size))
        momenta, twice = _momenta(bodies.masses, inertias, v, omega)
        if between_bodies:
            total = twice
            momenta, twice = _momenta(
                bodies.masses, inertias, *_relative_twists(bodies.masses, inertias, middle)
            )
            # A relative motion at round-off level has no direction and needs no correction.
            twice = jnp.where(twice > jnp.finfo(twice.dtype).eps ** 0.75 * total, twice, 0.0)
        return -safe_divide(defect_of_work, h * twice) * momenta

    views = [group.kinematics_of(kinematics) for kinematics in poses]
    all_inertias = prepared.inertias
    inertias = group.rows_of(all_inertias, np.zeros(all_inertias.shape[1:]))
    wrenches = group.map(
        correct_force, *views, group.rows_of(chords, np.ones(())), inertias, joints
    )
    return group.sum_by_body(wrenches, prepared.num_bodies)


def _joint_rows(
    prepared: PreparedSystem, names: Sequence[str]
) -> tuple[AbstractJoint, tuple[Array, ...]]:
    """Return joints of one kind by name, stacked, and their points and frames in the bodies."""
    for group in prepared.groups:
        group_names = [prepared.system.joints[j].name for j in group.indices]
        if names[0] in group_names:
            rows = [group_names.index(name) for name in names]
            attachments = tuple(take(value, rows) for value in group.attachments)
            return group.member(rows), attachments
    raise KeyError(names[0])


def _path_slopes(
    rotations: Float[Array, "3 B 3 3"],
    gradients: tuple[Float[Array, "3 B 3"], Float[Array, "3 B 3 3"]],
    shifts: Float[Array, "B 3"],
    rotation_vectors: Float[Array, "B 3"],
    chords: Float[Array, " B"],
) -> tuple[Array, ...]:
    r"""Return the slopes of the energy at the start, middle and end of a path through the step.

    Along the path positions move by `shifts`, and bodies rotate about their rotation vectors
    $\psi$. The rate of rotation at the ends is that of a cubic path through both ends, to fourth
    order $3\gamma - 2 + |\psi|^2/8$ with the chord $\gamma$.
    """
    force, moment = gradients
    tangents = jax.vmap(jax.vmap(lambda R, psi: product(R, skew(psi))), (0, None))(
        rotations, rotation_vectors
    )
    at_ends = 3.0 * chords - 2.0 + jnp.sum(rotation_vectors * rotation_vectors, axis=1) / 8.0
    rates = jnp.stack([at_ends, jnp.ones_like(at_ends), at_ends])
    rotational = rates * jnp.sum(moment * tangents, axis=(2, 3))
    return jnp.unstack(jnp.sum(force * shifts[None], axis=(1, 2)) + jnp.sum(rotational, axis=1))


def _momenta(
    masses: Float[Array, " B"],
    inertias: Float[Array, "B 3"] | Float[Array, "B 3 3"],
    v: Float[Array, "B 3"],
    omega: Float[Array, "B 3"],
) -> tuple[Float[Array, "B 6"], Scalar]:
    """Return the momenta of the bodies and twice their kinetic energy."""
    angular = jax.vmap(angular_momentum)(inertias, omega)
    momenta = jnp.concatenate([masses[:, None] * v, angular], axis=1)
    return momenta, jnp.sum(momenta * jnp.concatenate([v, omega], axis=1))


def _relative_twists(
    masses: Float[Array, " B"],
    inertias: Float[Array, "B 3"] | Float[Array, "B 3 3"],
    middle: Kinematics,
) -> tuple[Float[Array, "B 3"], Float[Array, "B 3"]]:
    """Subtract from the twists the rigid motion with the same momentum and angular momentum."""
    R, v, omega = middle.rotations, middle.velocities, middle.angular_velocities
    center, drift = (masses @ values / jnp.sum(masses) for values in (middle.positions, v))
    arms = middle.positions - center[None]

    def of_body(m, inertia, R, arm, v, omega):
        spin = to_space(R, angular_momentum(inertia, omega)) + m * cross(arm, v - drift)
        S = skew(arm)
        locked = product(product(R, inertia_tensor(inertia)), R.T) - m * product(S, S)
        return spin, locked

    spin, locked = jax.tree.map(
        lambda x: jnp.sum(x, axis=0), jax.vmap(of_body)(masses, inertias, R, arms, v, omega)
    )
    # Point masses on a line have no inertia about this line.
    floor = jnp.finfo(locked.dtype).eps * jnp.trace(locked)
    omega_rigid = solve_inertia(locked + floor * jnp.eye(3, dtype=locked.dtype), spin)
    v = v - drift[None] - jax.vmap(lambda arm: cross(omega_rigid, arm))(arms)
    return v, omega - jax.vmap(lambda R: to_body(R, omega_rigid))(R)


def wrenches_in_pose(
    prepared: PreparedSystem, t: Scalar, poses: Poses, twists: Float[Array, "L 6"]
) -> Float[Array, "L 6"]:
    """Return the applied wrenches, forces in space and moments in body components."""
    return applied_wrenches(prepared, t, _kinematics(prepared, poses, twists))


def conserving_wrenches(
    prepared: PreparedSystem,
    t: Scalar,
    first: Poses,
    middle: Poses,
    last: Poses,
    change: Float[Array, "L 6"],
    h: Scalar,
    chords: Float[Array, " L"],
) -> Float[Array, "L 6"]:
    r"""Return the wrenches in the middle of a step.

    The conservative part does exactly the work $V_0 - V_1$.

    **Arguments:** `prepared`; `t`, the middle of the step, s; `first`, `middle`, `last`, poses at
    its start, middle and end; `change`, displacements and rotation vectors (body axes of the
    middle) of the step, (L, 6); `h`, its length, s; `chords`, of the rotations (see
    `RotationIncrement`), (L,).
    **Returns:** forces in space and moments in body components of the middle, (L, 6).
    """
    poses = [_kinematics(prepared, p, change / h) for p in (first, middle, last)]
    total = applied_wrenches(prepared, t, poses[1])
    for group in prepared.forces:
        if not group.is_linear:
            total = total + energy_correction(prepared, group, t, h, poses, chords)
    return total


def _kinematics(prepared: PreparedSystem, poses: Poses, twists: Float[Array, "L 6"]) -> Kinematics:
    return kinematics_for_forces(
        prepared, poses, joint_frames_at(prepared, poses), split_twists(twists)
    )
