"""States from coordinates of joints, of any system."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..state import State
from ..system import System, joint_states
from ..system.placing import check_placeable
from .consistent import consistent_state

# The joints are brought to their coordinates in steps of at most so many radians or metres: from
# further away a loop may close on its other branch.
_STEP = 0.2


def jointed_state(
    system: System,
    coordinates: Mapping[str, ArrayLike],
    rates: Mapping[str, ArrayLike] | None = None,
) -> State:
    """The state in which joints have given coordinates and rates.

    In a tree on the ground the other joints stay as in the reference configuration. Otherwise they
    move as little as closing the loops needs, in steps from the reference configuration on, and
    free bodies with them.

    **Arguments:** `system`; `coordinates`, by names of joints, of each as many numbers as it has
    rates, lengths (m) before angles (rad), zero in the reference configuration; `rates`, the same,
    m/s and rad/s, zero for a joint with coordinates if left out.
    **Errors:** `ValueError` for an unknown joint, for another number of coordinates, for joints
    with several in a system that is no tree on the ground, and for loops that cannot be closed.
    """
    rates = rates or {}
    given = {
        name: _checked(system, name, coordinates.get(name, 0.0), rates.get(name, 0.0))
        for name in dict.fromkeys([*coordinates, *rates])
    }
    try:
        check_placeable(system)
    except ValueError:
        return _driven(system, given)
    ends = np.cumsum(system.rates_of_bodies)
    q, nu = np.zeros((2, ends[-1]))
    for body, j in enumerate(system.topology.joints):
        assert j is not None
        of_joint = slice(ends[body] - system.rates_of_bodies[body], ends[body])
        q[of_joint], nu[of_joint] = given.get(system.joints[j].name, (0.0, 0.0))
    return joint_states(system, jnp.asarray(q), jnp.asarray(nu))


def _checked(system, name, coordinates, rates) -> tuple[np.ndarray, np.ndarray]:
    joint = system.joints[system.joint_index(name)]
    count = joint.num_rates
    pair = [np.asarray(x, float) for x in (coordinates, rates)]
    if count == 0 or any(x.shape not in ((), (count,)) for x in pair):
        raise ValueError(
            f"The {type(joint).__name__} {name!r} has {count} coordinates, lengths before angles; "
            f"got {np.asarray(coordinates).tolist()} and the rates {np.asarray(rates).tolist()}."
        )
    return pair[0] * np.ones(count), pair[1] * np.ones(count)


class _Held(eqx.Module):
    """The motion of a joint that passes a coordinate at the time 0 with a rate."""

    coordinate: Float[Array, ""]
    rate: Float[Array, ""]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return self.coordinate + self.rate * t


def _driven(system: System, given: Mapping[str, Any]) -> State:
    """As `jointed_state`: joints are given motions, under which the others are closed."""
    for name in given:
        joint = system.joints[system.joint_index(name)]
        if "motion" not in {field.name for field in dataclasses.fields(joint)}:
            raise ValueError(
                f"In a system with loops or free bodies only hinges and sliders are placed by "
                f"their coordinates; the {type(joint).__name__} {name!r} is none. Give states."
            )
    farthest = max((abs(float(q[0])) for q, _ in given.values()), default=0.0)
    steps = max(1, int(np.ceil(farthest / _STEP)))
    state = system.reference_state()
    for part in np.arange(1, steps + 1) / steps:
        state = consistent_state(_held(system, given, part), state)
    return state


def _held(system, given, part) -> System:
    """The system without forces, with joints held at a part of their coordinates."""
    joints = []
    for joint in system.joints:
        if joint.name in given:
            q, rate = given[joint.name]
            motion = _Held(jnp.asarray(part * q[0]), jnp.asarray(rate[0]))
            joint = eqx.tree_at(lambda j: j.motion, joint, motion, is_leaf=lambda x: x is None)
        joints.append(joint)
    return System(system.bodies, joints)
