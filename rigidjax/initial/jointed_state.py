"""States from coordinates of joints, of any system."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..checks import check, check_all, is_finite, is_traced
from ..formulations import Relative
from ..joints import Coupling
from ..joints.base import motion_at, motion_rate, replaced, wrapped
from ..mechanics import System
from ..rotations import RotationVector
from ..state import State
from .consistent import consistent_state

# The joints are brought to their coordinates in steps of at most so many radians or metres: from
# further away a loop may close on its other branch. Where they are traced, in so many steps.
_STEP, _STEPS = 0.2, 16
# Distance, rad or m, of states that are extrapolated to a singular position, and their weights: the
# error, 1e-10, is small against the tolerance of velocities there.
_NEAR = 1e-2
_EXTRAPOLATION = (1.0, -5.0, 10.0, -10.0, 5.0)


def jointed_state(
    system: System,
    coordinates: Mapping[str, ArrayLike],
    rates: Mapping[str, ArrayLike] | None = None,
) -> State:
    """The state in which joints have given coordinates and rates.

    In trees the other joints stay as in the reference configuration, but for those that a
    `Coupling` moves along, and so do bodies that hang on no joint. With loops they move as little
    as closing these needs, in steps from the reference configuration on: of 0.2 rad or m, or under
    `jax.jit` and its kin 16 of them, whatever the way.
    In a singular position, as of a parallelogram in line, where loops lose rank and more than one
    motion goes on, it is the limit of the states before it, outside of transformations alone.
    Derivatives by coordinates, rates and the numbers of the system are those of the state.

    **Arguments:** `system`; `coordinates`, by names of joints, of each as many numbers as it has
    rates, lengths (m) before angles (rad), a rotation vector (rad) of a ball joint, zero in the
    reference configuration (of a `Free` the position, m, and the rotation vector of its body);
    `rates`, the same, m/s and rad/s, zero for a joint with coordinates if left out.
    **Errors:** `ValueError` for an unknown joint, for another number of coordinates, for numbers
    that are not finite, for joints with several in a system with loops, for loops that cannot be
    closed, and for coordinates that contradict a `Coupling`.
    """
    rates = rates or {}
    given = {
        name: _checked(system, name, coordinates.get(name, 0.0), rates.get(name, 0.0))
        for name in dict.fromkeys([*coordinates, *rates])
    }
    couplings = [one for one in system.constraints if isinstance(one, Coupling)]
    if system.topology.loops or len(couplings) < len(system.constraints):
        return _driven(system, given)
    if couplings:
        given = _with_coupled(system, couplings, given)
        # What couplings ask for is known now.
        system = replaced(system, constraints=())
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


def _with_coupled(
    system: System, couplings: list[Coupling], given: Mapping[str, tuple]
) -> dict[str, tuple]:
    """Return the given coordinates and rates of joints, and those that couplings ask for.

    Where no joint of a chain of couplings is given, the first one that another follows stays in the
    reference configuration.
    """
    known, t = dict(given), jnp.zeros(())
    for joint in system.joints:
        if joint.is_driven:
            of_motion, kind = cast(Any, joint).motion, type(joint).__name__
            known[joint.name] = (
                motion_at(kind, of_motion, t)[None],
                motion_rate(kind, of_motion, t)[None],
            )
    rest = list(couplings)
    while rest:
        ready = [one for one in rest if {one.joint, one.by} & set(known)]
        one = ready[0] if ready else rest[0]
        rest.remove(one)
        if not ready:
            known[one.by] = np.zeros(1), np.zeros(1)
        if not is_traced(one.ratio) and np.asarray(one.ratio) == 0:
            # The other joint says nothing of it.
            known.setdefault(one.by, (np.zeros(1), np.zeros(1)))
        if one.by not in known:
            (q, rate), ratio = known[one.joint], one.ratio
            known[one.by] = (q - one.offset) / ratio, rate / ratio
            continue
        (q, rate), found = known[one.by], known.get(one.joint)
        asked = one.ratio * q + one.offset, one.ratio * rate
        known[one.joint] = asked if found is None else _agreeing(one, found, asked)
    return {name: pair for name, pair in known.items() if _is_free(system, name)}


def _is_free(system: System, name: str) -> bool:
    return not system.joints[system.joint_index(name)].is_driven


def _agreeing(coupling: Coupling, found: tuple, asked: tuple) -> tuple:
    """Return the coordinates and rates found, checked to be those that a coupling asks for."""
    gaps = [abs(a - b) for a, b in zip(found, asked, strict=True)]
    if not coupling.is_length:
        gaps[0] = abs(wrapped(gaps[0]))
    sizes = [1e-8 * (1.0 + abs(b)) for b in asked]
    message = (
        f"`jointed_state`: the coordinates and rates given for {coupling.joint!r} and "
        f"{coupling.by!r} contradict the {coupling.name!r}. Leave one of them out (a joint without "
        "a rate is at rest)."
    )
    gap = jnp.stack([jnp.max(gap - size) for gap, size in zip(gaps, sizes, strict=True)])
    gap = check(gap, lambda gap: gap <= 0, message)
    return tuple(x + 0.0 * jnp.max(gap) for x in found)


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
        state = _stepped(system, given, part, state, farthest)
    return _with_all_angles(system, given, state)


def _stepped(
    system: System, given: Mapping[str, tuple], part: float, state: State, farthest: float
) -> State:
    """Return the state at a part of the way, from the one before.

    Where the constraints of the loops lose rank, their equations converge slowly, and velocities
    are not unique: the state is then the limit of those before it.
    """
    held = _held(system, given, part)
    try:
        return consistent_state(held, state)
    except ValueError:
        if not farthest:
            raise
    before = []
    for k in range(len(_EXTRAPOLATION), 0, -1):
        state = consistent_state(_held(system, given, part - k * _NEAR / farthest), state)
        before.append(state)

    def limit(*values):
        return sum(w * x for w, x in zip(_EXTRAPOLATION, values, strict=True))

    return consistent_state(held, jax.tree.map(limit, *before))


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
