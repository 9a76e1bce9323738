r"""What makes the work of a force over a step exact: Gonzalez' discrete derivative.

The potential's own force in the middle of a step misses the work that it should do by a defect of
third order, none if the potential is linear. A force along the motion of the bodies, in the metric
of kinetic energy, makes up for it.

The defect of a short step is far below the round-off of the potential at both ends, and is divided
by the length of the step. So it is not the difference of their values there but that of slopes.
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
from ...joints.replacing import replace_fields
from ...mechanics.attachment import placed
from ...mechanics.force_groups import ForceGroup, energy_of
from ...mechanics.mechanics import SystemMechanics
from ...native.ops import cross, take
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product, to_body, to_space
from ...rotations.so3 import skew


def defect(
    values: Sequence[Float[Array, ""]], slopes: Sequence[Float[Array, ""]], size: Float[Array, ""]
) -> Float[Array, ""]:
    r"""$V_1 - V_0 - b$, with the relative accuracy of the slopes $a, b, c$ in a short step.

    The slopes are $dV/ds$ at start, middle and end of any path through them whose parameter gains
    1. By Simpson's rule the defect is $(a - 2b + c)/6$; where that differs from the difference of
    the values by no more than their round-off, it is the better one.

    **Arguments:** `values` $V_0, V_1$; `slopes`; `size` of the terms that cancel in the values, J.
    """
    (start, end), (a, b, c) = values, slopes
    by_values, by_slopes = end - start - b, (a - 2.0 * b + c) / 6.0
    eps = jnp.finfo(by_values.dtype).eps
    round_off = 16.0 * eps * (jnp.abs(start) + jnp.abs(end) + size)
    return jnp.where(jnp.abs(by_values - by_slopes) > round_off, by_values, by_slopes)


def correction(
    mechanics: SystemMechanics, group: ForceGroup, t: Scalar, h: Scalar,
    poses: Sequence[Kinematics], chords: Float[Array, " L"],
) -> Float[Array, "L 6"]:  # fmt: skip
    """What makes up for the defects of forces, along the motion of the bodies that each acts on.

    Between bodies, where nothing but their relative motion matters, along that alone: total
    momentum and angular momentum are not touched.

    **Arguments:** `t`, in the middle of the step, `h`, its length; `poses` at its start, middle and
    end, with the mean twists; `chords`, of the increments of the bodies.
    **Returns:** a wrench for each body, moments in the frames of the middle.
    """
    between_bodies = not group.acts_on_all and len(group.rows) > 1 and None not in group.rows
    joints = [_joints(mechanics, names) for names in group.joints]

    def one(force, bodies, first, middle, last, chords, inertias, joints):
        def energy(x, R, turns):
            seen = []
            for i, (old, (joint, attachments)) in enumerate(
                zip(middle.joints, joints, strict=True)
            ):
                row = len(x) + 2 * (i - len(joints))  # of the parent, the child is behind it
                place = placed(x[row], R[row], x[row + 1], R[row + 1], attachments, turns[i])
                seen.append(replace_fields(old, coordinates=joint.coordinates(place.relative)))
            seen = replace_fields(middle, positions=x, rotations=R, joints=tuple(seen))
            return energy_of(force, t, bodies, seen)

        # All three at once: a third of what there is to compile.
        poses = jax.tree.map(
            lambda *leaves: jnp.stack(leaves),
            *(
                (k.positions, k.rotations, tuple(joint.turns for joint in k.joints))
                for k in (first, middle, last)
            ),
        )
        values, gradients = jax.vmap(jax.value_and_grad(energy, argnums=(0, 1)))(*poses)
        v, omega = middle.velocities, middle.angular_velocities
        slopes = _slopes(poses[1], gradients, h * v, h * omega, chords)
        terms = jax.tree.map(
            lambda pose, gradient: jnp.sum(jnp.abs(pose * gradient).reshape(3, -1), axis=1),
            poses[:2],
            gradients,
        )
        size = jnp.max(terms[0] + terms[1])
        missed = defect((values[0], values[2]), slopes, jax.lax.stop_gradient(size))
        momenta, twice = _momenta(bodies.masses, inertias, v, omega)
        if between_bodies:
            whole = twice
            momenta, twice = _momenta(
                bodies.masses, inertias, *_relative(bodies.masses, inertias, middle)
            )
            # A relative motion that is next to nothing has no direction, and needs no correction.
            twice = jnp.where(twice > jnp.finfo(twice.dtype).eps ** 0.75 * whole, twice, 0.0)
        return -safe_divide(missed, h * twice) * momenta

    seen = [group.seen(kinematics) for kinematics in poses]
    all_inertias = mechanics.inertias
    inertias = group.rows_of(all_inertias, np.zeros(all_inertias.shape[1:]))
    found = group.over(one, *seen, group.rows_of(chords, np.ones(())), inertias, joints)
    return group.summed(found, mechanics.num_bodies)


def _joints(mechanics, names):
    """Joints of one group, and their points and frames in the bodies, stacked."""
    for group in mechanics.groups:
        own = [mechanics.system.joints[j].name for j in group.indices]
        if names[0] in own:
            rows = [own.index(name) for name in names]
            attachments = tuple(take(value, rows) for value in group.attachments)
            return group.member(rows), attachments
    raise KeyError(names[0])


def _slopes(rotations, gradients, shifts, turns, chords):
    r"""Slopes of the energy at start, middle and end along a path that has the step in the middle.

    Positions move by `shifts`. Rotations turn about `turns`, $\psi$; by as much at the ends as a
    cubic path through both ends asks for, to fourth order: $3\gamma - 2 + |\psi|^2/8$ with the
    chord $\gamma$.
    """
    force, moment = gradients
    turned = jax.vmap(jax.vmap(lambda R, psi: product(R, skew(psi))), (0, None))(rotations, turns)
    at_ends = 3.0 * chords - 2.0 + jnp.sum(turns * turns, axis=1) / 8.0
    rates = jnp.stack([at_ends, jnp.ones_like(at_ends), at_ends])
    turning = rates * jnp.sum(moment * turned, axis=(2, 3))
    return jnp.unstack(jnp.sum(force * shifts[None], axis=(1, 2)) + jnp.sum(turning, axis=1))


def _momenta(masses, inertias, v, omega):
    """Momenta of the bodies, (B, 6), and twice their kinetic energy."""
    turn = jax.vmap(angular_momentum)(inertias, omega)
    momenta = jnp.concatenate([masses[:, None] * v, turn], axis=1)
    return momenta, jnp.sum(momenta * jnp.concatenate([v, omega], axis=1))


def _relative(masses, inertias, middle):
    """Twists less the rigid motion that has their momentum and angular momentum."""
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
    # Point masses in line have no inertia about it.
    floor = jnp.finfo(locked.dtype).eps * jnp.trace(locked)
    turn = solve_inertia(locked + floor * jnp.eye(3, dtype=locked.dtype), spin)
    v = v - drift[None] - jax.vmap(lambda arm: cross(turn, arm))(arms)
    return v, omega - jax.vmap(lambda R: to_body(R, turn))(R)
