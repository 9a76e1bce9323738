"""Forces at points of bodies, and the points of bodies and of the ground that they act at."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..rotations.euler_map import euler_map
from ..rotations.matrix import cross, product, to_body, to_space
from .base import Kinematics, Wrench, body_index, symmetric_part

GROUND = -1


class End(eqx.Module):
    """A material point of a body or of the ground, space components.

    `arm`, from the centre of mass (of the ground: from the origin), m; `point`, its position, m;
    `velocity`, m/s; `omega`, angular velocity of the body, rad/s; `rotation`, of the body;
    `frame`, the rotation of the body since the reference configuration; `index`, -1 for the ground.
    """

    arm: Float[Array, "3"]
    point: Float[Array, "3"]
    velocity: Float[Array, "3"]
    omega: Float[Array, "3"]
    rotation: Float[Array, "3 3"]
    frame: Float[Array, "3 3"]
    index: int = eqx.field(static=True)


def end_of(
    name: str, point: Float[Array, "3"], bodies: Sequence[Body], kinematics: Kinematics
) -> End:
    """The point of the body called `name` that is at `point` in the reference configuration."""
    if name == "ground":
        one, zero = jnp.eye(3, dtype=point.dtype), jnp.zeros_like(point)
        return End(point, point, zero, zero, one, one, GROUND)
    i = body_index(bodies, name)
    reference = euler_map(bodies[i].orientation)
    R = kinematics.rotations[i]
    arm = to_space(R, to_body(reference, point - bodies[i].position))
    omega = to_space(R, kinematics.angular_velocities[i])
    velocity = kinematics.velocities[i] + cross(omega, arm)
    frame = product(R, reference.T)
    return End(arm, kinematics.positions[i] + arm, velocity, omega, R, frame, i)


class Load(eqx.Module):
    """A force at a point of a body and a moment, space components, N and N m.

    `arm`, from the centre of mass, m; `index`, -1 for the ground, where it is ignored.
    """

    force: Float[Array, "3"]
    arm: Float[Array, "3"]
    moment: Float[Array, "3"] | None
    rotation: Float[Array, "3 3"]
    index: int = eqx.field(static=True)


def wrenches_of(num_bodies: int, loads: Sequence[Load]) -> tuple[Wrench, ...]:
    """Wrenches of loads on different bodies."""
    out: list[Wrench] = [(None, None)] * num_bodies
    for load in loads:
        if load.index != GROUND:
            moment = cross(load.arm, load.force)
            moment = moment if load.moment is None else moment + load.moment
            out[load.index] = load.force, to_body(load.rotation, moment)
    return tuple(out)


def virials_of(num_bodies: int, loads: Sequence[Load]) -> tuple[Float[Array, "3 3"] | None, ...]:
    """Virials of loads on different bodies; moments have none."""
    out: list[Float[Array, "3 3"] | None] = [None] * num_bodies
    for load in loads:
        if load.index != GROUND:
            force, arm = to_body(load.rotation, load.force), to_body(load.rotation, load.arm)
            out[load.index] = symmetric_part(jnp.outer(force, arm))
    return tuple(out)


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
