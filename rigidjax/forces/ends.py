"""Points of bodies and of the ground between which forces act."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..rotations.matrix import cross, product, to_body, to_space
from .base import Bodies, Kinematics


class Ends(eqx.Module):
    """Material points of bodies and of the ground, space components, one row for each body.

    `arms`, from the centres of mass (of the ground: from the origin), m; `points`, their positions,
    m; `velocities`, m/s; `omegas`, angular velocities of the bodies, rad/s; `frames`, rotations of
    the bodies since the reference configuration.
    """

    arms: Float[Array, "B 3"]
    points: Float[Array, "B 3"]
    velocities: Float[Array, "B 3"]
    omegas: Float[Array, "B 3"]
    frames: Float[Array, "B 3 3"]


def ends_at(points: Float[Array, "B 3"], bodies: Bodies, kinematics: Kinematics) -> Ends:
    """What is at these points, space components, in the reference configuration."""

    def end(k):
        if bodies.is_ground[k]:
            zero, one = np.zeros(3, points.dtype), np.eye(3, dtype=points.dtype)
            return Ends(points[k], points[k], zero, zero, one)
        R, reference = kinematics.rotations[k], bodies.rotations[k]
        arm = to_space(R, to_body(reference, points[k] - bodies.positions[k]))
        omega = to_space(R, kinematics.angular_velocities[k])
        velocity = kinematics.velocities[k] + cross(omega, arm)
        frame = product(R, reference.T)
        return Ends(arm, kinematics.positions[k] + arm, velocity, omega, frame)

    ends = [end(k) for k in range(len(points))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *ends)


def check_ends(kind: str, a: str, b: str) -> tuple[str, str]:
    """Names of the two bodies of a force; errors for what cannot be its ends."""
    for argument, value in (("a", a), ("b", b)):
        if not isinstance(value, str):
            raise TypeError(
                f'`{kind}({argument}=...)` takes the name of a body or "ground"; got {value!r}.'
            )
    if a == b:
        raise ValueError(f"`{kind}` acts between two different bodies; got {a!r} as a and b.")
    return a, b
