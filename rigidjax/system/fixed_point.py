"""A body with a fixed point, as a system of one body."""

import functools

import jax.numpy as jnp
import numpy as np
from jax.core import eval_context

from ..bodies.body import Body
from ..bodies.fixed_point import FixedPointBody
from ..forces.base import AbstractForce, symmetric_part
from ..joints.base import unchecked
from .system import System
from .topology import find_topology


class FixedPointLoads(AbstractForce):
    """Potential and moment of a body with a fixed point, about that point."""

    body: FixedPointBody

    def body_names(self):
        return ("body",)

    def wrenches(self, t, bodies, kinematics):
        R, omega = kinematics.rotations[0], kinematics.angular_velocities[0]
        return ((None, self.body.applied_moment(t, R, omega)),)

    def virials(self, t, bodies, kinematics):
        if self.body.potential is None:
            return (None,)
        R = kinematics.rotations[0]
        return (symmetric_part(-R.T @ self.body.potential.gradient(R)),)

    def potential_energy(self, t, bodies, kinematics):
        return jnp.asarray(self.body.potential_energy(kinematics.rotations[0]))


def system_of(system: System | FixedPointBody) -> System:
    """The system, or that of a body with a fixed point: a ball joint to the ground with its
    translation left out.

    The fixed point takes the place of the centre of mass, at rest at the origin. Nothing pulls it,
    so that the mass, of which nothing is known, is of no effect: it is one.
    """
    if isinstance(system, System):
        return system
    one, zero, orientation = _at_rest(system.inertia.dtype)
    body = unchecked(
        Body, name="body", mass=one, inertia=system.inertia, position=zero,
        orientation=orientation, velocity=zero, angular_velocity=zero, shape=None,
    )  # fmt: skip
    return unchecked(
        System, bodies=(body,), joints=(), constraints=(),
        forces=() if system.is_free else (FixedPointLoads(system),), frames=(),
        topology=_ONE_BODY, has_all_mass=True, tracked=(), translates=False,
    )  # fmt: skip


_ONE_BODY = find_topology(["body"], ())


@functools.cache
def _at_rest(dtype):
    """One, a vector of zeros, and the quaternion of no rotation: never a part of a trace."""
    with eval_context():
        return tuple(jnp.asarray(x, dtype) for x in (1.0, np.zeros(3), np.eye(4)[0]))
