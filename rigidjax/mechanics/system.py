"""Systems of rigid bodies and the forces on them."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import T
from ..bodies.body import Body
from ..bodies.euler_equations import symmetric_components
from ..bodies.frame import Frame
from ..checks import (
    as_leaf,
    check,
    check_one_precision,
    checked_with_derivatives,
    did_you_mean,
    find_duplicates,
    is_traced,
)
from ..forces.base import AbstractForce, Kinematics, body_index
from ..forces.joint_damping import JointDamping
from ..joints import (
    AbstractConstraint,
    AbstractJoint,
    AbstractPositionConstraint,
    Free,
    VelocityConstraint,
)
from ..joints.arguments import has_default_name
from ..joints.replacing import rename_joint, replace_fields
from ..native.ops import stack_rows
from ..signals.laws import with_static_functions
from ..state import State
from .joint_ends import checked_points
from .topology import Topology, draw, find_topology, needs_tree

# Lines of text of a summary.
_LINES = 12
# Determinant of an inertia over its trace cubed, below which it counts as none about some axis.
_MASSLESS = 1e-10
_LOST_MASS = (
    "A body has no inertia about an axis, but had it when its `System` was made; accelerations are "
    "found in a way that needs it. Make the `System` with this inertia."
)


class System(eqx.Module):
    """Rigid bodies, the joints between them and the forces that act on them.

    **Arguments:**

    - `bodies`: one `Body` or a sequence of them, with different names.
    - `joints`: joints between bodies by name, `"ground"` and `frames` included, in the reference
      configuration, the poses given to the bodies. Any order; joints beyond a spanning tree close
      loops. A second joint of the same kind between the same bodies that was given no name gets a
      number behind it. `Coupling`, `Constraint` and `VelocityConstraint` too, which are kept as
      `constraints`, those on velocities last.
    - `forces`: one force or a sequence of them (`Gravity`, `PointForce`, `Torque`, `Potential`,
      `Bushing`, `Spring`, `Drag`; on joints `TorsionSpring`, `Motor`).
    - `frames`: one `Frame` on a body or a sequence of them, with names of their own.

    `repr` draws the first of the trees and loops, `draw()` all of them.

    **Raises:** `ValueError` for no body, duplicate or unknown names, parts of different precision;
    `TypeError` for what is not a
    body, a joint or a force.
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

    def __init__(
        self,
        bodies: Body | Sequence[Body],
        joints: Sequence[object] = (),
        forces: AbstractForce | Sequence[AbstractForce] = (),
        frames: Frame | Sequence[Frame] = (),
    ):
        bodies, joints, forces, frames = map(_as_tuple, (bodies, joints, forces, frames))
        if not bodies:
            raise ValueError("`System(bodies=...)` needs at least one body; got none.")
        for name, items, kind in (
            ("bodies", bodies, (Body,)),
            ("joints", joints, (AbstractJoint, AbstractConstraint)),
            ("forces", forces, (AbstractForce,)),
            ("frames", frames, (Frame,)),
        ):
            for item in items:
                if not isinstance(item, kind):
                    raise TypeError(
                        f"`System({name}=...)` takes {kind[0].__name__} objects; got {item!r}."
                    )
        # Classes of a user may have functions as fields that are not static.
        joints, forces = (
            tuple(with_static_functions(item, type(item).__name__) for item in items)
            for items in (joints, forces)
        )
        constraints = [item for item in joints if isinstance(item, AbstractConstraint)]
        constraints.sort(key=lambda one: not one.is_on_positions)
        joints = tuple(item for item in joints if isinstance(item, AbstractJoint))
        check_one_precision("`System(...)`", _labelled(bodies, joints, constraints, forces, frames))
        names = [body.name for body in bodies]
        if twice := find_duplicates(names):
            raise ValueError(f"Every body needs a name of its own; got {twice} more than once.")
        self.bodies = bodies
        self.frames = _checked_frames(frames, bodies)
        # Looked up here: to call one of its methods takes time that grows with the system.
        rows = {name: row for row, name in enumerate(names)}
        rows |= {frame.name: rows[frame.body] for frame in self.frames}
        for joint in joints:
            if joint.at_centre:
                body_index(bodies, joint.child)
            _check_ends(self, rows, joint, (joint.parent, joint.child))
        joints = tuple(checked_points(joint, self) for joint in joints)
        for force in forces:
            _check_ends(self, rows, force, force.body_names())
            force.check_bodies(bodies)
        self.joints = _with_own_names(joints)
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
                    self.joint_index(name)  # raises
                force.check_joint(by_name[name])
        self.forces = forces
        self.constraints = self._attached(tuple(constraints))
        self.topology = find_topology(names, joints, frames)
        for j in self.topology.loops:
            if isinstance(self.joints[j], Free):
                raise ValueError(
                    f"The body {self.joints[j].child!r} hangs on the ground already; leave `Free` "
                    "out, or name it first and let other joints close loops."
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
        self.tracked = ()
        self.translates = True

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return len(self.bodies)

    @property
    def num_constraints(self) -> int:
        """Number of constraints of joints, and of those that are no joint."""
        return sum(item.num_constraints for item in (*self.joints, *self.constraints))

    @property
    def closes(self) -> bool:
        """Whether anything is imposed on the rates of the trees: loops, couplings, constraints."""
        return bool(self.topology.loops or self.constraints)

    @property
    def velocity_constraints(self) -> tuple[VelocityConstraint, ...]:
        """Those of the constraints that are on velocities alone."""
        return tuple(one for one in self.constraints if isinstance(one, VelocityConstraint))

    @property
    def position_constraints(self) -> tuple[AbstractPositionConstraint, ...]:
        """The other constraints that are no joint."""
        return tuple(one for one in self.constraints if isinstance(one, AbstractPositionConstraint))

    @property
    def body_of(self) -> dict[str, str]:
        """The name of the body of each frame, by the name of the frame."""
        return {frame.name: frame.body for frame in self.frames}

    @property
    def joined_bodies(self) -> dict[str, tuple[str, str]]:
        """Names of the bodies of the parent and the child of each joint, by its name."""
        of = self.body_of
        ends = ((joint.name, joint.parent, joint.child) for joint in self.joints)
        return {name: (of.get(one, one), of.get(two, two)) for name, one, two in ends}

    @property
    def closing_names(self) -> tuple[str, ...]:
        """Names of all joints, then of all other constraints."""
        return tuple(item.name for item in (*self.joints, *self.constraints))

    def _attached(self, constraints: tuple[AbstractConstraint, ...]):
        """The constraints of these joints, checked."""
        for constraint in constraints:
            for name in constraint.body_names():
                self.located(name)  # or it raises
            for name in constraint.joint_names():
                self.joint_index(name)
        if twice := find_duplicates(item.name for item in (*self.joints, *constraints)):
            raise ValueError(
                f"Every joint and constraint needs a name of its own; got {twice} more than once."
            )
        by_name = {joint.name: joint for joint in self.joints}
        return tuple(constraint.attached(by_name) for constraint in constraints)

    @property
    def num_dof(self) -> int:
        """Number of mechanical degrees of freedom, of velocities.

        With closed loops it is that of the reference configuration, found from the rank of the
        constraints; it needs known values there (not under `jax.jit`).
        """
        free = sum(self.rates_of_bodies)
        if not self.closes:
            return free
        from .dynamics import loop_rank

        return free - loop_rank(self)

    @property
    def rates_of_bodies(self) -> tuple[int, ...]:
        """Number of minimal velocities that each body adds to its tree."""
        return tuple(
            self.rates_of_free if j is None else self.joints[j].num_rates
            for j in self.topology.joints
        )

    @property
    def rates_of_free(self) -> int:
        """Number of minimal velocities of a body on no joint: six, or three where translation is
        left out (see `fixed_point.system_of`)."""
        return 6 if self.translates else 3

    @property
    def all_forces(self) -> tuple[AbstractForce, ...]:
        """The forces, and the damping that joints bring along."""
        dampings = [
            JointDamping(joint=joint.name, damping=joint.dampings[k], component=k)
            for joint in self.joints
            if joint.dampings is not None
            for k in range(joint.num_undriven_rates)
        ]
        return (*self.forces, *dampings)

    @property
    def armatures(self) -> Float[Array, " f"] | None:
        """Inertia that rotors add to each minimal velocity, (f,); `None` if they add none.

        The rotor of a prescribed motion adds nothing: it loads the drive alone.
        """
        if not any(j.armatures is not None and not j.is_driven for j in self.joints):
            return None
        found = [None if j is None else self.joints[j].armatures for j in self.topology.joints]
        dtype = next(own for own in found if own is not None).dtype
        return jnp.concatenate(
            [
                jnp.zeros(count, dtype) if own is None else own[:count]
                for own, count in zip(found, self.rates_of_bodies, strict=True)
            ]
        )

    @property
    def has_armature(self) -> bool:
        """Whether a joint has a rotor."""
        return any(joint.armatures is not None for joint in self.joints)

    @property
    def force_joints(self) -> tuple[int, ...]:
        """Joints whose coordinates or rates forces, dampings and rotors depend on."""
        wanted = self._joint_rows(name for f in self.all_forces for name in f.joint_names())
        rotors = {j for j, joint in enumerate(self.joints) if joint.armatures is not None}
        return tuple(sorted(wanted | rotors))

    @property
    def tracked_joints(self) -> tuple[int, ...]:
        """Joints whose whole turns matter: those with an angle that a force, a
        coupling or `tracked` names."""
        coupled = {name for one in self.constraints for name in one.followed_joints()}
        followed = {name for force in self.forces for name in force.joint_names()}
        wanted = self._joint_rows({*followed, *coupled, *self.tracked})
        return tuple(j for j in self.angle_joints if j in wanted)

    @property
    def has_changing_mass(self) -> bool:
        """Whether the mass of a body is a function of time."""
        return any(body.mass_law is not None for body in self.bodies)

    def at_time(self, t: Float[Array, ""]) -> "System":
        """Return the system with the masses of its bodies as they are at a time."""
        if not self.has_changing_mass:
            return self
        return replace_fields(
            self,
            bodies=tuple(
                replace_fields(body, mass=body.mass_at(t), mass_law=None) for body in self.bodies
            ),
        )

    @property
    def angle_joints(self) -> tuple[int, ...]:
        """Joints with an angle that is free, in the order of `angle_names`."""
        return tuple(
            j for j, joint in enumerate(self.joints) if joint.has_angle and joint.num_rates
        )

    @property
    def angle_names(self) -> tuple[str, ...]:
        """Names of the joints whose unwrapped angles a `State` of the system holds."""
        return tuple(self.joints[j].name for j in self.angle_joints)

    def check_angle_names(self, state: State) -> None:
        """Raise `ValueError` for angles in a state of joints that have none."""
        for name in state.angle_names:
            joint = self.joints[self.joint_index(name)]
            if not joint.has_angle:
                raise ValueError(
                    f"`State(angles=...)` holds unwrapped angles of joints; the "
                    f"{type(joint).__name__} {name!r} has none."
                )

    def located(self, name: str) -> tuple[int, Frame | None]:
        """Row of the body called `name`, or that of the frame called so, and the frame.

        **Errors:** `ValueError` with the nearest name if there is none.
        """
        for frame in self.frames:
            if frame.name == name:
                return body_index(self.bodies, frame.body), frame
        names = [item.name for item in (*self.bodies, *self.frames)] if self.frames else [name]
        if name not in names:
            hint = did_you_mean(name, names, f" There are {names}.")
            raise ValueError(f"There is no body or frame called {name!r}.{hint}")
        return body_index(self.bodies, name), None

    def joint_index(self, name: str) -> int:
        """Index of the joint called `name`; `ValueError` with the nearest name if there is none."""
        names = [joint.name for joint in self.joints]
        if name not in names:
            hint = did_you_mean(name, names, f" The joints are {names}.")
            raise ValueError(f"There is no joint called {name!r}.{hint}")
        return names.index(name)

    def _joint_rows(self, names: Iterable[str]) -> set[int]:
        """Indices of the joints of these names."""
        rows = {joint.name: j for j, joint in enumerate(self.joints)}
        return {rows[name] for name in names}

    def tracking(self, names: Iterable[str]) -> "System":
        """The same system, with the angles of these joints followed beyond pi.

        Their angles become unknowns of a formulation, as those are on which a force depends.

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
        """Return the trees and the loops, a line of text for each body and each loop."""
        return draw([body.name for body in self.bodies], self.joints, self.topology)

    def reference_state(self) -> State:
        """Poses and twists given to the bodies when they were built; joint angles are zero."""
        position = stack_rows([body.position for body in self.bodies])
        state = State(
            position,
            stack_rows([body.orientation for body in self.bodies]),
            stack_rows([body.velocity for body in self.bodies]),
            stack_rows([body.angular_velocity for body in self.bodies]),
        )
        zeros = np.zeros(len(self.angle_joints), position.dtype)
        return state.with_angles(self.angle_names, as_leaf(zeros))

    def with_all_mass(self, state: T) -> T:
        """Return the state, or unknowns; an error if a body has lost the inertia that it had when
        this was made.

        Whether all have it decides how accelerations are found, by elimination along the trees or
        by a mass matrix, and so it cannot depend on values that are changed later.
        """
        if not self.has_all_mass:
            return state
        least = [_least_inertia(body.inertia) for body in self.bodies]
        least = jnp.stack(least) if is_traced(least) else np.stack(least)

        def checked(one):
            kept = (check(least, lambda x: x > _MASSLESS, _LOST_MASS) > 0).all()
            return one * kept.astype(one.dtype)

        return checked_with_derivatives(state, checked)

    def wrenches(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "L 6"]:
        """Applied force (space components, N) and moment about the centre of mass (body components,
        N m) of each body."""
        return self._mechanics.applied(t, kinematics)

    def virials(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, "L 3 3"]:
        r"""Symmetric part of $\sum f \otimes u$ of each body (`SystemMechanics.virials`), N m."""
        return self._mechanics.virials(t, kinematics)

    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        """Potential energy of the applied forces, J."""
        return self._mechanics.potential_energy(t, kinematics)

    @property
    def _mechanics(self):
        from .mechanics import SystemMechanics

        return SystemMechanics(self)


def _labelled(
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


def _as_tuple(items: Any) -> tuple[Any, ...]:
    """One item or a sequence of them as a tuple."""
    return tuple(items) if isinstance(items, Iterable) else (items,)


def _checked_frames(frames: tuple[Frame, ...], bodies: tuple[Body, ...]) -> tuple[Frame, ...]:
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
        name: rows[name] if name in rows else system.located(name)[0]  # which raises
        for name in names
        if name != "ground" or len(names) == 1
    }
    if len(set(ends.values())) < len(ends):
        raise ValueError(
            f"A `{type(item).__name__}` acts between different bodies; {list(ends)} are on one."
        )


def _with_own_names(joints: tuple[AbstractJoint, ...]) -> tuple[AbstractJoint, ...]:
    """The joints; one that was named after its bodies like an earlier one gets a number."""
    taken = {joint.name for joint in joints}
    seen: set[str] = set()
    out = []
    for joint in joints:
        if joint.name in seen and not has_default_name(joint):
            raise ValueError(
                f"Every joint needs a name of its own; got {joint.name!r} more than once."
            )
        name, count = joint.name, 1
        while name in seen or (count > 1 and name in taken):
            count += 1
            name = f"{joint.name} {count}"
        seen.add(name)
        out.append(joint if count == 1 else rename_joint(joint, name))
    return tuple(out)


def _least_inertia(inertia: Any) -> Any:
    """What is zero if there is no inertia about some axis: the determinant over trace cubed."""
    if inertia.ndim == 1:
        trace = inertia.sum()
        return (inertia / (trace + (trace == 0).astype(trace.dtype))).prod()
    trace = inertia.trace()
    a, b, c, d, e, f = symmetric_components(inertia / (trace + (trace == 0).astype(trace.dtype)))
    return a * (b * c - d * d) + f * (d * e - c * f) + e * (d * f - b * e)
