"""Inverse dynamics of trees as a matrix times the inertial parameters of the bodies."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...bodies import Body, MassProperties
from ...forces import AbstractActuator, Gravity, Motor
from ...formulations import AbstractFormulation
from ...joints import Friction
from ...joints.replacing import replace_fields
from ...mechanics import System, check_constant_masses, rate_labels
from ...mechanics.dynamics.loads import applied_wrenches
from ...mechanics.kinematics.poses import (
    Twists,
    joint_frames_at,
    kinematics_for_forces,
    poses_of_state,
)
from ...mechanics.kinematics.trees import (
    body_accelerations,
    body_twists,
    generalised_velocities,
    null_space,
)
from ...mechanics.stacked.joints import Poses
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.euler_map import euler_map
from ...rotations.matrix import to_body, to_space
from ...small_arrays import cross
from ...state import State

# Names in the order of `MassProperties.parameters`.
NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


def regressor(
    model: System | AbstractFormulation, states: State, accelerations: ArrayLike
) -> Float[Array, "*T f p"]:
    r"""Return the matrix $Y$ of the inverse dynamics $\tau = Y(q, \dot q, \ddot q)\,\pi$ of a tree.

    $\tau$ are the generalised forces on the generalised velocities $\nu$ (`rate_labels`) that the
    motion requires against inertia and gravity: those of actuators and all other forces together.
    $\pi$ contains for each body the ten values of `MassProperties.parameters`: mass, first moments,
    and inertia about the origin of the body frame, in its axes. That origin, at `Body.position`,
    need not be the centre of mass here. Columns are derivatives of the wrench, which are exact
    because it is linear.

    **Arguments:** `model`, a tree, or a formulation of one; its masses and inertias are ignored,
    its `Gravity` is used; `states`, leaves (L, ...) or (T, L, ...); `accelerations`, $\dot\nu$,
    (f,) or (T, f), m/s^2 and rad/s^2.
    **Returns:** shape (f, 10 L), or (T, f, 10 L).
    **Errors:** `ValueError` for closed loops, prescribed motions, actuators, wrong shapes;
    `TypeError` if the model is not a system of bodies.
    **Source:** Atkeson, An, Hollerbach, Int. J. Robotics Res. 5 (1986) 101, eq. (9), (12).
    """
    system = check_tree(model)
    nu_dot = jnp.asarray(accelerations, float)
    count = sum(system.rates_of_bodies)
    shape = (*states.position.shape[:-2], count)
    if nu_dot.shape != shape or states.position.shape[-2] != system.num_bodies:
        raise ValueError(
            f"`regressor(states, accelerations)` takes states of {system.num_bodies} bodies and "
            f"accelerations of shape {shape}, one column for each of {list(rate_labels(system))}; "
            f"got {nu_dot.shape}."
        )
    one = (
        _regressor_of_state
        if nu_dot.ndim == 1
        else jax.vmap(_regressor_of_state, in_axes=(None, None, 0, 0))
    )
    prepared, gravity = split_gravity(system)
    return jax.jit(one)(prepared, gravity, states, nu_dot)


def _regressor_of_state(
    prepared: PreparedSystem, gravity: Float[Array, "3"], state: State, nu_dot: Float[Array, " f"]
) -> Float[Array, "f p"]:
    poses = poses_of_state(prepared, state)
    joint_frames, t = joint_frames_at(prepared, poses), jnp.zeros((), state.position.dtype)
    nu = generalised_velocities(
        prepared, t, joint_frames, Twists(state.velocity, state.angular_velocity)
    )
    return inverse_dynamics(prepared, gravity, poses, nu, nu_dot)[0]


def inverse_dynamics(
    prepared: PreparedSystem,
    gravity: Float[Array, "3"],
    poses: Poses,
    nu: Float[Array, " f"],
    nu_dot: Float[Array, " f"],
) -> tuple[Float[Array, "f p"], Float[Array, " f"]]:
    """Return the regressor, and the generalised forces of all forces of the system."""
    t, joint_frames = jnp.zeros((), nu.dtype), joint_frames_at(prepared, poses)
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    change = body_accelerations(prepared, t, poses, nu, nu_dot)
    wrenches = jax.vmap(_wrench_columns)(
        poses.rotations[:-1], twists.angular, change.linear - gravity[None], change.angular
    )
    T = null_space(prepared, poses, joint_frames)
    Y = jnp.einsum("lif,lip->flp", T, wrenches).reshape(nu.shape[0], -1)
    applied = applied_wrenches(
        prepared, t, kinematics_for_forces(prepared, poses, joint_frames, twists)
    )
    return Y, jnp.einsum("lif,li->f", T, applied)


def _wrench_columns(
    R: Float[Array, "3 3"], omega: Float[Array, "3"], a: Float[Array, "3"], alpha: Float[Array, "3"]
) -> Float[Array, "6 10"]:
    """Return the wrench at the origin of a body frame for each inertial parameter.

    The force is in space components. `a`, acceleration of the origin minus gravity, space
    components; `alpha`, angular acceleration, body components.
    """
    a_body = to_body(R, a)

    def wrench(p):
        first = p[1:4]
        about = jnp.stack([p[4], p[5], p[7], p[5], p[6], p[8], p[7], p[8], p[9]]).reshape(3, 3)
        force = p[0] * a_body + cross(alpha, first) + cross(omega, cross(omega, first))
        spin = to_space(about, omega)
        moment = to_space(about, alpha) + cross(omega, spin) + cross(first, a_body)
        return jnp.concatenate([to_space(R, force), moment])

    return jax.jacfwd(wrench)(jnp.zeros(10, R.dtype))


def check_tree(model: Any) -> System:
    """Return the system of a model, after checking that it is a tree with free joints."""
    system = model.system if isinstance(model, AbstractFormulation) else model
    if not isinstance(system, System):
        raise TypeError(
            "The regression of inertial parameters takes a `System`, or a formulation of one; got "
            f"{type(system).__name__}."
        )
    if system.has_loops:
        closing = [system.joints[j].name for j in system.topology.loops]
        closing += [constraint.name for constraint in system.constraints]
        raise ValueError(
            f"The regression of inertial parameters takes a tree; the joints {closing} close "
            "loops, whose reactions are unknown. Use `rj.identify`."
        )
    check_constant_masses("The regression of inertial parameters", system)
    for joint in system.joints:
        if joint.armatures is not None:
            raise ValueError(
                f"The regression of inertial parameters has no rotors in its model: leave the "
                f"`armature` of the joint {joint.name!r} out; in `joint_data` it is the term "
                '"rotor", which is estimated.'
            )
        if joint.is_driven:
            raise ValueError(
                f"The motion of the joint {joint.name!r} is prescribed: leave `motion` out, the "
                "motion is given by the states."
            )
    for force in system.forces:
        if isinstance(force, Motor | AbstractActuator):
            raise ValueError(
                "`regressor`, `joint_data` and `regress` take a system without actuators, whose "
                "forces are what the regression explains: leave out the "
                f"`{type(force).__name__}` on {force.joint!r}."
            )
    return system


def split_gravity(system: System) -> tuple[PreparedSystem, Float[Array, "3"]]:
    """Return the system with all forces but gravity, prepared, and the sum of gravity, m/s^2."""
    total = jnp.zeros(3, system.bodies[0].mass.dtype)
    for force in system.forces:
        if isinstance(force, Gravity):
            total = total + force.vector
    others = [force for force in system.forces if not isinstance(force, Gravity)]
    items = (*system.joints, *system.constraints)
    unloaded = System(system.bodies, items, others, system.frames, closing=system.closing)
    return PreparedSystem(unloaded), total


def inertial_parameters(system: System) -> Float[Array, " p"]:
    """Return the ten parameters of every body, (10 L,), about the origins of the body frames."""
    return jnp.concatenate([body.mass_properties.parameters() for body in system.bodies])


def parameter_labels(system: System) -> tuple[str, ...]:
    """Return `"body.m"`, `"body.mx"`, ..., `"body.Izz"`, in the order of `inertial_parameters`."""
    return tuple(f"{body.name}.{name}" for body in system.bodies for name in NAMES)


def with_inertial_parameters(system: System, parameters: ArrayLike) -> System:
    """Return the tree with other inertial parameters; joints and frames keep their places.

    **Arguments:** `system`, whose forces are `Gravity` or act on joints or frames; `parameters`,
    (10 L,), physical.
    **Errors:** `ValueError` for a wrong shape, for parameters that are not physical, and for a
    force attached to a body, as body frames move to the new centres of mass.
    """
    values = np.asarray(parameters, float)
    if values.shape != (10 * system.num_bodies,):
        raise ValueError(
            f"`with_inertial_parameters(parameters=...)` must have shape "
            f"({10 * system.num_bodies},); got {values.shape}."
        )
    for force in system.forces:
        if not {*force.body_names()} <= {"ground", *(frame.name for frame in system.frames)}:
            raise ValueError(
                "`with_inertial_parameters` moves body frames, to which the "
                f"{type(force).__name__} on {list(force.body_names())} is attached. Build "
                "a new system."
            )
    properties = [MassProperties.from_parameters(part) for part in values.reshape(-1, 10)]
    bodies = [
        _replace_mass_properties(body, body_properties)
        for body, body_properties in zip(system.bodies, properties, strict=True)
    ]
    arms = {
        body.name: body_properties.center
        for body, body_properties in zip(bodies, properties, strict=True)
    }
    frames = [
        eqx.tree_at(lambda f: f.point, frame, frame.point - arms[frame.body])
        for frame in system.frames
    ]
    new = System(bodies, (*system.joints, *system.constraints), system.forces, frames)
    return new.tracking(system.tracked) if system.tracked else new


def _replace_mass_properties(body: Body, properties: MassProperties) -> Body:
    arm = to_space(euler_map(body.orientation), properties.center)
    spin = to_space(euler_map(body.orientation), body.angular_velocity)
    return eqx.tree_at(
        lambda b: (b.mass, b.inertia, b.position, b.velocity),
        body,
        (properties.mass, properties.tensor, body.position + arm, body.velocity + cross(spin, arm)),
    )


# Fields of joints that the torque terms of `joint_data` stand for.
_FIELDS = {"viscous": "damping", "coulomb": "friction", "rotor": "armature"}


def describe_in_frames(
    system: System, frames: Mapping[str, Any]
) -> tuple[System, dict[str, MassProperties]]:
    """Return a tree whose bodies have their inertial parameters about given origins.

    A body of a model file has its origin at its nominal centre of mass; its parameters mean more
    about the origin of its link. The axes of the bodies stay.

    **Arguments:** `system`, with the bodies; `frames`, by the name of the body, such as
    `Model.frames`.
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
