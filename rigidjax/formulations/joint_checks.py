"""Whether a state is one that the joints allow and in which every motion moves some mass."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, is_traced, raise_or_note
from ..rotations.euler_map import euler_map
from ..state import State
from ..system.dynamics import mass_of_rates
from ..system.jointed import JointedMechanics, Twists

if TYPE_CHECKING:
    from .jointed import AbstractJointed

# Violations of a joint that a state may have, in m, rad, m/s, rad/s, relative to the largest
# entry of its positions or velocities if that is above one.
TOLERANCE = 1e-6
# Smallest ratio of generalised masses that counts as a mass.
_MASSLESS = 1e-14


def check_joints(jointed: "AbstractJointed", state: State, t: ArrayInput) -> State:
    """The state; errors where it violates a joint, or a body lacks mass that it needs."""
    joints = jointed.system.joints
    if is_traced((jointed, state, t)):
        position, velocity, massless = _faults(jointed, state, t)
        flags = jnp.concatenate([position > TOLERANCE, velocity > TOLERANCE, massless[:1] >= 0])
        messages = [_position_message(joint.name) for joint in joints]
        messages += [_velocity_message(joint.name) for joint in joints]
        messages += [_MASSLESS_MESSAGE.format(body="A body")]
        return raise_or_note(state, flags, messages)
    with jax.ensure_compile_time_eval():  # also where a function under trace closes over them
        position, velocity, massless = map(np.asarray, _compiled_faults(jointed, state, t))
    for name, values in (("position", position), ("velocity", velocity)):
        worst = int(np.argmax(values))
        if not values[worst] <= TOLERANCE:
            message = _position_message if name == "position" else _velocity_message
            raise ValueError(f"{message(joints[worst].name)} Got {values[worst]:.3g}.")
    if massless[0] >= 0:
        body = jointed.system.bodies[int(massless[0])].name
        raise ValueError(_MASSLESS_MESSAGE.format(body=f"The body {body!r}"))
    return state


def _position_message(joint: str) -> str:
    return (
        f"The positions of the state violate the joint {joint!r} (m or rad). "
        "`rj.consistent_state(system, state)` gives the nearest state that the joints allow."
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


def _faults(jointed: "AbstractJointed", state: State, t: ArrayInput):
    """Violations of each joint, position and velocity, relative; body that lacks mass or -1."""
    mechanics = jointed.mechanics
    state = state.normalized()
    t = jnp.asarray(t, state.position.dtype)
    rotations = jax.vmap(euler_map)(state.orientation)
    poses = mechanics.poses(state.position, rotations, jnp.zeros(0))
    places = mechanics.place(poses)
    twists = Twists(state.velocity, state.angular_velocity)
    largest = lambda *parts: jnp.maximum(  # noqa: E731
        1.0, jnp.max(jnp.stack([jnp.max(jnp.abs(part)) for part in parts]))
    )
    position = _by_joint(mechanics, mechanics.constraint(t, places)) / largest(state.position)
    velocity = _by_joint(mechanics, mechanics.constraint_rate(t, places, twists))
    velocity = velocity / largest(state.velocity, state.angular_velocity)
    return position, velocity, _massless(jointed, t, poses, places)


_compiled_faults = eqx.filter_jit(_faults)


def _by_joint(mechanics: JointedMechanics, g: Float[Array, " m"]) -> Float[Array, " J"]:
    """Largest absolute value of the constraints of each joint."""
    owners = np.array(mechanics.constraint_owners(), int)
    count = len(mechanics.system.joints)
    return jnp.zeros(count, g.dtype).at[owners].max(jnp.abs(g))


def _massless(jointed, t, poses, places) -> Float[Array, "1"]:
    M, owners = mass_of_rates(jointed.mechanics, t, poses, places, jointed.needs_all_mass)
    if M.size == 0:
        return -jnp.ones(1, int)
    scale = 1.0 / jnp.sqrt(jnp.maximum(jnp.diagonal(M), jnp.finfo(M.dtype).tiny))
    values, vectors = jnp.linalg.eigh(M * scale[:, None] * scale[None])
    lacking = (values[0] < _MASSLESS * values[-1]) | jnp.any(jnp.diagonal(M) <= 0)
    # The first rate without any mass of its own, or the largest part of the weakest motion.
    none = jnp.diagonal(M) <= 0
    worst = jnp.where(jnp.any(none), jnp.argmax(none), jnp.argmax(jnp.abs(vectors[:, 0])))
    return jnp.where(lacking, jnp.asarray(owners)[worst], -1)[None]
