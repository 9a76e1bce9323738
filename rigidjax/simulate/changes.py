"""Unknowns after a transition of a hybrid run."""

from typing import Any

import jax
import jax.numpy as jnp

from ..annotations import Flag, Scalar
from ..control.locks import stop_locked
from ..control.transition import AbstractChange, Transition, restart, split_change
from ..formulations import AbstractFormulation
from ..formulations.binding import set_inputs
from ..formulations.charts import Unknowns, split_chart
from ..mechanics import has_joints
from ..mechanics.kinematics.constraints import constraint_violations, violation_tolerance
from ..mechanics.kinematics.poses import joint_frames_at, poses_of_state
from ..state import State


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
