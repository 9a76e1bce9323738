"""States from joint coordinates, for trees and closed loops."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..checks import check, check_all, finite_rule, is_traced, known
from ..joints import Coupling
from ..joints.motion import motion_at, motion_rate
from ..joints.relative_pose import wrap_angle
from ..joints.replacing import FORCE_FIELDS, replace_fields
from ..mechanics import System
from ..mechanics.kinematics.forward import reference_coordinates, state_of_joints
from ..mechanics.stacked.system import prepare_system
from ..native import call_by_kernel, gc_paused
from ..persistent_jit import persistent_jit
from ..state import State
from .consistent import consistent_state

# Largest step, rad or m, by which joints approach their coordinates: with longer ones a loop may
# close on its other branch. Traced coordinates are approached in a fixed number of steps.
_STEP, _STEPS = 0.2, 16
# Spacing, rad or m, of the states before a singular position from which it is extrapolated, and
# their weights. The error of 1e-10 is below the tolerance of velocities.
_NEAR = 1e-2
_EXTRAPOLATION = (1.0, -5.0, 10.0, -10.0, 5.0)


@gc_paused()
def jointed_state(
    system: System,
    coordinates: Mapping[str, ArrayLike],
    rates: Mapping[str, ArrayLike] | None = None,
) -> State:
    """Return the state in which joints have given coordinates and rates.

    In a tree all other joints, and bodies without a joint, stay in the reference configuration;
    only joints that a `Coupling` connects to a given one follow it. In a system with loops the
    other joints move as little as the loops require. They are closed in steps from the reference
    configuration: of 0.2 rad or m each, or 16 steps under JAX transformations.
    In a singular position, such as a parallelogram in line, the loops lose rank and several motions
    are possible. The result is then the limit of the states on the way there; this works outside
    JAX transformations only. Derivatives with respect to coordinates, rates and the leaves of the
    system are exact.

    **Arguments:** `system`, with the joints; `coordinates`, by joint name, as many values as the
    joint has rates, zero in the reference configuration: lengths (m) before angles (rad), a
    rotation vector (rad) for a ball joint, position (m) and rotation vector of the body for a
    `Free`; `rates`, in the same form, m/s and rad/s, by default zero.
    **Errors:** `ValueError` for an unknown joint, a wrong number of coordinates, values that are
    not finite, joints with several coordinates in a system with loops, loops that cannot be closed,
    and coordinates that contradict a `Coupling`.
    """
    if not isinstance(system, System):
        raise TypeError(f"`jointed_state` takes a `System`; got {type(system).__name__}.")
    rates = rates or {}
    given = {
        name: _check_joint(system, name, coordinates.get(name, 0.0), rates.get(name, 0.0))
        for name in dict.fromkeys([*coordinates, *rates])
    }
    couplings = [one for one in system.constraints if isinstance(one, Coupling)]
    if system.topology.loops or len(couplings) < len(system.constraints):
        return _drive(system, given)
    if couplings:
        given = _add_coupled(system, couplings, given)
        # `given` satisfies the couplings from here on.
        system = replace_fields(system, constraints=())
    place = _place if is_traced(known((system, given))) else _place_by_kernel
    return place(system, given)


def _state_of_joints(system: System, given: Mapping[str, tuple]) -> State:
    """Return the state with given coordinates and rates of joints, others as in the reference."""
    q = reference_coordinates(system)
    nu, end = jnp.zeros_like(q), 0
    for j, count in zip(system.topology.joints, system.rates_of_bodies, strict=True):
        rows, end = slice(end, end + count), end + count
        name = "" if j is None else system.joints[j].name
        if name in given:
            q, nu = (
                x.at[rows].set(new, unique_indices=True)
                for x, new in zip((q, nu), given[name], strict=True)
            )
    return state_of_joints(prepare_system(system), jnp.zeros((), q.dtype), q, nu)


_place = persistent_jit(_state_of_joints)
_place_by_kernel = persistent_jit(functools.partial(call_by_kernel, _state_of_joints))


def _add_coupled(
    system: System, couplings: list[Coupling], given: Mapping[str, tuple]
) -> dict[str, tuple]:
    """Return the given coordinates and rates, and those that follow from couplings.

    If no joint of a chain of couplings is given, its first independent joint stays in the reference
    configuration.
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
            # With a zero ratio the joint does not determine the other one.
            known.setdefault(one.by, (np.zeros(1), np.zeros(1)))
        if one.by not in known:
            (q, rate), ratio = known[one.joint], one.ratio
            known[one.by] = (q - one.offset) / ratio, rate / ratio
            continue
        (q, rate), found = known[one.by], known.get(one.joint)
        asked = one.ratio * q + one.offset, one.ratio * rate
        known[one.joint] = asked if found is None else _check_coupling(one, found, asked)
    return {name: pair for name, pair in known.items() if _is_free(system, name)}


def _is_free(system: System, name: str) -> bool:
    return not system.joints[system.joint_index(name)].is_driven


def _check_coupling(coupling: Coupling, found: tuple, asked: tuple) -> tuple:
    """Return coordinates and rates after checking that they satisfy a coupling."""
    gaps = [abs(a - b) for a, b in zip(found, asked, strict=True)]
    if not coupling.is_length:
        gaps[0] = abs(wrap_angle(gaps[0]))
    sizes = [1e-8 * (1.0 + abs(b)) for b in asked]
    message = (
        f"`jointed_state`: the coordinates and rates given for {coupling.joint!r} and "
        f"{coupling.by!r} contradict the {coupling.name!r}. Leave one of them out (a joint without "
        "a rate is at rest)."
    )
    gap = jnp.stack([jnp.max(gap - size) for gap, size in zip(gaps, sizes, strict=True)])
    gap = check(gap, lambda gap: gap <= 0, message)
    return tuple(jnp.where(jnp.max(gap) <= 0, x, jnp.nan) for x in found)


def _check_joint(
    system: System, name: str, coordinates: ArrayLike, rates: ArrayLike
) -> tuple[Array | np.ndarray, Array | np.ndarray]:
    joint = system.joints[system.joint_index(name)]
    count = joint.num_rates
    pair = [jnp.asarray(x) if is_traced(x) else np.asarray(x, float) for x in (coordinates, rates)]
    known = [x for x in pair if isinstance(x, np.ndarray)]
    shaped = count > 0 and all(x.shape in ((), (count,)) for x in pair)
    if not (shaped and all(np.isfinite(x).all() for x in known)):
        shown = [x.tolist() if isinstance(x, np.ndarray) else f"shape {x.shape}" for x in pair]
        raise ValueError(
            f"The {type(joint).__name__} {name!r} needs {count} finite coordinates, lengths before "
            f"angles; got {shown[0]} and the rates {shown[1]}."
        )
    finite = [finite_rule(f"jointed_state(..., {name!r})")]
    pair = [x if isinstance(x, np.ndarray) else check_all(x, finite) for x in pair]
    return pair[0] * np.ones(count), pair[1] * np.ones(count)


class _HeldMotion(eqx.Module):
    """Motion of a joint with a given coordinate and rate at time 0."""

    coordinate: Float[Array, ""]
    rate: Float[Array, ""]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return self.coordinate + self.rate * t


def _drive(system: System, given: Mapping[str, tuple]) -> State:
    """Return the state of a system with loops by prescribing the given joints."""
    for name in given:
        joint = system.joints[system.joint_index(name)]
        if "motion" not in {field.name for field in dataclasses.fields(joint)}:
            raise ValueError(
                "In a system with loops `jointed_state` takes coordinates of hinges and sliders; "
                f"{name!r} is a {type(joint).__name__}. Use `rj.consistent_state` with a guess."
            )
    if is_traced((system, dict(given))):
        return _drive_in_loop(system, dict(given))
    farthest = max((abs(float(q[0])) for q, _ in given.values()), default=0.0)
    steps = max(1, int(np.ceil(farthest / _STEP)))
    state = system.reference_state()
    for part in np.arange(1, steps + 1) / steps:
        state = _advance(system, given, part, state, farthest)
    return _add_angles(system, given, state)


def _advance(
    system: System, given: Mapping[str, tuple], part: float, state: State, farthest: float
) -> State:
    """Return the state at a fraction of the way, starting from the previous state.

    Where loop constraints lose rank, the iteration converges slowly and velocities are not unique.
    The state is then extrapolated from states before it.
    """
    held = _hold(system, given, part)
    try:
        return consistent_state(held, state)
    except ValueError:
        if not farthest:
            raise
    before = []
    for k in range(len(_EXTRAPOLATION), 0, -1):
        state = consistent_state(_hold(system, given, part - k * _NEAR / farthest), state)
        before.append(state)

    def limit(*values):
        return sum(w * x for w, x in zip(_EXTRAPOLATION, values, strict=True))

    return consistent_state(held, jax.tree.map(limit, *before))


def _drive_in_loop(system: System, given: Mapping[str, tuple]) -> State:
    """Return the state as `_drive` does, in a loop; only its last step is differentiated."""
    numbers, rest = eqx.partition((system, given), eqx.is_inexact_array)
    fixed, coordinates = eqx.combine(jax.lax.stop_gradient(numbers), rest)

    def advance(state, part):
        return consistent_state(_hold(fixed, coordinates, part), state), None

    parts = jnp.arange(1, _STEPS) / _STEPS
    start = _hold(fixed, coordinates, 0.0).reference_state()
    state, _ = jax.lax.scan(advance, start, parts)
    return _add_angles(system, given, consistent_state(_hold(system, given, 1.0), state))


def _add_angles(system: System, given: Mapping[str, tuple], state: State) -> State:
    """Return the state with the angles of held joints, and of geared joints by their ratio.

    Other angles were unwrapped from step to step, which is not enough for gears: with a large ratio
    a joint may make more than half a revolution in one step.
    """
    angles = state.angles | {name: q[0] for name, (q, _) in given.items()}
    couplings = [one for one in system.constraints if isinstance(one, Coupling)]
    for coupling in [*couplings] * len(couplings):
        name = coupling.joint
        if name in system.angle_names and name not in given and coupling.by in angles:
            meshed = coupling.ratio * angles[coupling.by] + coupling.offset
            angles[name] = meshed + wrap_angle(angles[name] - meshed)
    names = system.angle_names
    dtype = state.position.dtype
    joint_angles = [jnp.asarray(angles[name], dtype) for name in names]
    return state.with_angles(names, jnp.stack(joint_angles) if names else None)


def _hold(system: System, given: Mapping[str, tuple], part: float | Float[Array, ""]) -> System:
    """Return the system without forces, with joints held at a fraction of their coordinates."""
    joints = []
    for joint in system.joints:
        if joint.name in given:
            q, rate = given[joint.name]
            motion = _HeldMotion(jnp.asarray(part * q[0]), jnp.asarray(rate[0]))
            # Forces on its coordinate and the armature have no effect on a held joint.
            joint = replace_fields(joint, motion=motion, **dict.fromkeys(FORCE_FIELDS))
        joints.append(joint)
    return System(
        system.bodies, (*joints, *system.constraints), (), system.frames, closing=system.closing
    )
