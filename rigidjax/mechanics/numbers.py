"""The numbers of a system, those of bodies, joints and forces of a kind in one array each."""

import weakref
from collections.abc import Sequence

import equinox as eqx
import jax
from jax.core import eval_context
from jaxtyping import Array, Float

from ..bodies.inertia import inertia_tensor
from ..checks import is_traced
from ..forces.base import AbstractForce
from ..joints.replacing import replace_fields
from ..native.ops import stack_rows
from ..signals.signal import signals_of
from ..state import State
from .attachment import JointGroup, group_joints
from .force_groups import ForceGroup, group_forces
from .system import System


class Numbers(eqx.Module):
    """Masses, kg, inertias, kg m^2, and reference poses and twists of all bodies; joints and forces
    by kind, not yet attached to the bodies."""

    masses: Float[Array, " L"]
    inertias: Float[Array, "L 3"] | Float[Array, "L 3 3"]
    reference: State
    joints: list[JointGroup]
    forces: list[ForceGroup]


def numbers_of(system: System) -> Numbers:
    """Those of a system, copied on the host where they are known."""
    inertias = [body.inertia for body in system.bodies]
    if len({inertia.ndim for inertia in inertias}) > 1:
        inertias = [inertia_tensor(inertia) for inertia in inertias]
    rows = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": system.num_bodies}
    rows |= {frame.name: rows[frame.body] for frame in system.frames}
    frames = {frame.name for frame in system.frames}
    joints = group_joints(system.joints, system.topology.loops, rows, frames)
    return Numbers(
        stack_rows([body.mass for body in system.bodies]),
        stack_rows(inertias),
        system.reference_state(),
        joints,
        grouped_forces(system, system.all_forces, joints),
    )


def grouped_forces(
    system: System, forces: Sequence[AbstractForce], groups: Sequence[JointGroup]
) -> list[ForceGroup]:
    """Forces on the bodies of a system, those of a kind together; `groups`, its joints."""
    names = [body.name for body in system.bodies]
    kinds = {system.joints[j].name: g for g, group in enumerate(groups) for j in group.indices}
    return group_forces(forces, names, system.frames, system.joined_bodies, kinds)


def gathered(system: System) -> tuple[System, Numbers | None]:
    """The system without its forces and the numbers of its bodies, and these by kind.

    What is handed to a compiled function then does not grow with their number. Made once for a
    system whose numbers are known. One with signals, which are told apart, or with
    masses that change is left as it is.
    """
    kept = _KEPT.get(id(system))
    if kept is not None:
        return kept
    if is_traced(system):
        return _gathered(system)
    with eval_context():  # also where a function under trace closes over it
        kept = _KEPT[id(system)] = _gathered(system)
    weakref.finalize(system, _KEPT.pop, id(system)).atexit = False
    return kept


_KEPT: dict[int, tuple[System, Numbers | None]] = {}


def _gathered(system):
    if signals_of(system) or system.has_changing_mass:
        return system, None
    bodies = jax.tree.map(lambda leaf: None, system.bodies)
    followed = {name for force in system.forces for name in force.joint_names()}
    tracked = tuple(sorted({*system.tracked, *followed}))
    return replace_fields(system, bodies=bodies, forces=(), tracked=tracked), numbers_of(system)
