"""States from coordinates of joints, of any system."""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..checks import check_all, is_finite, is_traced
from ..formulations import Relative
from ..joints import Coupling
from ..joints.base import replaced, wrapped
from ..mechanics import System
from ..rotations import RotationVector
from ..state import State
from .consistent import consistent_state

# The joints are brought to their coordinates in steps of at most so many radians or metres: from
# further away a loop may close on its other branch. Where they are traced, in so many steps.
_STEP, _STEPS = 0.2, 16


def jointed_state(
    system: System,
    coordinates: Mapping[str, ArrayLike],
    rates: Mapping[str, ArrayLike] | None = None,
) -> State:
    """The state in which joints have given coordinates and rates.

    In trees the other joints stay as in the reference configuration, and so do bodies that hang on
    no joint. With loops they move as little as closing these needs, in steps from the reference
    configuration on: of 0.2 rad or m, or under `jax.jit` and its kin 16 of them, whatever the way.
    Derivatives by coordinates, rates and the numbers of the system are those of the state.

    **Arguments:** `system`; `coordinates`, by names of joints, of each as many numbers as it has
    rates, lengths (m) before angles (rad), a rotation vector (rad) of a ball joint, zero in the
    reference configuration (of a `Free` the position, m, and the rotation vector of its body);
    `rates`, the same, m/s and rad/s, zero for a joint with coordinates if left out.
    **Errors:** `ValueError` for an unknown joint, for another number of coordinates, for numbers
    that are not finite, for joints with several in a system with loops, and for loops that cannot
    be closed.
    """
    rates = rates or {}
    given = {
        name: _checked(system, name, coordinates.get(name, 0.0), rates.get(name, 0.0))
        for name in dict.fromkeys([*coordinates, *rates])
    }
    if system.closes:
        return _driven(system, given)
    # The coordinates of a rotation vector are those of a ball joint.
    model = Relative(system, RotationVector(), recharting=False)
    q, nu = _reference(model, system.reference_state())
    for body, j in enumerate(system.topology.joints):
        name = "" if j is None else system.joints[j].name
        if name in given:
            of_coordinates, of_rates = model.layout.rows_of(body)
            q = q.at[of_coordinates].set(given[name][0], unique_indices=True)
            nu = nu.at[of_rates].set(given[name][1], unique_indices=True)
    return _decoded(model, q, nu)


@eqx.filter_jit
def _reference(model: Relative, state: State):
    """Coordinates and rates of the joints in the reference configuration, at rest."""
    return jnp.split(model.pack(state.at_rest()), [model.layout.num_positions])


@eqx.filter_jit
def _decoded(model: Relative, q, nu) -> State:
    return model.decode(jnp.zeros((), q.dtype), jnp.concatenate([q, nu]))


def _checked(system, name, coordinates, rates) -> tuple[Array | np.ndarray, Array | np.ndarray]:
    joint = system.joints[system.joint_index(name)]
    count = joint.num_rates
    pair = [jnp.asarray(x) if is_traced(x) else np.asarray(x, float) for x in (coordinates, rates)]
    known = [x for x in pair if isinstance(x, np.ndarray)]
    shaped = count > 0 and all(x.shape in ((), (count,)) for x in pair)
    if not (shaped and all(np.isfinite(x).all() for x in known)):
        shown = [x.tolist() if isinstance(x, np.ndarray) else f"shape {x.shape}" for x in pair]
        raise ValueError(
            f"The {type(joint).__name__} {name!r} has {count} coordinates, lengths before angles, "
            f"finite numbers; got {shown[0]} and the rates {shown[1]}."
        )
    finite = [is_finite(f"jointed_state(..., {name!r})")]
    pair = [x if isinstance(x, np.ndarray) else check_all(x, finite) for x in pair]
    return pair[0] * np.ones(count), pair[1] * np.ones(count)


class _Held(eqx.Module):
    """The motion of a joint that passes a coordinate at the time 0 with a rate."""

    coordinate: Float[Array, ""]
    rate: Float[Array, ""]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return self.coordinate + self.rate * t


def _driven(system: System, given: Mapping[str, tuple]) -> State:
    """As `jointed_state`: joints are given motions, under which the others are closed."""
    for name in given:
        joint = system.joints[system.joint_index(name)]
        if "motion" not in {field.name for field in dataclasses.fields(joint)}:
            raise ValueError(
                "In a system with loops only hinges and sliders are placed by "
                f"their coordinates; the {type(joint).__name__} {name!r} is none. Give states."
            )
    if is_traced((system, dict(given))):
        return _driven_in_a_loop(system, dict(given))
    farthest = max((abs(float(q[0])) for q, _ in given.values()), default=0.0)
    steps = max(1, int(np.ceil(farthest / _STEP)))
    state = system.reference_state()
    for part in np.arange(1, steps + 1) / steps:
        state = consistent_state(_held(system, given, part), state)
    return _with_all_angles(system, given, state)


def _driven_in_a_loop(system, given) -> State:
    """As `_driven`; the way there has no derivative, the state at its end does."""
    numbers, rest = eqx.partition((system, given), eqx.is_inexact_array)
    fixed, coordinates = eqx.combine(jax.lax.stop_gradient(numbers), rest)

    def closer(state, part):
        return consistent_state(_held(fixed, coordinates, part), state), None

    parts = jnp.arange(1, _STEPS) / _STEPS
    start = _held(fixed, coordinates, 0.0).reference_state()
    state, _ = jax.lax.scan(closer, start, parts)
    return _with_all_angles(system, given, consistent_state(_held(system, given, 1.0), state))


def _with_all_angles(system: System, given: Mapping[str, tuple], state: State) -> State:
    """The state with the angles of held joints too, and with those of gears as they mesh.

    The angles of joints that were not held are unwrapped from step to step, in which a gear of a
    large ratio may make more than half a revolution.
    """
    angles = state.angles | {name: q[0] for name, (q, _) in given.items()}
    couplings = [one for one in system.constraints if isinstance(one, Coupling)]
    for coupling in [*couplings] * len(couplings):
        name = coupling.joint
        if name in system.angle_names and name not in given and coupling.by in angles:
            meshed = coupling.ratio * angles[coupling.by] + coupling.offset
            angles[name] = meshed + wrapped(angles[name] - meshed)
    names = system.angle_names
    dtype = state.position.dtype
    joint_angles = [jnp.asarray(angles[name], dtype) for name in names]
    return state.with_angles(names, jnp.stack(joint_angles) if names else None)


def _held(system, given, part) -> System:
    """The system without forces, with joints held at a part of their coordinates."""
    joints = []
    for joint in system.joints:
        if joint.name in given:
            q, rate = given[joint.name]
            motion = _Held(jnp.asarray(part * q[0]), jnp.asarray(rate[0]))
            # Where it is held, nothing is left that a damper or a rotor would act on.
            joint = replaced(joint, motion=motion, damping=None, armature=None)
        joints.append(joint)
    return System(system.bodies, (*joints, *system.constraints), (), system.frames)
