"""Base class of all formulations of the equations of motion."""

import abc
import functools
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Args, Matrix3, Scalar, T, Vector, Vector3
from ..bodies.fixed_point import FixedPointBody
from ..checks import (
    ArrayInput,
    check_all,
    check_one_precision,
    common_dtype,
    finite_rule,
    is_traced,
    known,
    raise_or_collect,
)
from ..mechanics import System, has_joints
from ..mechanics.dynamics.energies import kinetic_energy, potential_energy, total_momentum
from ..mechanics.dynamics.select import uses_elimination
from ..mechanics.kinematics.poses import with_joint_angles
from ..native import call_by_kernel
from ..persistent_jit import persistent_jit
from ..rotations.so3 import multiply
from ..small_arrays import cross
from ..state import State
from .binding import compile_free_method, compile_method
from .charts import (
    Charted,
    Unknowns,
    chart_limit,
    join_chart,
    move_chart,
    needs_no_reference,
    split_chart,
)
from .coordinates import AbstractCoordinates
from .joint_checks import check_joints, decode_for_check, needs_check

# Admitted violation of the constraints of a rotation, as for quaternions of a `State`.
_TOLERANCE = 2e-6


def check_form(model: "AbstractFormulation", y: Any) -> Unknowns:
    """Return finite unknowns of the right shape and precision, in charts if the model moves them.

    **Errors:** `TypeError` and `ValueError`.
    """
    values, reference = split_chart(y)
    kind = type(model).__name__
    if not isinstance(values, jax.Array | np.ndarray):
        raise TypeError(
            f"`simulate(y0=...)` takes the unknowns of the model, such as `sol.ys[-1]`; got "
            f"{type(y).__name__}. A `State` is given as `state0`."
        )
    if values.shape != (model.num_unknowns,):
        raise ValueError(
            f"`simulate(y0=...)` must have shape ({model.num_unknowns},), the unknowns of this "
            f"`{kind}`; got shape {values.shape}. Take one of many saved times, such as "
            "`sol.ys[-1]`; for many starts use `jax.vmap`."
        )
    precision = common_dtype(model)
    if values.dtype != precision:
        raise TypeError(
            f"`simulate(y0=...)` must be {precision} as the model; got {values.dtype}. Convert it "
            f"with `y0.astype({str(precision)!r})`."
        )
    if reference is not None and not model.recharting:
        raise ValueError(
            f"`simulate(y0=...)` has references of moving charts, which this `{kind}` does not "
            "have. Take unknowns of a run with the same model."
        )
    if model.recharting:
        shape = (model.layout.num_rotations, 4)
        if reference is None:
            reference = jnp.eye(1, 4, dtype=precision).repeat(shape[0], 0)
        elif reference.shape != shape:
            raise ValueError(
                f"`simulate(y0=...)` must have references of shape {shape}, one for each rotation; "
                f"got shape {reference.shape}."
            )
    rule = finite_rule("simulate(y0=...)")
    if is_traced(values):
        bad = jnp.logical_not(rule[0](values)).any()
        values = raise_or_collect(values, bad[None], [rule[1]])
    else:
        check_all(values, [rule])
    values = jnp.asarray(values)
    return values if reference is None else Charted(values, jnp.asarray(reference))


def check_rotations(model: "AbstractFormulation", y: Unknowns) -> Unknowns:
    """Return the unknowns; raise if they violate the constraints of their rotations."""
    if not (model.rotation.num_constraints and model.layout.num_rotations):
        return y
    message = (
        f"`simulate(y0=...)` violates the constraints of `{type(model.rotation).__name__}`, such "
        f"as unit length, by more than {_TOLERANCE:g}. `model.project(t0, y0)` gives unknowns that "
        "satisfy them."
    )
    violation = _internal_violation(model, jax.lax.stop_gradient(split_chart(y)[0]))
    if is_traced(violation):
        bad = ~(violation <= _TOLERANCE)
        return join_chart(raise_or_collect(split_chart(y)[0], bad[None], [message]), y)
    if not violation <= _TOLERANCE:
        raise ValueError(f"{message} Got {float(violation):.3g}.")
    return y


@persistent_jit
def _internal_violation(model: "AbstractFormulation", values: Float[Array, " N"]) -> Array:
    """Return the largest violation of the constraints of the rotations."""
    a = model.layout.rotations(values)
    return jnp.max(jnp.abs(jax.vmap(model.rotation.constraint)(a)))


class AbstractFormulation(AbstractCoordinates):
    """A system, a rotation parametrization, and a choice of unknowns.

    `encode` and `decode` translate between the unknowns `y` and the physical `State`;
    `vector_field(t, y, args)` is what `diffrax.ODETerm` takes. All of it is a pytree whose
    numbers (inertias, masses, parameters of forces) can be differentiated and batched.

    The order of `y`: positions $(x, a)$ body after body, velocities (body after body, or the
    generalised ones of the joints as in `rate_labels`), joint angles that are followed beyond pi,
    multipliers. `rigidjax.io.names.unknown_names(model)` names them.
    """

    recharting: eqx.AbstractVar[bool]

    def __repr__(self) -> str:
        """Return a summary in one line: the system, the options, the number of unknowns."""
        system = self.system
        if not isinstance(system, System | FixedPointBody):  # a pytree in the form of a model
            return eqx.tree_pformat(self)
        of = system.summary if isinstance(system, System) else "FixedPointBody"
        options = {"rotation": f"{type(self.rotation).__name__}()"} | {
            name: repr(value)
            for name, value in vars(self).items()
            if isinstance(value, str | bool | int)
        }
        listed = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"{type(self).__name__}({listed}) of {of}; {self.num_unknowns} unknowns"

    def __hash__(self) -> int:
        # Arrays have no hash, and `jax.jit(model.accelerations)` asks for one.
        return id(self)

    @abc.abstractmethod
    def vector_field(self, t: Scalar, y: Unknowns, args: Args = None) -> Unknowns:
        r"""Return the right-hand side $\dot y$."""

    @abc.abstractmethod
    def project(self, t: Scalar, y: Unknowns) -> Unknowns:
        """Project the unknowns onto the constraints by the explicit projection of the rotation."""

    @abc.abstractmethod
    def multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        """Return the Lagrange multipliers of the internal constraints, all bodies, J."""

    @property
    def num_unknowns(self) -> int:
        """Number of unknowns, multipliers included where the equations have them."""
        return self.layout.size + self.num_algebraic

    @property
    @abc.abstractmethod
    def num_algebraic(self) -> int:
        """Number of multipliers among the unknowns."""

    @property
    def sizes(self) -> set[int]:
        return {self.layout.size, self.num_unknowns}

    def encode(self, state: State, t: ArrayInput = 0.0) -> Float[Array, " N"]:
        """Return the unknowns of a physical state.

        **Arguments:** `state`, with unit quaternions (to 1e-6; normalised here); `t`, s, matters if
        a joint has a prescribed motion.
        **Returns:** shape (num_unknowns,).
        **Errors:** a wrong number of bodies, a zero, NaN or non-unit quaternion, a `FixedPointBody`
        with position or velocity, a state that the joints do not allow (the message says which
        joint and by how much; see `rj.consistent_state`).
        """
        state = self.check_state(state, t)
        t = jnp.asarray(t, state.position.dtype)
        started = _started if is_traced((self, state, t)) else _started_as_kernel
        return started(self.separate_arrays(), state, t)

    def start(self, state: State, t: ArrayInput = 0.0) -> Float[Array, " N"]:
        """Encode a state with unit quaternions without checks.

        Multipliers are those of the accelerations in this state; multipliers of a stabilisation are
        zero.
        """
        return self.with_multipliers(t, self.pack(state, None, t))

    def place_start(self, state: State, t: ArrayInput) -> State:
        """Return the state from which a run that was given a state starts at `t`, s."""
        return state

    def with_multipliers(self, t: ArrayInput, y: Vector) -> Float[Array, " N"]:
        """Append the multipliers to the other unknowns; see `start`."""
        if self.num_algebraic == 0:
            return y
        lam = self.multipliers(jnp.asarray(t, y.dtype), y)
        rest = jnp.zeros(self.num_algebraic - lam.size, y.dtype)
        return jnp.concatenate([y, lam, rest])

    @compile_free_method
    def decode(self, t: Scalar, y: Unknowns) -> State:
        """Return the physical state of the unknowns; the quaternion's sign is arbitrary.

        **Arguments:** `t`, s; `y`, shape (num_unknowns,) or `Charted`.
        """
        values, reference = split_chart(y)
        p = jax.vmap(self.rotation.to_quaternion)(self.layout.rotations(values))
        p = p if reference is None else jax.vmap(multiply)(reference, p)
        poses, joint_frames, twists = self.motion(t, y)
        state = State(poses.positions[:-1], p, twists.linear, twists.angular)
        return with_joint_angles(self.prepared_system, state, joint_frames)

    def check_state(self, state: State, t: ArrayInput = 0.0) -> State:
        """Check the state and return it without normalising it; errors as in `encode`."""
        state = self.check_rows(state)
        return check_joints(self, state, t, state) if needs_check(self) else state

    def check_unknowns(self, y: Unknowns, t: ArrayInput = 0.0) -> Unknowns:
        """Check the unknowns from which a run continues at `t`, s; return them in charts if the
        model moves its charts.

        **Errors:** `TypeError` for an object that is not an array of unknowns, or has another
        precision; `ValueError` for another shape, NaN, and unknowns that violate constraints of the
        rotation or of joints.
        """
        checked, y = self.check_form(y)
        if not has_joints(self.system):
            return y
        state = decode_for_check(self, jnp.asarray(t, split_chart(y)[0].dtype), checked)
        return check_joints(self, state, t, y)

    def check_form(self, y: Unknowns) -> tuple[Unknowns, Unknowns]:
        """Check unknowns as `check_unknowns` does, but not whether the joints allow them.

        **Returns:** the unknowns without a check at run time, and with it.
        """
        y = check_form(self, y)
        return y, self._check_mass(check_rotations(self, y))

    def _check_mass(self, start: T) -> T:
        """Return the start; raise if a body has lost the inertia that it was built with."""
        system = self.multibody
        return (
            system.with_all_mass(start) if needs_check(self) and uses_elimination(system) else start
        )

    def check_rows(self, state: State) -> State:
        """Check a state as `check_state` does, but not whether the joints allow it."""
        if not isinstance(state, State):
            hint = ""
            if isinstance(state, Charted | jax.Array | np.ndarray):
                hint = " `simulate` takes unknowns of the model as `y0=`."
            raise TypeError(f"A formulation encodes a `State`; got {type(state).__name__}.{hint}")
        layout = self.layout
        state.check_rows(layout.num_bodies)
        parts = ("the model", self), ("the `State`", state)
        check_one_precision("A model with its start", parts)
        self.multibody.check_angle_names(state)
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
            all_rules = [finite_rule(f"State({name}=...)"), *extra]
            value = known(getattr(state, name))
            if is_traced(value):
                flags += [jnp.logical_not(valid(value)).any() for valid, _ in all_rules]
                messages += [message for _, message in all_rules]
            else:
                # A concrete value is checked on the host: this costs no compilation.
                check_all(value, all_rules)
        state = self._check_mass(state)
        if not flags:
            return state
        # One check of the whole state: it remains even if only a part of the state is used.
        violated = jnp.stack(flags)
        return raise_or_collect(state, violated, messages)

    def replace(self, **values: ArrayInput) -> Self:
        """Return the model with other values of named arrays: `replace(**{"hinge.damping": 0.2})`.

        Names are those of `rj.Parameter`, such as `arm.mass` or `Spring.stiffness`. Differentiable
        with respect to the values; a damping or an armature that was left out gets one.

        The checks of the constructors, such as that of a negative mass, are not repeated.
        **Arguments:** `values`, each in the shape of the array, or a number for all its entries.
        **Errors:** `ValueError` for an unknown name, with the nearest ones, and for another shape.
        """
        from .leaves import replace_named

        return replace_named(self, values)

    def chart(self, state: State, t: ArrayInput = 0.0) -> Charted:
        """Return the unknowns of a checked state with the reference rotations of their charts.

        The reference is the identity unless the state is close to a singularity of it.
        """
        p = self.quaternions(state)
        identity = jnp.eye(1, 4, dtype=p.dtype)
        fresh = jax.vmap(lambda p: move_chart(self.rotation, p))(p)
        serves = jax.vmap(lambda p: needs_no_reference(self.rotation, p))(p)
        reference = jnp.where(serves[:, None], identity, fresh)
        return Charted(self.pack(state, reference, t), reference)

    def rechart(self, t: Scalar, y: Charted) -> tuple[Charted, Array]:
        """Move the references of all bodies whose coordinates come close to a singularity.

        Half of the distance between the chart's centre and its singularity is the limit
        (Geradin-Rixen 5.4). **Returns:** the unknowns and whether any reference moved.
        """
        if not self.layout.num_rotations:
            return y, jnp.zeros((), bool)
        state = self.decode(t, y)
        fresh = jax.vmap(lambda p: move_chart(self.rotation, p))(self.quaternions(state))
        near = ~(self._distances(y) > chart_limit(self.rotation))
        reference = jnp.where(near[:, None], fresh, y.reference)
        any_moved = jnp.any(near)
        packed = self.layout.with_angles(self.pack(state, reference, t), y.values)
        values = jnp.where(any_moved, packed, y.values)
        return Charted(values, reference), any_moved

    def singularity(self, t: Scalar, y: Unknowns) -> Scalar:
        """Return the smallest distance of a body's coordinates to a singularity, rad, or `inf`."""
        return jnp.min(self._distances(y), initial=jnp.inf)

    def _distances(self, y: Unknowns) -> Float[Array, " k"]:
        """Return the distance of the coordinates of every rotation to a singularity."""
        values, _ = split_chart(y)
        distances = jax.vmap(self.rotation.singularity)(self.layout.rotations(values))
        return distances.astype(values.dtype)

    def joint_coordinates(
        self, t: Scalar, y: Unknowns
    ) -> tuple[dict[str, Float[Array, " k"]], dict[str, Float[Array, " f"]]]:
        """Return the coordinates and rates of every joint by name (see `Solution.coordinates`).

        **Errors:** `ValueError` for a model without joints.
        """
        if not has_joints(self.system):
            raise ValueError("The model has no joints, so that there are no joint coordinates.")
        return self._joint_coordinates(t, self.without_multipliers(y))

    def frame_poses(self, t: Scalar, y: Unknowns) -> dict[str, tuple[Vector3, Matrix3]]:
        """Return the pose of every `Frame` of the system by its name.

        **Returns:** position of the origin, (3,) m, space components, and rotation matrix (3, 3),
        frame to space; nothing for a `FixedPointBody`.
        """
        kinematics, out, system = self.kinematics(t, y), {}, self.multibody
        for frame in system.frames:
            row, _ = system.locate(frame.body)
            out[frame.name] = frame.at(kinematics.positions[row], kinematics.rotations[row])
        return out

    @compile_method
    def energy(self, t: Scalar, y: Unknowns) -> Scalar:
        """Return the total energy, kinetic and potential, J."""
        kinematics = self.kinematics(t, y)
        prepared = self.prepared_system
        return kinetic_energy(prepared, kinematics) + potential_energy(prepared, t, kinematics)

    @compile_free_method
    def kinetic_energy(self, t: Scalar, y: Unknowns) -> Scalar:
        """Return the kinetic energy, that of rotors (`armature`) included, J."""
        return kinetic_energy(self.prepared_system, self.kinematics(t, y))

    @compile_method
    def potential_energy(self, t: Scalar, y: Unknowns) -> Scalar:
        """Return the potential energy of the forces that have one, J."""
        return potential_energy(self.prepared_system, t, self.kinematics(t, y))

    @compile_method
    def momentum(self, t: Scalar, y: Unknowns) -> tuple[Vector3, Vector3]:
        """Return the linear and angular momentum (about the origin), space components.

        **Returns:** two arrays of shape (3,), kg m/s and kg m^2/s.
        """
        return total_momentum(self.prepared_system, self.kinematics(t, y))

    @compile_method
    def centre_of_mass(self, t: Scalar, y: Unknowns) -> Vector3:
        """Return the centre of mass of all bodies, (3,) m, space components.

        **Errors:** `ValueError` for a `FixedPointBody`.
        """
        kinematics, prepared = self.kinematics(t, y), self.prepared_system
        if not prepared.system.translates:
            raise ValueError(
                "A `FixedPointBody` does not say where its centre of mass is. Use a `System` of a "
                "`Body` on a `Spherical` joint."
            )
        masses = prepared.masses
        return masses @ jnp.asarray(kinematics.positions) / jnp.sum(masses)

    def centroidal_momentum(self, t: Scalar, y: Unknowns) -> tuple[Vector3, Vector3]:
        """Return linear momentum and angular momentum about the centre of mass, space components.

        The motion of rotors (`armature`) relative to the bodies is left out, as in `momentum`.

        **Returns:** two arrays of shape (3,), kg m/s and kg m^2/s.
        **Errors:** `ValueError` for a `FixedPointBody`.
        **Source:** Orin, Goswami, Lee, Autonomous Robots 35 (2013) 161-176.
        """
        centre = self.centre_of_mass(t, y)
        linear, angular = self.momentum(t, y)
        return linear, angular - cross(centre, linear)


def _start(model: AbstractFormulation, state: State, t: Scalar) -> Float[Array, " N"]:
    return model.start(state.normalized(), t)


_started = persistent_jit(_start)
_started_as_kernel = persistent_jit(functools.partial(call_by_kernel, _start))
