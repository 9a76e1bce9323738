"""Systems of rigid bodies and the forces on them."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar, T
from ..bodies import Body
from ..bodies.euler_equations import symmetric_components
from ..bodies.frame import Frame
from ..checks import (
    check,
    check_one_precision,
    checked_with_derivatives,
    find_duplicates,
    is_traced,
    known,
)
from ..forces.base import AbstractForce, Kinematics, body_index
from ..joints import Free
from ..joints.arguments import has_default_name
from ..joints.base import AbstractJoint
from ..joints.constraint import AbstractConstraint
from ..joints.replacing import rename_joint, replace_fields
from ..signals.controllers import Source
from ..signals.inputs import InputTarget
from ..signals.laws import with_static_functions
from ..signals.shared_tables import number_tables
from ..state import State
from .declared.system import AbstractSystem
from .declared.topology import Topology, draw, find_topology, needs_tree
from .dynamics.energies import potential_energy
from .dynamics.loads import applied_wrenches, force_virials
from .dynamics.loops import loop_rank
from .stacked.joints import check_points
from .stacked.system import prepare_system

# Lines of a summary.
_LINES = 12
# Determinant of an inertia over its trace cubed, below which it counts as none about some axis.
_MASSLESS = 1e-10
_LOST_MASS = (
    "A body has no inertia about an axis, but had it when its `System` was made; accelerations are "
    "found in a way that needs it. Make the `System` with this inertia."
)


class System(AbstractSystem):
    """Rigid bodies, the joints between them and the forces that act on them.

    `rj.System(arm, hinge, gravity)` takes parts in any order, one by one or in sequences.
    `rj.System(system, motor)` is the system with one more part.

    **Arguments:**

    - `parts`: the parts of all four kinds below, or systems, of which all parts are taken.
    - `bodies`: more parts; each `Body` has a name of its own.
    - `joints`: more parts, between bodies by name, `"ground"` and frames included, in the reference
      configuration, the poses given to the bodies. Joints beyond a spanning tree close loops. A
      second joint of the same kind between the same bodies that was given no name gets a number
      behind it. `Coupling`, `Constraint` and `VelocityConstraint` too, which are kept as
      `constraints`, those on velocities last.
    - `forces`: more parts (`Gravity`, `PointForce`, `Torque`, `Potential`, `Bushing`, `Spring`,
      `Cable`, `Drag`; on joints `TorsionSpring`, `Motor` and other actuators).
    - `frames`: more parts; each `Frame` on a body has a name of its own.
    - `closing`: names of joints that close loops; by default chosen by the order of the joints.

    `repr` draws the first of the trees and loops, `draw()` all of them.

    **Raises:** `ValueError` for no body, duplicate or unknown names, parts of different precision;
    `TypeError` for another part.
    """

    bodies: tuple[Body, ...]
    joints: tuple[AbstractJoint, ...]
    constraints: tuple[AbstractConstraint, ...]
    forces: tuple[AbstractForce, ...]
    frames: tuple[Frame, ...]
    topology: Topology = eqx.field(static=True)
    has_all_mass: bool = eqx.field(static=True)
    tracked: tuple[str, ...] = eqx.field(static=True)
    translates: bool = eqx.field(static=True)
    closing: tuple[str, ...] = eqx.field(static=True)
    sources: dict[str, tuple[InputTarget, Source]]
    contacts: tuple[Any, ...]
    is_bound: bool = eqx.field(static=True)

    def __init__(
        self,
        *parts: object,
        bodies: object = (),
        joints: object = (),
        forces: object = (),
        frames: object = (),
        closing: Sequence[str] = (),
    ):
        bases = [part for part in parts if isinstance(part, System)]
        bodies, joints, forces, frames = _sort(*parts, bodies, joints, forces, frames)
        if not bodies:
            raise ValueError("`System(...)` needs at least one body; got none.")
        # Classes of a user may have functions as fields that are not static.
        joints, forces = (
            tuple(with_static_functions(item, type(item).__name__) for item in items)
            for items in (joints, forces)
        )
        constraints = [item for item in joints if isinstance(item, AbstractConstraint)]
        constraints.sort(key=lambda value: not value.is_on_positions)
        joints = tuple(item for item in joints if isinstance(item, AbstractJoint))
        check_one_precision(
            "`System(...)`", _label_parts(bodies, joints, constraints, forces, frames)
        )
        bodies, joints, forces = number_tables((bodies, joints, forces))
        names = [body.name for body in bodies]
        if twice := find_duplicates(names):
            raise ValueError(f"Every body needs a name of its own; got {twice} more than once.")
        self.bodies = bodies
        self.frames = _check_frames(frames, bodies)
        # One table for all lookups: a search by a method takes longer the larger the system is.
        rows = {name: row for row, name in enumerate(names)}
        rows |= {frame.name: rows[frame.body] for frame in self.frames}
        for joint in joints:
            for name in (joint.parent, joint.child) if joint.at_centre else ():
                if name != "ground":
                    body_index(bodies, name)
            _check_ends(self, rows, joint, (joint.parent, joint.child))
        joints = tuple(check_points(joint, self) for joint in joints)
        for force in forces:
            _check_ends(self, rows, force, force.body_names())
            force.check_bodies(bodies)
        self.joints = _make_names_unique(joints)
        given = collections.Counter(joint.name for joint in joints)
        by_name = {joint.name: joint for joint in self.joints}
        for force in forces:
            for name in force.joint_names():
                if given[name] > 1:
                    raise ValueError(
                        f"{given[name]} joints are called {name!r}; give each a name of its "
                        "own, so that a force can refer to one of them."
                    )
                if name not in by_name:
                    self.joint_index(name)  # raises with the most similar name
                force.check_joint(by_name[name])
        self.forces = forces
        self.constraints = self._attach_constraints(tuple(constraints), rows, by_name)
        self.closing = (*(name for base in bases for name in base.closing), *closing)
        for name in self.closing:
            if name not in by_name:
                self.joint_index(name)  # raises
        self.topology = find_topology(names, self.joints, frames, self.closing)
        for j in self.topology.loops:
            if isinstance(self.joints[j], Free):
                raise ValueError(
                    f"The body {self.joints[j].child!r} is attached to "
                    f"{_in_words(self.joints[j].parent)} already; leave `Free` out, or name it "
                    "first and let other joints close loops."
                )
            if needs_tree(self.joints[j]):
                raise ValueError(
                    f"The joint {self.joints[j].name!r} closes a loop of which every joint has "
                    "`armature`; the joint that closes a loop must have none. Leave it out of one."
                )
        self.has_all_mass = all(
            is_traced((body.mass, body.inertia))
            or (np.asarray(body.mass) > 0 and _least_inertia(np.asarray(body.inertia)) > _MASSLESS)
            for body in bodies
        )
        self.tracked = tuple(sorted({name for base in bases for name in base.tracked}))
        self.translates = True
        self.sources, self.contacts = {}, ()
        self.is_bound = False

    def _attach_constraints(
        self,
        constraints: tuple[AbstractConstraint, ...],
        rows: dict[str, int],
        by_name: dict[str, AbstractJoint],
    ) -> tuple[AbstractConstraint, ...]:
        """Check constraints and attach them to the joints; `rows` of bodies and frames by name."""
        for constraint in constraints:
            for name in constraint.body_names():
                if name not in rows:
                    self.locate(name)  # raises
            for name in constraint.joint_names():
                if name not in by_name:
                    self.joint_index(name)  # raises
        if twice := find_duplicates(item.name for item in (*self.joints, *constraints)):
            raise ValueError(
                f"Every joint and constraint needs a name of its own; got {twice} more than once."
            )
        return tuple(constraint.bind_joints(by_name) for constraint in constraints)

    @property
    def num_dof(self) -> int:
        """Number of mechanical degrees of freedom, of velocities.

        With closed loops it is that of the reference configuration, found from the rank of the
        constraints; it needs concrete values there (not under `jax.jit`).
        """
        free = sum(self.rates_of_bodies)
        if not self.has_loops:
            return free
        return free - loop_rank(self)

    def check_angle_names(self, state: State) -> None:
        """Raise `ValueError` for angles in a state of joints that have none."""
        for name in state.angle_names:
            joint = self.joints[self.joint_index(name)]
            if not joint.has_angle:
                raise ValueError(
                    f"`State(angles=...)` holds unwrapped angles of joints; the "
                    f"{type(joint).__name__} {name!r} has none."
                )

    def tracking(self, names: Iterable[str]) -> "System":
        """Return the system with the revolutions of these joints counted.

        Their angles become unknowns of a formulation, as angles are on which a force depends.

        **Errors:** `ValueError` for an unknown name, or a joint without an angle of its own.
        """
        for name in names:
            joint = self.joints[self.joint_index(name)]
            if not joint.has_angle or joint.num_rates == 0:
                raise ValueError(
                    f"`System.tracking` follows free angles; the {type(joint).__name__} {name!r} "
                    "has none."
                )
        return replace_fields(self, tracked=tuple(sorted({*self.tracked, *names})))

    def __repr__(self) -> str:
        lines = [self.summary, *self.draw().splitlines()]
        if len(lines) > _LINES:
            rest = len(lines) - _LINES + 1
            lines = [*lines[: _LINES - 1], f"... and {rest} more lines of `draw()`"]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """Numbers of bodies, joints and forces in words."""
        return (
            f"System with {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"{len(self.forces)} forces"
        )

    def draw(self) -> str:
        """Return trees, loops and constraints, a line of text for each body, loop, constraint."""
        trees = draw([body.name for body in self.bodies], self.joints, self.topology)
        others = (f"constraint: {type(one).__name__} {one.name!r}" for one in self.constraints)
        return "\n".join([trees, *others])

    def with_all_mass(self, state: T) -> T:
        """Return the state, or unknowns; raise if a body has lost the inertia it was built with.

        Whether all bodies have inertia decides how accelerations are computed, by elimination
        along the trees or by a mass matrix, and cannot depend on values that change later.
        """
        if not self.has_all_mass:
            return state
        inertias = known([body.inertia for body in self.bodies])
        if not is_traced(inertias):
            least = np.stack([_least_inertia(np.asarray(inertia)) for inertia in inertias])
            check(least, lambda x: x > _MASSLESS, _LOST_MASS)
            return state
        least = jnp.stack([_least_inertia(inertia) for inertia in inertias])

        def check_mass(value):
            has_mass = (check(least, lambda x: x > _MASSLESS, _LOST_MASS) > 0).all()
            return value * has_mass.astype(value.dtype)

        return checked_with_derivatives(state, check_mass)

    def wrenches(self, t: Scalar, kinematics: Kinematics) -> Float[Array, "L 6"]:
        """Applied force (space components, N) and moment about the centre of mass (body components,
        N m) of each body."""
        return applied_wrenches(prepare_system(self), t, kinematics)

    def virials(self, t: Scalar, kinematics: Kinematics) -> Float[Array, "L 3 3"]:
        r"""Return the symmetric part of $\sum f \otimes u$ of each body, N m."""
        return force_virials(prepare_system(self), t, kinematics)

    def potential_energy(self, t: Scalar, kinematics: Kinematics) -> Scalar:
        """Return the potential energy of the applied forces, J."""
        return potential_energy(prepare_system(self), t, kinematics)


def _label_parts(
    bodies: Sequence[Body],
    joints: Sequence[AbstractJoint],
    constraints: Sequence[AbstractConstraint],
    forces: Sequence[AbstractForce],
    frames: Sequence[Frame],
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a system with names for messages."""
    for kind, items in (
        ("body", bodies), ("joint", joints), ("constraint", constraints), ("frame", frames)
    ):  # fmt: skip
        for item in items:
            yield f"the {kind} {item.name!r}", item
    for force in forces:
        yield f"the force `{type(force).__name__}`", force


def _in_words(name: str) -> str:
    return "the ground" if name == "ground" else f"the body {name!r}"


def _sort(*parts: Any) -> tuple[tuple[Any, ...], ...]:
    """Return bodies, joints with constraints, forces, and frames of parts or sequences of them."""
    kinds = Body, (AbstractJoint, AbstractConstraint), AbstractForce, Frame
    found: tuple[list[Any], ...] = [], [], [], []
    for part in parts:
        if isinstance(part, System):
            part = part.bodies + part.joints + part.constraints + part.forces + part.frames
        several = isinstance(part, Iterable) and not isinstance(part, str)
        for item in part if several else (part,):
            for kind, items in zip(kinds, found, strict=True):
                if isinstance(item, kind):
                    items.append(item)
                    break
            else:
                raise TypeError(
                    "`System(...)` takes bodies, joints, constraints, forces and frames; "
                    f"got {item!r}."
                )
    return tuple(map(tuple, found))


def _check_frames(frames: tuple[Frame, ...], bodies: tuple[Body, ...]) -> tuple[Frame, ...]:
    names = [item.name for item in (*bodies, *frames)]
    for frame in frames:
        body_index(bodies, frame.body)
        if names.count(frame.name) > 1:
            raise ValueError(
                f"Every body and frame needs a name of its own; got {frame.name!r} more than once."
            )
    return frames


def _check_ends(
    system: System,
    rows: Mapping[str, int],
    item: AbstractForce | AbstractJoint,
    names: tuple[str, ...],
) -> None:
    """Raise unless the bodies and frames that it names exist and are not on one body."""
    ends = {
        name: rows[name] if name in rows else system.locate(name)[0]  # which raises
        for name in names
        if name != "ground" or len(names) == 1
    }
    exempt = isinstance(item, AbstractForce) and not item.needs_different_bodies
    if len(set(ends.values())) < len(ends) and not exempt:
        raise ValueError(
            f"A `{type(item).__name__}` acts between different bodies; {list(ends)} are on one."
        )


def _make_names_unique(joints: tuple[AbstractJoint, ...]) -> tuple[AbstractJoint, ...]:
    """Return the joints; a default name that an earlier joint has gets a number."""
    names = {joint.name for joint in joints}
    seen: set[str] = set()
    out = []
    for joint in joints:
        if joint.name in seen and not has_default_name(joint):
            raise ValueError(
                f"Every joint needs a name of its own; got {joint.name!r} more than once."
            )
        name, count = joint.name, 1
        while name in seen or (count > 1 and name in names):
            count += 1
            name = f"{joint.name} {count}"
        seen.add(name)
        out.append(joint if count == 1 else rename_joint(joint, name))
    return tuple(out)


def _least_inertia(inertia: Any) -> Any:
    """Return the determinant over the cubed trace, zero without inertia about some axis."""
    if inertia.ndim == 1:
        trace = inertia.sum()
        return (inertia / (trace + (trace == 0).astype(trace.dtype))).prod()
    trace = inertia.trace()
    a, b, c, d, e, f = symmetric_components(inertia / (trace + (trace == 0).astype(trace.dtype)))
    return a * (b * c - d * d) + f * (d * e - c * f) + e * (d * f - b * e)
