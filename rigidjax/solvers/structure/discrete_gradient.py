r"""What makes the work of a force over a step exact: Gonzalez' discrete derivative.

The potential's own force in the middle of a step misses the work that it should do by a defect of
third order, none if the potential is linear. A force along the motion of the bodies, in the metric
of kinetic energy, makes up for it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...bodies.body import Body
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.inertia import inertia_tensor
from ...forces.base import AbstractForce, Kinematics, Wrench, body_index, to_space
from ...joints import AbstractJoint
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import cross, dot, skew


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
) -> list[Wrench]:
    """What makes up for the defect of one force, along the motion of the bodies that it acts on.

    Between bodies, where nothing but their relative motion matters, along that alone: total
    momentum and angular momentum are not touched.

    **Arguments:** `bodies`, `joints` of the system; `force`; `t`, in the middle of the step, `h`,
    its length; `kinematics_of`, positions and rotations as forces see them; `first`, `middle`,
    `last`, poses in the step, with the mean twists.
    **Returns:** a wrench for each body, moments in the frames of the middle.
    """

    def energy(positions, rotations):
        return force.potential_energy(t, bodies, kinematics_of(positions, rotations))

    V, W = list(middle.velocities), list(middle.angular_velocities)
    steps = (
        tuple(h * v for v in V),
        tuple(product(R, skew(h * w)) for R, w in zip(middle.rotations, W, strict=True)),
    )
    here = tuple(middle.positions), tuple(middle.rotations)
    value, slope = jax.jvp(energy, here, steps)
    # Both ends at once: half of what there is to compile.
    ends = jax.tree.map(
        lambda a, b: jnp.stack([a, b]),
        (tuple(first.positions), tuple(first.rotations)),
        (tuple(last.positions), tuple(last.rotations)),
    )
    start, end = jnp.unstack(jax.vmap(energy)(*ends))
    defect = end - start - slope
    # Below round-off there is nothing to make up for.
    noise = 8 * jnp.finfo(defect.dtype).eps * (jnp.abs(start) + jnp.abs(end) + jnp.abs(value))
    defect = jnp.where(jnp.abs(defect) > noise, defect, 0.0)
    rows, is_between_bodies = _members(bodies, joints, force)
    velocities, omegas = {i: V[i] for i in rows}, {i: W[i] for i in rows}
    if is_between_bodies:
        velocities, omegas = _relative(bodies, middle, velocities, omegas)
    momenta = {
        i: (bodies[i].mass * velocities[i], angular_momentum(bodies[i].inertia, omegas[i]))
        for i in rows
    }
    twice = sum(dot(momenta[i][0], velocities[i]) + dot(momenta[i][1], omegas[i]) for i in rows)
    factor = -safe_divide(defect, h * twice)
    return [
        (factor * momenta[i][0], factor * momenta[i][1]) if i in momenta else (None, None)
        for i in range(len(bodies))
    ]


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
