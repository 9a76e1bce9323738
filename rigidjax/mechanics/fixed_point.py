"""A body with a fixed point, as a system of one body."""

import functools

import jax
import numpy as np
from jax.core import eval_context

from ..bodies import Body, FixedPointBody
from ..forces import Torque
from ..forces.attitude_potential import AttitudePotential
from ..forces.base import AbstractForce
from ..joints.replacing import make_unchecked
from .system import System
from .topology import find_topology


def system_of(system: System | FixedPointBody) -> System:
    """The system, or that of a body with a fixed point: a ball joint to the ground with its
    translation left out.

    The fixed point takes the place of the centre of mass, at rest at the origin. Nothing pulls it,
    so that the mass, of which nothing is known, is of no effect: it is one.
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
    )  # fmt: skip


def _forces_on(body: FixedPointBody) -> tuple[AbstractForce, ...]:
    """Its potential and its moment, about the fixed point."""
    forces: list[AbstractForce] = []
    if body.potential is not None:
        forces.append(AttitudePotential("body", body.potential))
    if body.moment is not None:
        forces.append(make_unchecked(Torque, body="body", moment=body.moment, frame="body"))
    return tuple(forces)


_ONE_BODY = find_topology(["body"], ())


@functools.cache
def _at_rest(dtype):
    """One, a vector of zeros, and the quaternion of no rotation: never a part of a trace."""
    with eval_context():
        return tuple(jax.device_put(np.asarray(x, dtype)) for x in (1.0, np.zeros(3), np.eye(4)[0]))
