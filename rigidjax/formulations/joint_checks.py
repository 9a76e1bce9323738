"""Checks that joints allow a state, and that every motion in it has mass."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..annotations import Matrix3, Scalar, T, Vector3
from ..bodies.body import Body
from ..checks import ArrayInput, is_traced, known, raise_or_collect
from ..mechanics.dynamics.loads import applied_wrenches
from ..mechanics.dynamics.loops import loop_gradient
from ..mechanics.kinematics.constraints import (
    alignments,
    constraint_rates,
    constraint_units,
    constraint_values,
    constraints_are_lengths,
    largest_by_joint,
)
from ..mechanics.kinematics.poses import (
    Twists,
    joint_frames_at,
    kinematics_for_forces,
    poses_of_state,
)
from ..mechanics.kinematics.trees import bodies_of_rates, null_space, rate_lengths
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import PreparedSystem
from ..native import call_by_kernel
from ..persistent_jit import persistent_jit
from ..small_arrays import sequential_vmap_on_cpu
from ..state import State
from .binding import bind_start
from .charts import Unknowns

if TYPE_CHECKING:
    from .coordinates import AbstractCoordinates

# Violations of a joint that a state may have: positions relative to the mechanism's length (angles
# in rad), velocities relative to the largest rate.
TOLERANCE = 1e-6
# Round-off of positions far from the origin that is no violation, in units of the last place.
_ROUND_OFF = 8
# Rates that count as rest, rad/s.
_REST = 1e-12
# Smallest part of the trace of an inertia that counts as a moment of inertia, and smallest part of
# a motion that counts as one of bodies with mass.
_MASSLESS, _MOVES = 1e-14, 1e-8


def decode_for_check(model: Any, t: Scalar, y: Unknowns) -> State:
    """Return the state of unknowns; within transformations, without derivatives."""
    if not is_traced((model, t, y)):
        return model.decode(t, y)
    return _call_without_derivatives(type(model).decode, model, t, y)


class StartFaults(NamedTuple):
    """Faults of a start.

    **Attributes:** `position`, `velocity`, relative violations of each joint, (J,); `cosines`,
    its alignment, (J,); `massless`, a body that lacks mass, or -1, (1,).
    """

    position: Float[Array, " J"]
    velocity: Float[Array, " J"]
    cosines: Float[Array, " J"]
    massless: Int[Array, "1"]

    @property
    def flags(self) -> Bool[Array, " m"]:
        """A flag for each message of `messages_of`."""
        return jnp.concatenate([
            self.position > TOLERANCE, self.cosines < 0, self.velocity > TOLERANCE,
            self.massless >= 0,
        ])  # fmt: skip


def messages_of(model: "AbstractCoordinates") -> list[str]:
    """Return the message for each flag of the faults of a start."""
    names = model.multibody.closing_names
    return [
        *(_position_message(model, name) for name in names),
        *(_turned_message(name) for name in names),
        *(_velocity_message(name) for name in names),
        _MASSLESS_MESSAGE.format(body="A body"),
    ]


def needs_check(model: "AbstractCoordinates") -> bool:
    """Return whether a start can violate joints, or bodies can lack mass."""
    system = model.multibody
    if system.joints or system.constraints:
        return True
    return not is_traced(known(system.bodies)) and not all_have_mass(system.bodies)


def check_joints(model: "AbstractCoordinates", state: State, t: ArrayInput, start: T) -> T:
    """Return `start`, the state or its unknowns; errors where the state violates a joint, or a body
    lacks mass that it needs."""
    massive = all_have_mass(model.multibody.bodies)
    if is_traced(known((model, state, t))):
        faults = find_faults(bind_start(model), state, t, massive)
        return raise_or_collect(start, faults.flags, messages_of(model))
    with eval_context():  # also where a function under trace closes over them
        # As an array: a Python number would be a constant and compile again for every time.
        plain, state, t = known((model, state, t))
        t = np.asarray(t, state.position.dtype)
        plain = bind_start(plain).separate_arrays()
        raise_faults(model, _compiled_faults(plain, state, t, massive))
    return start


def raise_faults(model: "AbstractCoordinates", faults: StartFaults) -> None:
    """Raise `ValueError` if a start has faults whose values are known."""
    names = model.multibody.closing_names
    position, velocity, cosines, massless = map(np.asarray, faults)
    for name, values in (("position", position), ("velocity", velocity)) if names else ():
        worst = int(np.argmax(values))
        if not values[worst] <= TOLERANCE:
            joint = names[worst]
            is_position = name == "position"
            message = _position_message(model, joint) if is_position else _velocity_message(joint)
            raise ValueError(f"{message} Got {values[worst]:.3g}.")
        turned = int(np.argmin(cosines))
        if cosines[turned] < 0:
            angle = np.degrees(np.arccos(max(cosines[turned], -1.0)))
            raise ValueError(f"{_turned_message(names[turned])} Got {angle:.4g} degrees.")
    if massless[0] >= 0:
        raise ValueError(_MASSLESS_MESSAGE.format(body=_describe_body(model, int(massless[0]))))


def _position_message(model: "AbstractCoordinates", joint: str) -> str:
    message = (
        f"The positions of the state violate the joint {joint!r} (m or rad). "
        "`rj.consistent_state(system, state)` gives the nearest state that the joints allow."
    )
    system = model.multibody
    coupled = [x for one in system.constraints if one.name == joint for x in one.joint_names()]
    hinges = ", ".join(f"{name!r}: ..." for name in system.angle_names if name in coupled)
    if not hinges:
        return message
    return f"{message} Revolutions are part of a state: `rj.State(..., angles={{{hinges}}})`."


def _turned_message(joint: str) -> str:
    return (
        f"The child of the joint {joint!r} is the wrong way round: turned by half a turn against "
        "directions that the joint keeps alike. Turn the body, or `rj.consistent_state(system, "
        "state)` gives the nearest state that the joints allow."
    )


def _velocity_message(joint: str) -> str:
    return (
        f"The velocities of the state violate the joint {joint!r} (m/s or rad/s). "
        "`rj.consistent_state(system, state)` gives the nearest state that the joints allow."
    )


_MASSLESS_MESSAGE = (
    "{body} has no mass or inertia in a direction in which the joints and this formulation let it "
    "move, so that its acceleration is not determined. Give it some, or fix it by a joint; "
    "`NullSpace` needs mass in the free directions only, `Absolute` in all."
)


def find_faults(
    model: "AbstractCoordinates", state: State, t: ArrayInput, massive: bool
) -> StartFaults:
    """Return the faults of a start; `massive`, whether no body lacks mass."""
    return _call_without_derivatives(_faults_of, model, state, t, massive)


def _call_without_derivatives(function: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """Call a function of a check, which has no derivatives, nor have its factorisations."""
    numbers, rest = eqx.partition(args, eqx.is_inexact_array)
    return call_by_kernel(function, *eqx.combine(jax.lax.stop_gradient(numbers), rest))


def _faults_of(model: Any, state: State, t: Scalar, massive: bool) -> StartFaults:
    prepared = model.prepared_system
    state = state.normalized()
    t = jnp.asarray(t, state.position.dtype)
    poses = poses_of_state(prepared, state)
    joint_frames = joint_frames_at(prepared, poses)
    twists = Twists(state.velocity, state.angular_velocity)
    both = violations(prepared, t, poses, joint_frames, twists)
    massless = -jnp.ones(1, int) if massive else _massless(model, t, poses, joint_frames)
    return StartFaults(*both, alignments(prepared, joint_frames), massless)


_compiled_faults = persistent_jit(find_faults)


def violations(
    prepared: PreparedSystem, t: Scalar, poses: Poses, joint_frames: JointFrames, twists: Twists
) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
    """Return the violation of each joint relative to the size of its mechanism (rad for angles),
    beyond round-off, and its rate relative to the largest rate."""
    units = constraint_units(prepared)
    far = jnp.max(jnp.abs(poses.positions)) * (_ROUND_OFF * jnp.finfo(units.dtype).eps / TOLERANCE)
    allowed = units + jnp.where(constraints_are_lengths(prepared), far, 0.0)
    still = Twists(jnp.zeros_like(twists.linear), jnp.zeros_like(twists.angular))
    driven = jnp.abs(constraint_rates(prepared, t, joint_frames, still) / units)
    rate = jnp.abs(constraint_rates(prepared, t, joint_frames, twists) / units)
    moving = _largest_rate(prepared, t, poses, joint_frames, twists)
    largest = jnp.maximum(moving, jnp.max(driven, initial=0.0))
    velocity = rate / jnp.maximum(largest, _REST / TOLERANCE)
    position = jnp.abs(constraint_values(prepared, t, joint_frames)) / allowed
    return largest_by_joint(prepared, position), largest_by_joint(prepared, velocity)


def _largest_rate(
    prepared: PreparedSystem, t: Scalar, poses: Poses, joint_frames: JointFrames, twists: Twists
) -> Array:
    """Return the largest rate of a motion, rad/s; velocities over the length of their mechanism.

    Near rest it is the rate that the forces on a body, if it were free, would give it in the time
    in which they move it by that length.
    """
    lengths, masses = prepared.lengths[:, None], prepared.masses[:, None]
    applied = applied_wrenches(
        prepared, t, kinematics_for_forces(prepared, poses, joint_frames, twists)
    )
    pull = jnp.concatenate([applied[:, :3], applied[:, 3:] / lengths], axis=1)
    squares = jnp.abs(pull) / (jnp.where(masses > 0, masses, 1.0) * lengths)
    squares = jnp.where((masses > 0) & jnp.isfinite(squares), squares, 0.0)
    moving = jnp.concatenate([twists.linear / lengths, twists.angular], axis=1)
    return jnp.maximum(jnp.max(jnp.abs(moving)), jnp.sqrt(jnp.max(squares)))


def _describe_body(model: "AbstractCoordinates", row: int) -> str:
    """Return a body with the joint that it is attached to, for messages."""
    system = model.multibody
    j, name = system.topology.joints[row], system.bodies[row].name
    if j is None:
        return f"The body {name!r}"
    return f"The body {name!r}, which is attached to the joint {system.joints[j].name!r},"


def all_have_mass(bodies: Sequence[Body]) -> bool:
    """Return whether bodies are known to have mass and inertia about every axis."""
    bodies = known(bodies)
    if is_traced(bodies):
        return False
    for body in bodies:
        inertia = np.asarray(body.inertia)
        moments = inertia if inertia.ndim == 1 else np.linalg.eigvalsh(inertia)
        if not (np.asarray(body.mass) > 0 and np.all(moments > _MASSLESS * np.sum(moments))):
            return False
    return True


def _massless(
    model: "AbstractCoordinates", t: Scalar, poses: Poses, joint_frames: JointFrames
) -> Array:
    """Return a body that moves without any mass, or -1, (1,).

    Every motion of bodies that all have mass in all directions moves some of it. Otherwise test
    whether the motions that the joints allow are independent where bodies have mass. This depends
    on the geometry alone, not on the size of the masses.
    """
    prepared = model.prepared_system
    moved, lacking = jax.vmap(_directions_with_mass)(prepared.masses, prepared.inertias)
    if model.needs_all_mass or not prepared.num_rates:
        return jnp.where(jnp.any(lacking), jnp.argmax(lacking), -1)[None]

    def weakest():
        T = null_space(prepared, poses, joint_frames) * rate_lengths(prepared)[None, None]
        T = T.at[:, :3].divide(prepared.lengths[:, None, None])
        rows = jnp.einsum("lij,ljf->lif", moved, T).reshape(-1, prepared.num_rates)
        if prepared.system.has_loops:
            rows = jnp.concatenate([rows, loop_gradient(prepared, t, poses, joint_frames).matrix])
        sizes, motion = _weakest(rows)
        body = jnp.asarray(bodies_of_rates(prepared))[jnp.argmax(jnp.abs(motion))]
        limit = max(_MOVES, 10 * float(jnp.finfo(rows.dtype).eps))
        return jnp.where(sizes[-1] <= limit * sizes[0], body, -1)

    return jax.lax.cond(jnp.any(lacking), weakest, lambda: -jnp.ones((), int))[None]


def _directions_with_mass(mass: Scalar, inertia: Vector3 | Matrix3):
    """Return the projector onto the twists that have mass, (6, 6), and whether some have none."""
    principal = inertia.ndim == 1
    moments, axes = (inertia, jnp.eye(3, dtype=inertia.dtype)) if principal else _principal(inertia)
    turns = moments > _MASSLESS * jnp.sum(moments)
    projector = (axes * turns[None].astype(axes.dtype)) @ axes.T
    shift = jnp.broadcast_to(jnp.where(mass > 0, 1.0, 0.0), (3,)).astype(projector.dtype)
    both = jax.scipy.linalg.block_diag(jnp.diag(shift), projector)
    return both, ~(jnp.all(turns) & (mass > 0))


_principal = sequential_vmap_on_cpu(lambda inertia: tuple(jnp.linalg.eigh(inertia)))


@sequential_vmap_on_cpu
def _weakest(rows: Float[Array, "m f"]):
    """Return the singular values, and the motion that belongs to the smallest one."""
    _, sizes, motions = jnp.linalg.svd(rows, full_matrices=False)
    return sizes, motions[-1]
