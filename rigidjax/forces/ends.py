"""Points of bodies and of the ground between which forces act."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..joints.arguments import check_body_names
from ..rotations.matrix import product, to_body, to_space
from ..small_arrays import cross, vmap_rows
from .base import Bodies, Kinematics


class Ends(eqx.Module):
    """Material points of bodies and of the ground, one row per body.

    `arms`, from the centres of mass (for the ground: from the origin), m, body components. In space
    components: `points`, their positions, m; `velocities`, m/s; `omegas`, angular velocities of the
    bodies, rad/s; `frames`, rotations of the bodies relative to the reference configuration.
    """

    arms: Float[Array, "B 3"]
    points: Float[Array, "B 3"]
    velocities: Float[Array, "B 3"]
    omegas: Float[Array, "B 3"]
    frames: Float[Array, "B 3 3"]


def ends_at(points: Float[Array, "B 3"], bodies: Bodies, kinematics: Kinematics) -> Ends:
    """Return the material points at `points` in the reference configuration, space, m."""

    def end(point, position, reference, x, R, v, omega):
        arm, omega = to_body(reference, point - position), to_space(R, omega)
        lever = to_space(R, arm)
        return Ends(arm, x + lever, v + cross(omega, lever), omega, product(R, reference.T))

    rows = (
        points, bodies.positions, bodies.rotations, kinematics.positions, kinematics.rotations,
        kinematics.velocities, kinematics.angular_velocities,
    )  # fmt: skip
    if not any(bodies.is_ground):
        return vmap_rows(end, *rows)
    zero: Any = np.zeros(3, points.dtype)
    identity: Any = np.eye(3, dtype=points.dtype)
    ends = [
        Ends(points[k], points[k], zero, zero, identity)
        if is_ground
        else end(*(values[k] for values in rows))
        for k, is_ground in enumerate(bodies.is_ground)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *ends)


def check_ends(kind: str, a: str, b: str) -> tuple[str, str]:
    """Return the names of the two bodies of a force; raise for other types or equal names."""
    check_body_names(kind, a=a, b=b)
    if a == b:
        raise ValueError(f"`{kind}` acts between two different bodies; got {a!r} as a and b.")
    return a, b
