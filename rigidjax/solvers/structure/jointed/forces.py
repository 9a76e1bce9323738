"""Forces of a step that change the energy by exactly what the potential changes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....rotations.matrix import product
from ....rotations.so3 import skew
from ....system.attachment import Poses
from ....system.jointed import JointedMechanics, Twists
from .phase import as_twists, momenta


def potential_energy(mechanics: JointedMechanics, t, poses: Poses) -> Float[Array, ""]:
    """Potential energy in a pose, J."""
    L = mechanics.num_bodies
    rest = jnp.zeros((L, 3), poses.positions.dtype)
    kinematics = mechanics.kinematics(poses, mechanics.place(poses), Twists(rest, rest))
    return jnp.asarray(mechanics.potential_energy(t, kinematics))


def applied(mechanics: JointedMechanics, t, poses: Poses, twists) -> Float[Array, "L 6"]:
    """Applied wrenches: forces in space, moments in body components."""
    at = mechanics.place(poses)
    return mechanics.applied(t, mechanics.kinematics(poses, at, as_twists(twists)))


def conserving_wrenches(
    mechanics: JointedMechanics, t, start: Poses, middle: Poses, end: Poses, change, h
) -> Float[Array, "L 6"]:
    r"""Wrenches at the mid-point, corrected along the motion so that their work is right.

    The work of the conservative part over the step is $-(V_1 - V_0)$ exactly, whatever $V$
    is: Gonzalez' discrete gradient in the metric of kinetic energy. Other forces are those of the
    mid-point. Nothing is corrected for uniform gravity, which needs none.

    **Arguments:** `change`, displacements and rotations (body axes of the middle) of the step,
    (L, 6).
    """
    forces = applied(mechanics, t, middle, change / h)
    if all(force.is_linear for force in mechanics.system.forces):
        return forces
    before, after = (potential_energy(mechanics, t, poses) for poses in (start, end))

    def moved(poses):
        return potential_energy(mechanics, t, poses)

    R = middle.rotations
    turn = jnp.concatenate([change[:, 3:], jnp.zeros((1, 3), R.dtype)])
    shift = jnp.concatenate([change[:, :3], jnp.zeros((1, 3), R.dtype)])
    rate = Poses(
        shift,
        jax.vmap(lambda R, w: product(R, skew(w)))(R, turn),
        jnp.zeros_like(middle.turns),
    )
    value, slope = jax.jvp(moved, (middle,), (rate,))
    missing = after - before - slope
    along = momenta(mechanics, change)
    square = jnp.sum(along * change)
    # Below round-off there is nothing to correct, and no direction to do it in.
    eps = jnp.finfo(square.dtype).eps
    noise = 8 * eps * (jnp.abs(before) + jnp.abs(after) + jnp.abs(value))
    needed = jnp.abs(missing) > noise
    factor = jnp.where(needed, missing / jnp.where(needed, square, 1.0), 0.0)
    return forces - factor * along
