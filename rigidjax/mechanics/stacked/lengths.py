"""Characteristic lengths, by which lengths are scaled so that no decision depends on units."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...native.ops import short_sum
from .joints import JointGroup


def characteristic_lengths(
    groups: Sequence[JointGroup], masses: Float[Array, " L"], inertias: Array
) -> Float[Array, " L"]:
    r"""Return the size of the mechanism that each body belongs to, (L,) m, without derivatives.

    It is the largest distance of a joint point from the centre of mass of its body, length of a
    `Distance`, and radius $\sqrt{\mathrm{tr}\,I / 2m}$ within which a body has its mass, over all
    bodies that joints connect with it other than through the ground; 1 where there is none of
    these. A motion by a length is as large as a motion by an angle times this length.

    **Arguments:** `groups`, all joints; `masses`, kg; `inertias`, (L, 3) or (L, 3, 3), kg m^2.
    """
    count = len(masses)
    traces = jnp.trace(jax.vmap(inertia_tensor)(inertias), axis1=1, axis2=2)
    radii = 0.5 * jnp.maximum(traces, 0.0) / jnp.where(masses > 0, masses, 1.0)
    squares = jnp.pad(jnp.where(masses > 0, radii, 0.0), (0, 1))
    for group in groups:
        if group.joint.at_centre:
            continue
        first, second = group.map(lambda joint: joint.points())
        apart = short_sum(second - first, second - first, axis=1)
        for bodies, points in (
            (group.parents, group.parent_point),
            (group.children, group.child_point),
        ):
            arms = short_sum(points, points, axis=1)
            squares = squares.at[np.array(bodies)].max(jnp.maximum(arms, apart))
    connected = _label_mechanisms(groups, count)
    largest = jnp.zeros(count, squares.dtype).at[connected].max(squares[:count])[connected]
    return jax.lax.stop_gradient(jnp.where(largest > 0, jnp.sqrt(largest), 1.0))


def _label_mechanisms(groups: Sequence[JointGroup], count: int) -> np.ndarray:
    """Return a label for each body, equal for all that joints connect without the ground, (L,)."""
    names = np.arange(count + 1)
    for group in groups:
        for parent, child in zip(group.parents, group.children, strict=True):
            if count not in (parent, child):
                names[names == names[child]] = names[parent]
    return names[:count]
