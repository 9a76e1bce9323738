"""Declaration of a system: its parts, and the counts and names that follow from them."""

from collections.abc import Iterable
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies import Body
from ...bodies.frame import Frame
from ...checks import as_leaf, did_you_mean
from ...forces.base import AbstractForce, AbstractStatefulForce, ForceAtStates, body_index
from ...forces.joint_damping import forces_of_joint
from ...joints import VelocityConstraint
from ...joints.base import AbstractJoint
from ...joints.constraint import AbstractConstraint, AbstractPositionConstraint
from ...joints.friction import Friction
from ...joints.replacing import replace_fields
from ...signals.controllers import Source, held_sources
from ...signals.inputs import InputTarget
from ...small_arrays import stack_rows
from ...state import State
from .topology import Topology


class AbstractSystem(eqx.Module):
    """Declaration of bodies, joints and forces: everything that algorithms read of a `System`.

    `has_all_mass`, whether every body had mass and inertia about every axis when it was declared;
    `tracked`, names of joints whose revolutions are counted besides those that a force depends on;
    `translates`, whether free bodies translate (see `fixed_point.system_of`); `sources`, the
    inputs that are computed during a run with their controllers, by name; `contacts`, those of a
    run that may stay closed (see `formulations.holding`); `is_bound`, whether the values of inputs
    and the states of actuators at one time are in its forces.
    """

    bodies: eqx.AbstractVar[tuple[Body, ...]]
    joints: eqx.AbstractVar[tuple[AbstractJoint, ...]]
    constraints: eqx.AbstractVar[tuple[AbstractConstraint, ...]]
    forces: eqx.AbstractVar[tuple[AbstractForce, ...]]
    frames: eqx.AbstractVar[tuple[Frame, ...]]
    topology: eqx.AbstractVar[Topology]
    has_all_mass: eqx.AbstractVar[bool]
    tracked: eqx.AbstractVar[tuple[str, ...]]
    translates: eqx.AbstractVar[bool]
    sources: eqx.AbstractVar[dict[str, tuple[InputTarget, Source]]]
    contacts: eqx.AbstractVar[tuple[Any, ...]]
    is_bound: eqx.AbstractVar[bool]

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return len(self.bodies)

    @property
    def num_constraints(self) -> int:
        """Number of constraints of joints, and of those that are no joint."""
        return sum(item.num_constraints for item in (*self.joints, *self.constraints))

    @property
    def has_loops(self) -> bool:
        """Whether loops, couplings or constraints restrict the rates of the trees."""
        return bool(self.topology.loops or self.constraints)

    @property
    def velocity_constraints(self) -> tuple[VelocityConstraint, ...]:
        """The constraints on velocities alone."""
        return tuple(one for one in self.constraints if isinstance(one, VelocityConstraint))

    @property
    def position_constraints(self) -> tuple[AbstractPositionConstraint, ...]:
        """The constraints on positions that are no joint."""
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

    @property
    def rates_of_bodies(self) -> tuple[int, ...]:
        """Number of generalised velocities that each body adds to its tree."""
        return tuple(
            self.rates_of_free if j is None else self.joints[j].num_rates
            for j in self.topology.joints
        )

    @property
    def rates_of_free(self) -> int:
        """Number of generalised velocities of a free body: six, or three without translation."""
        return 6 if self.translates else 3

    @property
    def all_forces(self) -> tuple[AbstractForce, ...]:
        """The forces, and those of joints: damping, friction, springs and stops."""
        return (*self.forces, *(f for joint in self.joints for f in forces_of_joint(joint)))

    @property
    def state_counts(self) -> tuple[tuple[int | str, int], ...]:
        """Actuators, by their index among the forces, then sampled controllers, by their input,
        each with the number of its states."""
        counts: list[tuple[int | str, int]] = []
        for k, force in enumerate(self.forces):
            if isinstance(force, AbstractStatefulForce):
                counts.append((k, force.num_states))
            elif isinstance(force, ForceAtStates):
                counts.append((k, force.force.num_states))
        for name, (target, source) in held_sources(self.sources).items():
            counts.append((name, source.num_states(target)))
        return tuple(counts)

    @property
    def num_states(self) -> int:
        """Number of states of actuators and sampled controllers."""
        return sum(count for _, count in self.state_counts)

    @property
    def is_controlled(self) -> bool:
        """Whether policies, sampled controllers or actuators act on the system."""
        return bool(self.sources) or any(isinstance(f, AbstractStatefulForce) for f in self.forces)

    @property
    def sticking_joints(self) -> tuple[str, ...]:
        """Names of the joints whose friction sticks exactly."""
        return tuple(
            joint.name
            for joint in self.joints
            if isinstance(joint.friction, Friction) and joint.friction.sticking
        )

    @property
    def has_modes(self) -> bool:
        """Whether joints stick or lock, or contacts close."""
        if self.contacts:
            return True
        sources = (source for _, source in held_sources(self.sources).values())
        return any(getattr(source, "joint", None) is not None for source in sources)

    @property
    def armatures(self) -> Float[Array, " f"] | None:
        """Inertia that rotors add to each generalised velocity, (f,); `None` without any.

        The rotor of a prescribed motion loads its drive alone.
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
        """Joints whose coordinates or rates forces, those of joints too, and rotors depend on."""
        wanted = self._joint_rows(name for f in self.all_forces for name in f.joint_names())
        rotors = {j for j, joint in enumerate(self.joints) if joint.armatures is not None}
        return tuple(sorted(wanted | rotors))

    @property
    def tracked_joints(self) -> tuple[int, ...]:
        """Joints whose revolutions count: a force, a coupling or `tracked` names their angle, or
        they have a spring or stops."""
        coupled = {name for one in self.constraints for name in one.joint_names()}
        followed = {name for force in self.forces for name in force.joint_names()}
        elastic = {joint.name for joint in self.joints if joint.is_elastic}
        wanted = self._joint_rows({*followed, *coupled, *elastic, *self.tracked})
        return tuple(j for j in self.angle_joints if j in wanted)

    @property
    def has_changing_mass(self) -> bool:
        """Whether the mass of a body is a function of time."""
        return any(body.mass_law is not None for body in self.bodies)

    def at_time(self, t: Float[Array, ""]) -> Self:
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

    def locate(self, name: str) -> tuple[int, Frame | None]:
        """Return the row of the body called `name`, or of the body of that frame, and the frame.

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
        """Return the index of the joint called `name`; `ValueError` with the nearest name if there
        is none."""
        names = [joint.name for joint in self.joints]
        if name not in names:
            hint = did_you_mean(name, names, f" The joints are {names}.")
            if name in [body.name for body in self.bodies]:
                own = [repr(joint.name) for joint in self.joints if joint.child == name]
                hint = f" The joint of this body is {own[0] if own else f'`Free({name!r})`'}."
            raise ValueError(f"There is no joint called {name!r}.{hint}")
        return names.index(name)

    def _joint_rows(self, names: Iterable[str]) -> set[int]:
        """Return the indices of the joints of these names."""
        rows = {joint.name: j for j, joint in enumerate(self.joints)}
        return {rows[name] for name in names}

    def reference_state(self) -> State:
        """Return the poses and twists given to the bodies when they were built; joint angles are
        zero."""
        position = stack_rows([body.position for body in self.bodies])
        state = State(
            position,
            stack_rows([body.orientation for body in self.bodies]),
            stack_rows([body.velocity for body in self.bodies]),
            stack_rows([body.angular_velocity for body in self.bodies]),
        )
        zeros = np.zeros(len(self.angle_joints), position.dtype)
        return state.with_angles(self.angle_names, as_leaf(zeros))
