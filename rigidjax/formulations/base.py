"""What every way to write the equations of motion provides."""

import abc
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..checks import ArrayInput, check_all, is_finite, is_traced, raise_or_note
from ..forces.base import Kinematics
from ..joints.base import replaced
from ..rotations.base import AbstractRotation
from ..rotations.euler_map import euler_map
from ..rotations.so3 import cross, multiply
from ..state import State
from ..system import FixedPointMechanics, System, has_joints, mechanics_of
from ..system.dynamics import eliminates
from ..system.mechanics import SystemMechanics, Twists
from ..system.reactions import ConstraintReaction, Reaction
from .charts import (
    Charted,
    Unknowns,
    chart_limit,
    in_space,
    join_chart,
    move_chart,
    needs_no_reference,
    split_chart,
)
from .compiled import compiled
from .joint_checks import check_joints
from .system_form import AbstractSystemForm


class AbstractFormulation(eqx.Module):
    """A system, a rotation parametrization, and a choice of unknowns.

    `encode` and `decode` translate between the unknowns `y` and the physical `State`;
    `vector_field(t, y, args)` is what `diffrax.ODETerm` takes. All of it is a pytree whose
    numbers (inertias, masses, parameters of forces) can be differentiated and batched.

    The order of `y`: positions $(x, a)$ body after body, velocities (body after body, or the
    minimal ones of the joints as in `rate_labels`), joint angles that are followed beyond pi,
    multipliers. `rigidjax.io.names.unknown_names(model)` names them.
    """

    system: eqx.AbstractVar[System | FixedPointBody]
    built: eqx.AbstractVar[SystemMechanics | None]
    rotation: eqx.AbstractVar[AbstractRotation]
    recharting: eqx.AbstractVar[bool]

    def __hash__(self) -> int:
        # Arrays have no hash, and `jax.jit(model.accelerations)` asks for one.
        return id(self)

    @property
    @abc.abstractmethod
    def layout(self) -> Any:
        """Where the unknowns stand in `y`, an `AbstractLayout`."""

    @abc.abstractmethod
    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        r"""Right-hand side $\dot y$."""

    @abc.abstractmethod
    def pack(
        self,
        state: State,
        reference: Float[Array, "L 4"] | None = None,
        t: ArrayInput = 0.0,
    ) -> Float[Array, " N"]:
        """Unknowns of a state with unit quaternions, unchecked, in the charts `reference`."""

    @abc.abstractmethod
    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        """Poses and twists of all bodies."""

    @abc.abstractmethod
    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Largest violation of the constraints: position level and velocity level (1/s)."""

    def gaps(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " J"]:
        """How far each joint is open: lengths over that of the mechanism, angles in rad.

        The chord of the angle where the child is the wrong way round in its joint.
        **Returns:** shape (J,), in the order of the system's joints, then of its other constraints;
        empty without any.
        """
        values, _ = split_chart(y)
        if self.of_system is None or not has_joints(self.system):
            return jnp.zeros(0, values.dtype)
        return self.of_system.gaps(t, join_chart(values[: self.layout.size], y))

    @abc.abstractmethod
    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        """Unknowns moved onto the constraints by the explicit projection of the rotation."""

    @abc.abstractmethod
    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        """Lagrange multipliers of the internal constraints, all bodies, J."""

    @property
    def mechanics(self) -> FixedPointMechanics | SystemMechanics:
        """Masses, inertias and wrenches of the system, all bodies stacked."""
        if not isinstance(self.system, System):
            return self._body
        return mechanics_of(self.system, self.built)

    def prepared(self) -> Self:
        """The same model with what follows from its system alone computed, once for a run."""
        if not isinstance(self.system, System):
            return self
        return replaced(self, built=replaced(mechanics_of(self.system), system=None))

    @property
    def num_unknowns(self) -> int:
        """Number of unknowns, multipliers included where the equations have them."""
        return self.layout.size + self.num_algebraic

    @property
    @abc.abstractmethod
    def num_algebraic(self) -> int:
        """Number of multipliers among the unknowns."""

    def encode(self, state: State, t: ArrayInput = 0.0) -> Float[Array, " N"]:
        """Unknowns of a physical state.

        **Arguments:** `state`, with unit quaternions (to 1e-6; normalised here); `t`, s, matters if
        a joint has a prescribed motion.
        **Returns:** shape (num_unknowns,).
        **Errors:** a wrong number of bodies, a zero, NaN or non-unit quaternion, a `FixedPointBody`
        with position or velocity, a state that the joints do not allow (the message says which
        joint and by how much; see `rj.consistent_state`).
        """
        state = self.check_state(state, t)
        return _started(self, state, jnp.asarray(t, state.position.dtype))

    def start(self, state: State, t: ArrayInput = 0.0) -> Float[Array, " N"]:
        """As `encode`, for a state with unit quaternions, unchecked.

        Multipliers are those that the accelerations of the state ask for; multipliers of a
        stabilisation are zero.
        """
        y = self.pack(state, None, t)
        if self.num_algebraic == 0:
            return y
        lam = self.multipliers(jnp.asarray(t, y.dtype), y)
        rest = jnp.zeros(self.num_algebraic - lam.size, y.dtype)
        return jnp.concatenate([y, lam, rest])

    @compiled
    def decode(self, t: Float[Array, ""], y: Unknowns) -> State:
        """Physical state of the unknowns; the quaternion's sign is arbitrary.

        **Arguments:** `t`, s; `y`, shape (num_unknowns,) or `Charted`.
        """
        values, reference = split_chart(y)
        kinematics = self.kinematics(t, y)
        p = jax.vmap(self.rotation.to_quaternion)(self.layout.poses(values)[1])
        p = p if reference is None else jax.vmap(multiply)(reference, p)
        omegas = jnp.asarray(kinematics.angular_velocities)
        if not self.layout.translates:
            zeros = jnp.zeros_like(omegas)
            return State(zeros, p, zeros, omegas)
        positions, velocities = map(jnp.asarray, (kinematics.positions, kinematics.velocities))
        return State(positions, p, velocities, omegas)

    def check_state(self, state: State, t: ArrayInput = 0.0) -> State:
        """The state, checked (errors as in `encode`); its quaternions are not normalised yet."""
        state = self._check_rows(state)
        if self.of_system is None or not self.of_system.system.closing_names:
            return state
        if eliminates(self.of_system.mechanics):
            state = self.of_system.system.with_all_mass(state)
        return check_joints(self.of_system, state, t)

    def _check_rows(self, state: State) -> State:
        if not isinstance(state, State):
            raise TypeError(f"A formulation encodes a `State`; got {type(state).__name__}.")
        layout = self.layout
        if state.num_bodies != layout.num_bodies:
            raise ValueError(
                f"The system has {layout.num_bodies} bodies, the state has "
                f"{state.num_bodies}. Give `State` one row for each body."
            )
        rules = {
            "position": [],
            "orientation": [
                (
                    lambda p: abs((p * p).sum(-1) - 1) <= 2e-6,
                    "`State(orientation=...)` must be unit quaternions, scalar first, to 1e-6. "
                    "Divide them by their norm if they are meant to be rotations.",
                )
            ],
            "velocity": [],
            "angular_velocity": [],
        }
        if not layout.translates:
            for name in ("position", "velocity"):
                message = (
                    f"`State({name}=...)` of a `FixedPointBody` must be zero: its fixed point is "
                    "the origin. Use a `System` for a body that translates."
                )
                rules[name].append((lambda v: v == 0, message))
        flags, messages = [], []
        for name, extra in rules.items():
            value, all_rules = getattr(state, name), [is_finite(f"State({name}=...)"), *extra]
            if is_traced(value):
                flags += [jnp.logical_not(valid(value)).any() for valid, _ in all_rules]
                messages += [message for _, message in all_rules]
            else:
                # A known value is checked on the host: this costs no compilation.
                check_all(value, all_rules)
        if not flags:
            return state
        # One check of the whole state, which keeps it where a part of the state is not used.
        violated = jnp.stack(flags)
        return raise_or_note(state, violated, messages)

    def chart(self, state: State, t: ArrayInput = 0.0) -> Charted:
        """Unknowns of a checked state together with the reference rotations of their charts.

        The reference is the identity unless the state is close to a singularity of it.
        """
        references = [jnp.zeros((0, 4), state.orientation.dtype)]
        for p in self.quaternions(state):
            identity = jnp.zeros_like(p).at[0].set(1)
            fresh = move_chart(self.rotation, p)
            chosen = jnp.where(needs_no_reference(self.rotation, p), identity, fresh)
            references.append(chosen[None])
        reference = jnp.concatenate(references)
        return Charted(self.pack(state, reference, t), reference)

    def quaternions(self, state: State) -> list[Float[Array, "4"]]:
        """Rotations that the unknowns have coordinates of."""
        return list(jnp.unstack(state.orientation))

    def rechart(self, t: Float[Array, ""], y: Charted) -> tuple[Charted, Array]:
        """Move the references of all bodies whose coordinates come close to a singularity.

        Half of the distance between the chart's centre and its singularity is the limit
        (Geradin-Rixen 5.4). **Returns:** the unknowns and whether any reference moved.
        """
        rotation, limit = self.rotation, chart_limit(self.rotation)
        state = self.decode(t, y)
        moved, references = [], []
        turned = self.quaternions(state)
        if not turned:
            return y, jnp.zeros((), bool)
        for i, a in enumerate(self.layout.rotations(y.values)):
            near = ~(rotation.singularity(a) > limit)
            fresh = move_chart(rotation, turned[i])
            references.append(jnp.where(near, fresh, y.reference[i]))
            moved.append(near)
        any_moved = jnp.any(jnp.stack(moved))
        reference = jnp.where(any_moved, jnp.stack(references), y.reference)
        packed = self.layout.with_angles(self.pack(state, reference, t), y.values)
        values = jnp.where(any_moved, packed, y.values)
        return Charted(values, reference), any_moved

    def singularity(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, ""]:
        """Smallest distance of any body's coordinates to a singularity, rad; `inf` if none."""
        values, _ = split_chart(y)
        distances = [self.rotation.singularity(a) for a in self.layout.rotations(values)]
        return jnp.min(jnp.asarray([jnp.inf, *distances], values.dtype))

    @property
    @abc.abstractmethod
    def of_system(self) -> AbstractSystemForm | None:
        """The formulation of all bodies of a `System` at once, `None` for a `FixedPointBody`."""

    def joint_coordinates(
        self, t: Float[Array, ""], y: Unknowns
    ) -> tuple[dict[str, Float[Array, " k"]], dict[str, Float[Array, " f"]]]:
        """Coordinates and rates of every joint, by its name (see `Solution.coordinates`).

        **Errors:** `ValueError` for a model without joints.
        """
        if self.of_system is None or not has_joints(self.system):
            raise ValueError("The model has no joints, so that there are no joint coordinates.")
        values, _ = split_chart(y)
        return self.of_system.joint_coordinates(t, join_chart(values[: self.layout.size], y))

    def reactions(
        self, t: Float[Array, ""], y: Unknowns
    ) -> dict[str, Reaction | ConstraintReaction]:
        """Reaction force and moment of every joint on its child, by the joint's name.

        Space components, about the joint point of the child. A constraint that is no joint
        (`Constraint`, `VelocityConstraint`, `Coupling`) has a `ConstraintReaction`: forces and
        moments on each of its bodies. With redundant constraints they are those of the multipliers
        of least norm.
        """
        return {} if self.of_system is None else self.of_system.reactions(t, y)

    @compiled
    def accelerations(self, t: Float[Array, ""], y: Unknowns) -> Twists:
        r"""Accelerations of all bodies, joints included.

        **Returns:** `linear`, of the centres of mass (of the fixed point, zero), space components,
        (L, 3) m/s^2; `angular`, $\dot\Omega$, body components, (L, 3) rad/s^2.
        """
        if self.of_system is not None:
            return self.of_system.accelerations(t, y)
        return self.mechanics.accelerations(t, self.kinematics(t, y))

    def frame_poses(
        self, t: Float[Array, ""], y: Unknowns
    ) -> dict[str, tuple[Float[Array, "3"], Float[Array, "3 3"]]]:
        """Pose of every `Frame` of the system by its name.

        **Returns:** position of the origin, (3,) m, space components, and rotation matrix (3, 3),
        frame to space; nothing for a `FixedPointBody`.
        """
        if not isinstance(self.system, System):
            return {}
        kinematics, out = self.kinematics(t, y), {}
        for frame in self.system.frames:
            row, _ = self.system.located(frame.body)
            out[frame.name] = frame.at(kinematics.positions[row], kinematics.rotations[row])
        return out

    @compiled
    def energy(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, ""]:
        """Total energy, kinetic and potential, J."""
        kinematics = self.kinematics(t, y)
        mechanics = self.mechanics
        return mechanics.kinetic_energy(kinematics) + mechanics.potential_energy(t, kinematics)

    @compiled
    def kinetic_energy(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, ""]:
        """Kinetic energy, that of rotors (`armature`) included, J."""
        return self.mechanics.kinetic_energy(self.kinematics(t, y))

    @compiled
    def potential_energy(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, ""]:
        """Potential energy of the forces that have one, J."""
        return self.mechanics.potential_energy(t, self.kinematics(t, y))

    @compiled
    def momentum(
        self, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Linear and angular momentum (about the origin), space components.

        **Returns:** two arrays of shape (3,), kg m/s and kg m^2/s.
        """
        return self.mechanics.momentum(self.kinematics(t, y))

    @compiled
    def centre_of_mass(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, "3"]:
        """Centre of mass of all bodies, (3,) m, space components.

        **Errors:** `ValueError` for a `FixedPointBody`.
        """
        kinematics = self.kinematics(t, y)
        mechanics = self.mechanics
        if not isinstance(mechanics, SystemMechanics):
            raise ValueError(
                "A `FixedPointBody` does not say where its centre of mass is. Use a `System` of a "
                "`Body` on a `Spherical` joint."
            )
        masses = mechanics.masses
        return masses @ jnp.asarray(kinematics.positions) / jnp.sum(masses)

    def centroidal_momentum(
        self, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Linear momentum, and angular momentum about the centre of mass, space components.

        Of bodies alone: what rotors (`armature`) have relative to them is left out, as in
        `momentum`.

        **Returns:** two arrays of shape (3,), kg m/s and kg m^2/s.
        **Errors:** `ValueError` for a `FixedPointBody`.
        **Source:** Orin, Goswami, Lee, Autonomous Robots 35 (2013) 161-176.
        """
        centre = self.centre_of_mass(t, y)
        linear, angular = self.momentum(t, y)
        return linear, angular - cross(centre, linear)

    @property
    def _body(self) -> FixedPointMechanics:
        assert isinstance(self.system, FixedPointBody)
        return FixedPointMechanics(self.system)

    def rotation_matrix(
        self, values: Float[Array, " N"], reference: Float[Array, "L 4"] | None, i: int
    ) -> Float[Array, "3 3"]:
        """Rotation matrix of body `i`, its chart's reference included."""
        R = self.rotation.to_matrix(self.layout.coordinates(values, i))
        return R if reference is None else in_space(euler_map(reference[i]), R)


@eqx.filter_jit
def _started(model: AbstractFormulation, state: State, t: Float[Array, ""]) -> Float[Array, " N"]:
    return model.start(state.normalized(), t)
