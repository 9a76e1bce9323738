"""Pose and twist of one body, and updates of rotation coordinates."""

from functools import singledispatch
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Vector, Vector3
from ...formulations import Absolute, AbstractFormulation
from ...rotations.base import AbstractRotation
from ...rotations.directors import Directors
from ...rotations.euler_map import euler_map
from ...rotations.matrix import product, to_space
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import multiply


class BodyMotion(NamedTuple):
    r"""Pose and twist of one body.

    **Attributes:** `coordinates`, of the rotation; `omega`, angular velocity, rad/s, body
    components; `rates`, of the coordinates, `None` if they follow from `omega`; `position`, m, and
    `velocity`, m/s, of the centre of mass in space components, `None` for a body with a fixed
    point.
    """

    coordinates: Vector
    omega: Vector3
    rates: Vector | None = None
    position: Vector3 | None = None
    velocity: Vector3 | None = None


def decode_motion(model: AbstractFormulation, y: Vector) -> BodyMotion:
    """Return the motion of the only body from the unknowns of `NullSpace` or `Absolute`."""
    layout = model.layout
    ((x, a), (v, omega)), rates = (layout.poses(y), layout.twists(y)), None
    (x, a), (v, omega) = (x[0], a[0]), (v[0], omega[0])
    if isinstance(model, Absolute):
        omega, rates = angular_velocity_of(model.rotation, a, omega), omega
    return BodyMotion(a, omega, rates, x, v) if layout.translates else BodyMotion(a, omega, rates)


def encode_motion(model: AbstractFormulation, motion: BodyMotion) -> Vector:
    """Return the unknowns of `NullSpace` or `Absolute` from the motion of the only body."""
    rates = motion.omega
    if isinstance(model, Absolute):
        rates = motion.rates
        if rates is None:
            rates = model.rotation.rate(motion.coordinates, motion.omega)
    zero = jnp.zeros_like(motion.omega)
    x, v = (zero if part is None else part for part in (motion.position, motion.velocity))
    join = model.layout.join
    return jnp.concatenate([join(x[None], motion.coordinates[None]), join(v[None], rates[None])])


@singledispatch
def angular_velocity_of(rotation: AbstractRotation, a: Vector, a_dot: Vector) -> Vector3:
    r"""Return the angular velocity of the coordinate rates `a_dot`, rad/s, body components.

    The result is exact also where `a` violates the internal constraints. Otherwise a round-off
    error of the length of a quaternion would change the angular velocity by twice as much in every
    step.
    """
    return rotation.angular_velocity(a, a_dot)


@angular_velocity_of.register
def _angular_velocity_of_quaternion(
    rotation: Quaternion, a: Float[Array, "4"], a_dot: Float[Array, "4"]
) -> Vector3:
    p0, p1, p2, p3 = jnp.unstack(a)
    square = p0 * p0 + p1 * p1 + p2 * p2 + p3 * p3
    return rotation.angular_velocity(a, a_dot) / square


@singledispatch
def compose_rotation(rotation: AbstractRotation, a: Vector, p: Float[Array, "4"]) -> Vector:
    """Return the coordinates of the rotation `a` times `p`, a unit quaternion in body axes."""
    raise NotImplementedError(f"There is no update for `{type(rotation).__name__}`.")


@compose_rotation.register
def _compose_quaternion(
    rotation: Quaternion, a: Float[Array, "4"], p: Float[Array, "4"]
) -> Float[Array, "4"]:
    return multiply(a, p)


@compose_rotation.register
def _compose_directors(
    rotation: Directors, a: Float[Array, "9"], p: Float[Array, "4"]
) -> Float[Array, "9"]:
    R, Q = rotation.to_matrix(a), euler_map(p)
    return jnp.concatenate([to_space(R, Q[:, j]) for j in range(3)])


@singledispatch
def renormalize(rotation: AbstractRotation, a: Vector) -> Vector:
    """Remove the round-off error of the internal constraints from rotation coordinates."""
    raise NotImplementedError(f"There is no renormalisation of `{type(rotation).__name__}`.")


@renormalize.register
def _renormalize_quaternion(rotation: Quaternion, a: Float[Array, "4"]) -> Float[Array, "4"]:
    # The cosine of a small rotation rounds to 1, so that in a slow motion every step would lengthen
    # the quaternion through its sine. The correction is proportional to the squares of the
    # components: the round-off of a large component then does not change the small ones. A common
    # factor would make small librations lose energy.
    square = a * a
    excess = 0.5 * (1.0 - jnp.sum(square)) / jnp.sum(square * square)
    return a + excess * square * a


@renormalize.register
def _renormalize_directors(rotation: Directors, a: Float[Array, "9"]) -> Float[Array, "9"]:
    # One Newton step towards the nearest rotation matrix.
    R = rotation.to_matrix(a)
    R = 1.5 * R - 0.5 * product(R, product(R.T, R))
    return R.T.reshape(9)
