r"""What makes the work of a force over a step exact: Gonzalez' discrete derivative.

The potential's own force in the middle of a step misses the work that it should do by a defect of
third order, none if the potential is linear. A force along the motion of the bodies, in the metric
of kinetic energy, makes up for it.

The defect of a short step is far below the round-off of the potential at both ends, and is divided
by the length of the step. So it is not the difference of their values there but that of slopes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies.body import Body
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.inertia import inertia_tensor
from ...forces.base import AbstractForce, Kinematics, Wrench, body_index, to_space
from ...joints import AbstractJoint
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import cross, dot, skew


def defect(
    values: Sequence[Float[Array, ""]],
    slopes: Sequence[Float[Array, ""]],
    size: Float[Array, ""],
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
    bodies: Sequence[Body],
    joints: Sequence[AbstractJoint],
    force: AbstractForce,
    t: Any,
    h: Any,
    kinematics_of: Callable[[Any, Any], Kinematics],
    first: Kinematics,
    middle: Kinematics,
    last: Kinematics,
    chords: Sequence[Any],
) -> list[Wrench]:
    """What makes up for the defect of one force, along the motion of the bodies that it acts on.

    Between bodies, where nothing but their relative motion matters, along that alone: total
    momentum and angular momentum are not touched.

    **Arguments:** `bodies`, `joints` of the system; `force`; `t`, in the middle of the step, `h`,
    its length; `kinematics_of`, positions and rotations as forces see them; `first`, `middle`,
    `last`, poses in the step, with the mean twists; `chords`, of the increments of the bodies.
    **Returns:** a wrench for each body, moments in the frames of the middle.
    """

    def energy(positions, rotations):
        return force.potential_energy(t, bodies, kinematics_of(positions, rotations))

    V, W = list(middle.velocities), list(middle.angular_velocities)
    # All three at once: a third of what there is to compile.
    poses = jax.tree.map(
        lambda *leaves: jnp.stack(leaves),
        *((tuple(k.positions), tuple(k.rotations)) for k in (first, middle, last)),
    )
    values, gradients = jax.vmap(jax.value_and_grad(energy, argnums=(0, 1)))(*poses)
    slopes = _slopes(poses[1], gradients, [h * v for v in V], [h * w for w in W], chords)
    terms = jax.tree.map(
        lambda pose, gradient: jnp.sum(jnp.abs(pose * gradient).reshape(3, -1), axis=1),
        poses,
        gradients,
    )
    size = jnp.max(jnp.sum(jnp.stack(jax.tree.leaves(terms)), axis=0))
    missed = defect((values[0], values[2]), slopes, jax.lax.stop_gradient(size))
    rows, is_between_bodies = _members(bodies, joints, force)
    velocities, omegas = {i: V[i] for i in rows}, {i: W[i] for i in rows}
    momenta, twice = _momenta(bodies, velocities, omegas)
    if is_between_bodies:
        whole = twice
        momenta, twice = _momenta(bodies, *_relative(bodies, middle, velocities, omegas))
        # A relative motion that is next to nothing has no direction, and needs no correction.
        twice = jnp.where(twice > jnp.finfo(twice.dtype).eps ** 0.75 * whole, twice, 0.0)
    factor = -safe_divide(missed, h * twice)
    return [
        (factor * momenta[i][0], factor * momenta[i][1]) if i in momenta else (None, None)
        for i in range(len(bodies))
    ]


def _slopes(rotations, gradients, shifts, turns, chords):
    r"""Slopes of the energy at start, middle and end along a path that has the step in the middle.

    Positions move by `shifts`. Rotations turn about `turns`, $\psi$; by as much at the ends as a
    cubic path through both ends asks for, to fourth order: $3\gamma - 2 + |\psi|^2/8$ with the
    chord $\gamma$.
    """
    force, moment = gradients
    total = 0.0
    for gradient, shift in zip(force, shifts, strict=True):
        total = total + jnp.sum(gradient * shift, axis=1)
    for R, gradient, psi, chord in zip(rotations, moment, turns, chords, strict=True):
        turned = jax.vmap(lambda R, psi=psi: product(R, skew(psi)))(R)
        at_ends = 3.0 * chord - 2.0 + dot(psi, psi) / 8.0
        rates = jnp.stack([at_ends, jnp.ones_like(at_ends), at_ends])
        total = total + rates * jnp.sum(gradient * turned, axis=(1, 2))
    return jnp.unstack(total)


def _momenta(bodies, velocities, omegas):
    """Momenta of the bodies by number, and twice their kinetic energy."""
    momenta = {
        i: (bodies[i].mass * v, angular_momentum(bodies[i].inertia, omegas[i]))
        for i, v in velocities.items()
    }
    parts = [dot(p, velocities[i]) + dot(m, omegas[i]) for i, (p, m) in momenta.items()]
    return momenta, jnp.sum(jnp.stack(parts))


def _members(
    bodies: Sequence[Body], joints: Sequence[AbstractJoint], force: AbstractForce
) -> tuple[list[int], bool]:
    """Bodies that a force acts on (all where it names none), and whether it holds to none else."""
    names = list(force.body_names())
    for joint in joints:
        if joint.name in force.joint_names():
            names += [joint.parent, joint.child]
    own = [name for name in dict.fromkeys(names) if name != "ground"]
    rows = [body_index(bodies, name) for name in own]
    return rows or list(range(len(bodies))), len(rows) > 1 and "ground" not in names


def _relative(bodies, middle, velocities, omegas):
    """Twists less the rigid motion that has their momentum and angular momentum."""
    rows = list(velocities)
    mass = sum(bodies[i].mass for i in rows)
    center = sum(bodies[i].mass * middle.positions[i] for i in rows) / mass
    drift = sum(bodies[i].mass * velocities[i] for i in rows) / mass
    spin = jnp.zeros_like(velocities[rows[0]])
    locked = jnp.zeros((3, 3), spin.dtype)
    for i in rows:
        body, R, arm = bodies[i], middle.rotations[i], middle.positions[i] - center
        spin = spin + to_space(R, angular_momentum(body.inertia, omegas[i]))
        spin = spin + body.mass * cross(arm, velocities[i] - drift)
        locked = locked + product(product(R, inertia_tensor(body.inertia)), R.T)
        S = skew(arm)
        locked = locked - body.mass * product(S, S)
    # Point masses in line have no inertia about it.
    floor = jnp.finfo(locked.dtype).eps * jnp.trace(locked)
    turn = solve_inertia(locked + floor * jnp.eye(3, dtype=locked.dtype), spin)
    return (
        {i: velocities[i] - drift - cross(turn, middle.positions[i] - center) for i in rows},
        {i: omegas[i] - to_space(middle.rotations[i].T, turn) for i in rows},
    )
