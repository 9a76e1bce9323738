"""Trees for regression: bodies in given frames, without the joint constants to be found."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...bodies import MassProperties
from ...joints import Friction
from ...joints.replacing import replace_fields
from ...mechanics import System
from ...rotations.euler_map import euler_map

# Fields of joints that the torque terms of `joint_data` stand for.
_FIELDS = {"viscous": "damping", "coulomb": "friction", "rotor": "armature"}


def describe_in_frames(
    system: System, frames: Mapping[str, Any]
) -> tuple[System, dict[str, MassProperties]]:
    """Return a tree whose bodies have their inertial parameters about given origins.

    A body of a model file has its origin at its nominal centre of mass; its parameters mean more
    about the origin of its link. The axes of the bodies stay.

    **Arguments:** `system`; `frames` by the name of the body, such as `Model.frames`.
    **Returns:** the system with moved origins, and the mass properties of its bodies there.
    """
    bodies, nominal, points = [], {}, {}
    for body in system.bodies:
        frame = frames.get(body.name)
        point = np.zeros(3) if frame is None else np.asarray(frame.point)
        points[body.name] = point
        nominal[body.name] = MassProperties(body.mass, -point, body.inertia, physical=False)
        arm = np.asarray(euler_map(body.orientation)) @ point
        bodies.append(eqx.tree_at(lambda b: b.position, body, body.position + arm))
    moved = [
        eqx.tree_at(lambda f: f.point, frame, frame.point - points[frame.body])
        for frame in system.frames
    ]
    return replace_fields(system, bodies=tuple(bodies), frames=tuple(moved)), nominal


def without_constants(system: System, terms: Sequence[str]) -> System:
    """Return the tree without the constants of its joints that are to be found, by term."""
    fields = [_FIELDS[term] for term in terms if term in _FIELDS]

    def remove(joint):
        return replace_fields(joint, **{f: None for f in fields if getattr(joint, f) is not None})

    return replace_fields(system, joints=tuple(map(remove, system.joints)))


def with_constants(system: System, values: Mapping[str, float], velocity: float) -> System:
    """Return the tree with constants of its joints, the inverse of `without_constants`.

    **Arguments:** `values` by label, such as `"elbow.viscous"`; others are left alone. `velocity`,
    m/s or rad/s, at which Coulomb friction is smooth.
    """
    joints = []
    for joint in system.joints:
        fields = {}
        for term, field in _FIELDS.items():
            value = values.get(f"{joint.name}.{term}")
            if value is not None:
                constant = np.array([value])
                zero, smooth = np.zeros(1), np.full(1, velocity)
                law = Friction(constant, zero, velocity=smooth)
                fields[field] = law if term == "coulomb" else constant
        joints.append(replace_fields(joint, **jax.tree.map(jnp.asarray, fields)))
    return replace_fields(system, joints=tuple(joints))
