"""The motion of one body at one time, and how rotations are updated."""

from functools import singledispatch
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Vector
from ...formulations import Absolute, AbstractFormulation
from ...rotations.base import AbstractRotation
from ...rotations.directors import Directors
from ...rotations.euler_map import euler_map
from ...rotations.matrix import product, to_space
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import multiply


class BodyMotion(NamedTuple):
    r"""Pose and twist of one body.

    `coordinates` of its rotation; `omega`, rad/s, body components; `rates` of the coordinates,
    `None` for those that belong to `omega`; `position`, m, and `velocity`, m/s, space components,
    `None` for a body with a fixed point.
    """

    coordinates: Float[Array, " n"]
    omega: Float[Array, "3"]
    rates: Float[Array, " n"] | None = None
    position: Float[Array, "3"] | None = None
    velocity: Float[Array, "3"] | None = None


def motion_of(model: AbstractFormulation, y: Vector) -> BodyMotion:
    """The motion of the one body that unknowns of `NullSpace` or `Absolute` describe."""
    layout = model.layout
    ((x, a), (v, omega)), rates = (layout.poses(y), layout.twists(y)), None
    (x, a), (v, omega) = (x[0], a[0]), (v[0], omega[0])
    if isinstance(model, Absolute):
        omega, rates = omega_of(model.rotation, a, omega), omega
    return BodyMotion(a, omega, rates, x, v) if layout.translates else BodyMotion(a, omega, rates)


def unknowns_of(model: AbstractFormulation, motion: BodyMotion) -> Vector:
    """The unknowns of a motion."""
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
def omega_of(
    rotation: AbstractRotation, a: Float[Array, " n"], a_dot: Float[Array, " n"]
) -> Float[Array, "3"]:
    r"""The angular velocity whose rate of the coordinates `a_dot` is, also off the constraints.

    Without that a length of a quaternion that is off by round-off would, in every step, change the
    angular velocity by twice as much.
    """
    return rotation.angular_velocity(a, a_dot)


@omega_of.register
def _omega_of_quaternion(rotation: Quaternion, a, a_dot):
    p0, p1, p2, p3 = jnp.unstack(a)
    square = p0 * p0 + p1 * p1 + p2 * p2 + p3 * p3
    return rotation.angular_velocity(a, a_dot) / square


@singledispatch
def turned(
    rotation: AbstractRotation, a: Float[Array, " n"], p: Float[Array, "4"]
) -> Float[Array, " n"]:
    """Coordinates of the rotation `a` followed by `p`, a unit quaternion in body components."""
    raise NotImplementedError(f"There is no update for `{type(rotation).__name__}`.")


@turned.register
def _turned_quaternion(rotation: Quaternion, a, p):
    return multiply(a, p)


@turned.register
def _turned_directors(rotation: Directors, a, p):
    R, Q = rotation.to_matrix(a), euler_map(p)
    return jnp.concatenate([to_space(R, Q[:, j]) for j in range(3)])


@singledispatch
def polished(rotation: AbstractRotation, a: Float[Array, " n"]) -> Float[Array, " n"]:
    """Coordinates of a rotation without what round-off has added to their constraints."""
    raise NotImplementedError(f"There is no polish for `{type(rotation).__name__}`.")


@polished.register
def _polished_quaternion(rotation: Quaternion, a):
    # The cosine of a small rotation is 1 to round-off: without this a slow motion makes the
    # quaternion longer by as much as its sine in every step. Components are corrected by their
    # squares, so that the round-off of the large ones does not change small ones: by the same
    # factor for all, librations about the reference lose 1e-11 of their energy in a million steps.
    square = a * a
    excess = 0.5 * (1.0 - jnp.sum(square)) / jnp.sum(square * square)
    return a + excess * square * a


@polished.register
def _polished_directors(rotation: Directors, a):
    # One step of Newton's method towards the nearest rotation.
    R = rotation.to_matrix(a)
    R = 1.5 * R - 0.5 * product(R, product(R.T, R))
    return R.T.reshape(9)
