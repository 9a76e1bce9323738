"""Arrays of a system: the parameters of bodies, joints and forces, one array per kind."""

import weakref
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...checks import is_traced
from ...forces.base import AbstractForce, Bodies
from ...joints.replacing import replace_fields
from ...persistent_jit import persistent_jit
from ...rotations.euler_map import euler_map
from ...signals.signal import signals_of
from ...small_arrays import short_sum, stack_rows
from ...state import State
from ..declared.system import AbstractSystem
from .forces import ForceGroup, group_forces
from .joints import JointGroup, group_joints, poses_with_ground


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


class StackedSystem(eqx.Module):
    """Parameters of a system as they are declared, stacked.

    `masses`, kg; `inertias`, kg m^2; `reference`, reference poses and twists of all bodies; joints
    and forces by kind, not yet attached to the bodies.
    """

    masses: Float[Array, " L"]
    inertias: Float[Array, "L 3"] | Float[Array, "L 3 3"]
    reference: State
    joints: list[JointGroup]
    forces: list[ForceGroup]


class PreparedSystem(eqx.Module):
    """Arrays that algorithms work on, with joints and forces attached to the bodies.

    The generalised velocities are those of the tree joints, body by body: a body that is attached
    to a joint has its joint rates, a free body the velocity of its centre of mass and its angular
    velocity. `reference`, the bodies in the reference configuration; `lengths`, (L,) m, the size of
    the mechanism that each body belongs to (see `lengths.characteristic_lengths`).

    **Arguments:** `system`; `arrays`, its parameters if they are stacked already.
    """

    system: Any  # an `AbstractSystem`; `None` while a model holds it
    groups: list[JointGroup]
    masses: Float[Array, " L"]
    inertias: Float[Array, "L 3"] | Float[Array, "L 3 3"]
    reference: Bodies
    lengths: Float[Array, " L"]
    forces: list[ForceGroup]

    def __init__(self, system: AbstractSystem, arrays: StackedSystem | None = None):
        arrays = stack_system(system) if arrays is None else arrays
        self.system = system
        self.masses, self.inertias = arrays.masses, arrays.inertias
        x, R = arrays.reference.position, jax.vmap(euler_map)(arrays.reference.orientation)
        self.reference = Bodies(self.masses, x, R, (False,) * len(x))
        poses = poses_with_ground(x, R, len(system.joints))
        configuration = poses.positions, poses.rotations, system.frames
        self.groups = [group.attach(*configuration) for group in arrays.joints]
        self.lengths = characteristic_lengths(self.groups, self.masses, self.inertias)
        self.forces = self._attach_forces(arrays.forces)

    def stack_forces(self, forces: Sequence[AbstractForce]) -> list[ForceGroup]:
        """Stack and attach forces that act on these bodies beside those of the system."""
        return self._attach_forces(_stack_forces(self.system, forces, self.groups))

    def _attach_forces(self, groups: list[ForceGroup]) -> list[ForceGroup]:
        return [group.attach(self.reference, self.system.frames) for group in groups]

    @property
    def num_bodies(self) -> int:
        """Number of bodies L."""
        return len(self.system.bodies)

    @property
    def is_free(self) -> bool:
        """Whether nothing is imposed on the motion of any body."""
        return not (self.system.joints or self.system.constraints)

    @property
    def num_rates(self) -> int:
        """Number of generalised velocities of the trees."""
        return sum(self.system.rates_of_bodies)

    @property
    def num_constraints(self) -> int:
        """Number of constraints of joints, and of constraints that are no joint."""
        return self.system.num_constraints

    @property
    def num_velocity_constraints(self) -> int:
        """Number of constraints on velocities alone, which are the last."""
        return sum(c.num_constraints for c in self.system.velocity_constraints)

    @property
    def num_tree_constraints(self) -> int:
        """Number of constraints of the tree joints, which are the first."""
        return sum(
            len(group.indices) * group.joint.num_constraints
            for group in self.groups
            if not group.closes_loops
        )

    @property
    def holonomic(self) -> "PreparedSystem":
        """The bodies without the constraints on velocities alone, which leave positions free."""
        system = self.system
        if not system.velocity_constraints:
            return self
        return replace_fields(
            self, system=replace_fields(system, constraints=system.position_constraints)
        )


@persistent_jit
def prepare_system(system: AbstractSystem, arrays: StackedSystem | None = None) -> PreparedSystem:
    """Return the prepared system, traced once however many functions need it.

    **Arguments:** `arrays`, its parameters if they are stacked already.
    """
    return PreparedSystem(system, arrays)


def stack_system(system: AbstractSystem) -> StackedSystem:
    """Stack the parameters of a system; concrete values are copied on the host."""
    inertias = [body.inertia for body in system.bodies]
    if len({inertia.ndim for inertia in inertias}) > 1:
        inertias = [inertia_tensor(inertia) for inertia in inertias]
    rows = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": system.num_bodies}
    rows |= {frame.name: rows[frame.body] for frame in system.frames}
    frames = {frame.name for frame in system.frames}
    joints = group_joints(system.joints, system.topology.loops, rows, frames)
    return StackedSystem(
        stack_rows([body.mass for body in system.bodies]),
        stack_rows(inertias),
        system.reference_state(),
        joints,
        _stack_forces(system, system.all_forces, joints),
    )


def _stack_forces(
    system: AbstractSystem, forces: Sequence[AbstractForce], groups: Sequence[JointGroup]
) -> list[ForceGroup]:
    """Stack forces by kind; `groups`, the joints of the system."""
    names = [body.name for body in system.bodies]
    kinds = {system.joints[j].name: g for g, group in enumerate(groups) for j in group.indices}
    return group_forces(forces, names, system.frames, system.joined_bodies, kinds)


def separate_arrays(system: AbstractSystem) -> tuple[AbstractSystem, StackedSystem | None]:
    """Return the system without its forces and the values of its bodies, and these, stacked.

    The number of arguments of a compiled function then does not grow with the number of bodies.
    Systems of concrete values are separated once. A system with signals, which are arguments of
    their own, or with masses that change is returned unchanged.
    """
    cached = _SEPARATED.get(id(system))
    if cached is not None:
        return cached
    if is_traced(system):
        return _separate(system)
    with eval_context():  # also where a traced function closes over the system
        cached = _SEPARATED[id(system)] = _separate(system)
    weakref.finalize(system, _SEPARATED.pop, id(system)).atexit = False
    return cached


_SEPARATED: dict[int, tuple[AbstractSystem, StackedSystem | None]] = {}


def _separate(system: AbstractSystem) -> tuple[AbstractSystem, StackedSystem | None]:
    if signals_of(system) or system.has_changing_mass or system.is_controlled:
        return system, None
    bodies = jax.tree.map(lambda leaf: None, system.bodies)
    names = {name for force in system.forces for name in force.joint_names()}
    tracked = tuple(sorted({*system.tracked, *names}))
    return replace_fields(system, bodies=bodies, forces=(), tracked=tracked), stack_system(system)
