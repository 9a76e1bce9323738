"""Time and unknowns at a transition of a hybrid run, and the unknowns after it."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..annotations import Count, Flag, Scalar
from ..control.held_joints import stop_locked
from ..control.transition import AbstractChange, Transition, restart, split_change
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.binding import set_inputs
from ..formulations.charts import Unknowns, constant_chart, split_chart
from ..mechanics import has_joints
from ..mechanics.kinematics.constraints import constraint_violations, violation_tolerance
from ..mechanics.kinematics.poses import joint_frames_at, poses_of_state
from ..signals.switches import evaluate_switches
from ..state import State

# Newton iterations for the transition time. The first one removes the difference between the end
# of the segment and its dense output, the second one makes second derivatives exact.
_ITERATIONS = 2


def locate_zero(
    model: AbstractFormulation,
    functions: list[Callable[..., Scalar]],
    kind: Count,
    crosses: Flag,
    jumps: Flag,
    t: Scalar,
    y: Unknowns,
    short: Scalar,
) -> tuple[Scalar, Unknowns, Scalar]:
    """Move the end of a segment to the zero of `when`, or keep an end at which it jumps.

    **Arguments:** `crosses`, whether there is a zero, or `jumps`, a jump; `short`, the longest
    time, s, between the end and the switch of the law that causes the jump.
    **Returns:** time and unknowns, with their derivatives, and the rate of `when`.
    """
    rate_at_end = rate_of_unknowns(model, t, y)
    # Functions, because a branch of `switch` has to be hashable.
    branches = [lambda t, y, f=function: f(t, y) for function in functions]

    def move(s):
        middle = _add(y, 0.5 * s, rate_at_end)
        return t + s, _add(y, s, rate_of_unknowns(model, t + 0.5 * s, middle))

    def value(s):
        return jax.lax.switch(kind, branches, *move(s))

    def improve(carry, _):
        s, _ = carry
        value_at, rate = jax.jvp(value, (s,), (jnp.ones_like(s),))
        step = value_at / jnp.where(rate == 0, 1.0, rate)
        return (jnp.where(crosses, s - step, s), rate), None

    zero = jnp.zeros_like(t)
    (s, rate), _ = jax.lax.scan(improve, (zero, zero), length=_ITERATIONS)
    s = jnp.where(jumps, _time_to_switch(model, t, y, rate_at_end, short), s)
    t_c, y_c = move(s)
    y_c = jax.tree.map(lambda new, old: jnp.where(crosses | jumps, new, old), y_c, y)
    return t_c, y_c, jax.lax.stop_gradient(rate)


def _time_to_switch(
    model: AbstractFormulation, t: Scalar, y: Unknowns, rate: Unknowns, short: Scalar
) -> Scalar:
    """Return zero, with the derivatives of the time of the nearest switch of a law, if one is near.

    A switch is a sign change of a comparison.
    """

    def functions(t, y):
        return evaluate_switches(functools.partial(rate_of_unknowns, model), t, y).functions

    values, rates = jax.jvp(functions, (t, y), (jnp.ones_like(t), rate))
    if not values.size:
        return jnp.zeros_like(t)
    times = -values / jnp.where(rates == 0, 1.0, rates)
    sizes = jnp.where(rates == 0, jnp.inf, jnp.abs(times))
    nearest = jnp.argmin(sizes)
    time = jnp.where(sizes[nearest] <= short, times[nearest], 0.0).astype(t.dtype)
    return time - jax.lax.stop_gradient(time)


def rate_of_unknowns(model: AbstractFormulation, t: Scalar, y: Unknowns) -> Unknowns:
    """Return the rate of the unknowns; zero for multipliers, which every segment determines."""
    if isinstance(model, AbstractAbsolute) and model.index > 0:
        values, _ = split_chart(y)
        rate, _ = split_chart(model.ordinary_field(t, model.without_multipliers(y)))
        padding = jnp.zeros(values.size - rate.size, rate.dtype)
        return constant_chart(jnp.concatenate([rate, padding]), y)
    return model.vector_field(t, y)


def _add(y: Unknowns, s: Scalar, rate: Unknowns) -> Unknowns:
    return jax.tree.map(lambda y, rate: y + s.astype(y.dtype) * rate, y, rate)


def change_unknowns(
    model: AbstractFormulation, item: Transition, t: Scalar, y: Unknowns
) -> tuple[Unknowns, Flag, Flag, Flag]:
    """Return the unknowns after a transition.

    **Returns:** the unknowns; whether they are admissible; whether they are unchanged; whether the
    transition sets inputs or modes.
    """
    admitted, switches = jnp.array(True), False
    if isinstance(item.change, AbstractChange):
        y_new = item.change.apply(model, t, y, item.when)
        unchanged, switches = _are_equal(y_new, y), item.change.sets_modes
    else:
        state = model.decode(t, y)
        changed, inputs = split_change(item.change(t, state))
        new = _with_revolutions(changed, state)
        switches = bool(inputs)
        unchanged = _are_equal(new, state) & (not switches)
        admitted, new = _is_admissible(model, new, t), new.normalized()
        y_new = stop_locked(model, t, set_inputs(model, restart(model, t, new, y), inputs))
    finite = jnp.all(jnp.isfinite(split_chart(y_new)[0]))
    return y_new, finite & admitted, unchanged, jnp.array(switches)


def _is_admissible(model: AbstractFormulation, state: State, t: Scalar) -> Flag:
    """Return whether the quaternions of a state have unit length and its poses obey the joints."""
    p = state.orientation
    is_unit = jnp.all(jnp.abs(jnp.sum(p * p, axis=-1) - 1.0) <= 2e-6)
    if not has_joints(model.system):
        return is_unit
    prepared = model.prepare(t).prepared_system
    frames = joint_frames_at(prepared, poses_of_state(prepared, state.normalized()))
    gaps = constraint_violations(prepared, t, frames)
    return is_unit & jnp.all(gaps <= violation_tolerance(gaps.dtype))


def _with_revolutions(new: State, old: State) -> State:
    """Return a changed state with the joint angles of the old one that it leaves out."""
    angles = {**old.angles, **new.angles}
    names = tuple(angles)
    return new.with_angles(names, jnp.stack([angles[name] for name in names]) if names else None)


def _are_equal(a: Any, b: Any) -> Flag:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return jnp.all(jnp.stack([jnp.array_equal(x, y) for x, y in pairs]))
