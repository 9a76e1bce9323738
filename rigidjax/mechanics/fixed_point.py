"""A body with a fixed point, as a system of one body."""

import functools
from typing import Any

import jax
import numpy as np
from jax.core import eval_context

from ..bodies import Body, FixedPointBody
from ..forces import Torque
from ..forces.base import AbstractForce
from ..forces.potential import AttitudePotential
from ..joints.replacing import make_unchecked
from .declared.topology import find_topology
from .system import System


def system_of(system: System | FixedPointBody) -> System:
    """Return the system, or the system of a body with a fixed point.

    That is a ball joint to the ground without its translation. The fixed point takes the role of
    the centre of mass, at rest at the origin. Nothing accelerates it, so that the mass, which is
    not known, has no effect: it is one.
    """
    if isinstance(system, System):
        return system
    one, zero, orientation = _at_rest(system.inertia.dtype)
    body = make_unchecked(
        Body, name="body", mass=one, mass_law=None, inertia=system.inertia, position=zero,
        orientation=orientation, velocity=zero, angular_velocity=zero, shape=None,
    )  # fmt: skip
    return make_unchecked(
        System, bodies=(body,), joints=(), constraints=(),
        forces=_forces_on(system), frames=(),
        topology=_ONE_BODY, has_all_mass=True, tracked=(), translates=False,
        closing=(), sources={}, contacts=(), is_bound=False,
    )  # fmt: skip


def _forces_on(body: FixedPointBody) -> tuple[AbstractForce, ...]:
    """Return its potential and its moment, about the fixed point, as forces."""
    forces: list[AbstractForce] = []
    if body.potential is not None:
        forces.append(AttitudePotential("body", body.potential))
    if body.moment is not None:
        forces.append(make_unchecked(Torque, body="body", moment=body.moment, frame="body"))
    return tuple(forces)


_ONE_BODY = find_topology(["body"], ())


@functools.cache
def _at_rest(dtype: Any):
    """Return the number 1, three zeros and the identity quaternion as arrays outside any trace."""
    with eval_context():
        return tuple(jax.device_put(np.asarray(x, dtype)) for x in (1.0, np.zeros(3), np.eye(4)[0]))
