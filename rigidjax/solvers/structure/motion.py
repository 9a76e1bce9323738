"""The motion of free bodies at one time, and how rotations are updated."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...forces.base import to_space
from ...formulations import Absolute, AbstractFormulation
from ...rotations.base import AbstractRotation
from ...rotations.directors import Directors
from ...rotations.euler_map import euler_map
from ...rotations.matrix import product
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import multiply


class Motion(NamedTuple):
    r"""Poses and twists of all bodies, one entry for each body.

    `positions`, m, and `velocities`, m/s, space components, empty if the bodies do not translate;
    `coordinates` of the rotations; `omegas`, rad/s, body components; `rates` of the coordinates,
    `None` for those that belong to `omegas`.
    """

    positions: Sequence[Float[Array, "3"]]
    coordinates: Sequence[Float[Array, " n"]]
    velocities: Sequence[Float[Array, "3"]]
    omegas: Sequence[Float[Array, "3"]]
    rates: Sequence[Float[Array, " n"]] | None = None


def motion_of(model: AbstractFormulation, y: Any) -> Motion:
    """The motion that unknowns of `NullSpace` or `Absolute` describe, without joints."""
    layout = model.layout
    bodies = range(layout.num_bodies)
    coordinates = [layout.coordinates(y, i) for i in bodies]
    omegas, rates = [layout.rates(y, i) for i in bodies], None
    if isinstance(model, Absolute):
        rates = omegas
        omegas = [omega_of(model.rotation, a, v) for a, v in zip(coordinates, rates, strict=True)]
    moving = bodies if layout.translates else ()
    return Motion(
        [layout.position(y, i) for i in moving],
        coordinates,
        [layout.velocity(y, i) for i in moving],
        omegas,
        rates,
    )


def unknowns_of(model: AbstractFormulation, motion: Motion) -> Any:
    """The unknowns of a motion."""
    rates = motion.omegas
    if isinstance(model, Absolute):
        rates = motion.rates
        if rates is None:
            rates = [
                model.rotation.rate(a, w)
                for a, w in zip(motion.coordinates, motion.omegas, strict=True)
            ]
    return model.layout.join(motion.positions, motion.coordinates, motion.velocities, rates)


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
