"""Multipliers of the joints and what the joints exert."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..rotations.matrix import to_space
from .constraints import constraints, flat
from .inverses import pseudo_inverse
from .jointed import JointedMechanics, Twists


class Reaction(eqx.Module):
    """What a joint exerts on its child, space components.

    `force`, (3,) N; `moment`, (3,) N m, about the joint point (of the child); `drive`, the force
    (N) or moment (N m) along the axis of a prescribed motion, included in them, `None` without one.
    With redundant constraints it is the solution of least norm of the multipliers.
    """

    force: Float[Array, "3"]
    moment: Float[Array, "3"]
    drive: Float[Array, ""] | None


def multipliers(mechanics, t, poses, places, twists: Twists, accelerations: Twists):
    r"""Multipliers of all joints, $G^T\lambda = f - M\dot w$, of least norm."""
    kinematics = mechanics.kinematics(poses, places, twists)
    balance = mechanics.free_forces(t, kinematics) - mechanics.momenta(
        accelerations.linear, accelerations.angular
    )
    if mechanics.system.topology.loops:
        G = flat(mechanics.constraint_jacobian(t, places))
        return pseudo_inverse(G.T) @ balance.ravel()
    # Any metric will do: the solution is unique.
    unit = jnp.broadcast_to(jnp.eye(3, dtype=balance.dtype), (mechanics.num_bodies, 3, 3))
    joints = constraints(mechanics, t, places, unit, jnp.ones_like(mechanics.masses))
    return joints.solve(joints.apply(balance))


def reactions(mechanics: JointedMechanics, t, places, lam) -> dict[str, Reaction]:
    """Reaction of every joint on its child at the joint point, from the multipliers."""
    out: dict[int, Any] = {}
    start = 0
    for group, place in zip(mechanics.groups, places, strict=True):
        n, m = len(group.indices), group.joint.num_constraints
        rows = lam[start : start + n * m].reshape(n, m)
        start += n * m

        def one(joint, place, row):
            G = joint.constraint_jacobian(place.relative, t)
            wrench = -(G.T @ row)
            force, moment = to_space(place.frame, wrench[:3]), to_space(place.frame, wrench[3:])
            return Reaction(force, moment, None), wrench

        values = group.over(one, place, rows)
        driven = getattr(group.joint, "motion", None) is not None
        axis = 2 if group.joint.num_translations else 5
        for k, j in enumerate(group.indices):
            reaction, wrench = jax.tree.map(lambda leaf, k=k: leaf[k], values)
            out[j] = Reaction(reaction.force, reaction.moment, wrench[axis] if driven else None)
    return {mechanics.system.joints[j].name: out[j] for j in sorted(out)}
