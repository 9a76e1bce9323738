"""Consistent initial positions and velocities of systems with joints."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput, check_one_precision, checked_with_derivatives, is_traced
from ..mechanics import System
from ..mechanics.constraints import mass_metric, project_twists
from ..mechanics.gaps import by_joint, closing, gaps
from ..mechanics.mechanics import SystemMechanics
from ..mechanics.twists import Twists
from ..native.backend import by_kernel
from ..rotations.so3 import exp_quaternion, multiply
from ..state import State
from .least_change import LeastChange


def consistent_state(system: System, state: State | None = None, t: ArrayInput = 0.0) -> State:
    r"""The state nearest to `state` that the joints of `system` allow at time `t`.

    Of all motions $(\Delta x, \Delta\theta)$ of the bodies from the given positions, by a
    displacement and a rotation vector in body components each, that close the joints, it is one of
    the stationary size $\sum m |\Delta x|^2 + \Delta\theta^T I \Delta\theta$ (a millionth of its
    trace added to each inertia, since rods have none about their axis); then of all velocities the
    nearest in kinetic energy, one linear solve (Lang (62), P and V). Driven joints are where their
    `motion(t)` wants them, and no joint is closed with its child the wrong way round. Forward and
    reverse derivatives by `system`, `state` and `t` are those of that state.

    **Arguments:** `system`; `state`, a guess, the reference configuration if `None`; `t`, s.
    **Returns:** a `State` whose violations are at round-off.
    **Errors:** `TypeError` for what is no system, `ValueError` for another number of bodies; where
    the joints cannot be closed from there, or where prescribed motions contradict other
    constraints, both of which say which joint.
    """
    if not isinstance(system, System):
        raise TypeError(f"`consistent_state` takes a `System`; got {type(system).__name__}.")
    state = system.reference_state() if state is None else state
    state.check_rows(system.num_bodies)
    parts = ("the system", system), ("the state", state)
    check_one_precision("`consistent_state(system, state)`", parts)
    system.check_angle_names(state)
    state = state.normalized()
    if not system.closing_names:
        return state
    t = jnp.asarray(t, state.position.dtype)
    found, position, velocity = _consistent(system, state, t)
    tolerance = float(jnp.finfo(position.dtype).eps) ** 0.5
    names = system.closing_names
    for violation, message in (
        (position, "cannot be closed from these positions: the loop is too short, or a prescribed "
                   "motion asks for what other joints forbid"),
        (velocity, "contradicts the velocities that other constraints prescribe"),
    ):  # fmt: skip
        if is_traced(violation):
            messages = [f"The joint {name!r} {message}." for name in names]
            bad, which = jnp.any(~(violation < tolerance)), jnp.argmax(violation)
            check = functools.partial(eqx.branched_error_if, pred=bad, index=which, msgs=messages)
            found = checked_with_derivatives(found, check)
        else:
            worst = int(np.argmax(violation))
            if not violation[worst] < tolerance:
                raise ValueError(
                    f"The joint {names[worst]!r} {message}. It is left open by "
                    f"{float(violation[worst]):.3g} (rad, or of the size of the mechanism)."
                )
    return found


@eqx.filter_jit
def _consistent(system, state, t):
    """The state, and how far each joint is from its position and from velocities it allows."""
    return by_kernel(nearest_state, system, state, t)


def nearest_state(
    system: System, state: State, t: Float[Array, ""]
) -> tuple[State, Float[Array, " C"], Float[Array, " C"]]:
    """As `consistent_state`, unchecked: the state, and how far each constraint is violated by
    positions (rad, or of the size of the mechanism), and by velocities (of the largest)."""
    mechanics = SystemMechanics(system)

    def moved(change):
        change = change.reshape(mechanics.num_bodies, 6)
        turned = jax.vmap(multiply)(state.orientation, jax.vmap(exp_quaternion)(change[:, 3:]))
        shifted = state.position + mechanics.lengths[:, None] * change[:, :3]
        return eqx.tree_at(lambda s: (s.position, s.orientation), state, (shifted, turned))

    def equations(change):
        return closing(mechanics.holonomic, t, mechanics.place(mechanics.poses_of(moved(change))))

    found = state
    if mechanics.holonomic.num_joint_constraints:
        found = moved(LeastChange(equations, mass_metric(mechanics)).solve()).normalized()
    here = mechanics.poses_of(found)
    places = mechanics.place(here)
    given = Twists(state.velocity, state.angular_velocity)
    twists = project_twists(mechanics, t, here, places, given)
    found = State(found.position, found.orientation, twists.linear, twists.angular)
    found = mechanics.with_angles_at(found, places)
    violations = gaps(mechanics, t, places), _contradictions(mechanics, t, places, given, twists)
    return found, *jax.lax.stop_gradient(violations)


def _contradictions(mechanics, t, places, given, twists):
    """How far each joint is from velocities that it allows, over the largest there is."""

    def rate(twists):
        return mechanics.constraint_rate(t, places, twists) / mechanics.units

    driven = rate(jax.tree.map(jnp.zeros_like, twists))
    lengths = mechanics.lengths[:, None]
    parts = [driven]
    for one in (given, twists):
        parts += [one.linear / lengths, one.angular]
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(part), initial=0.0) for part in parts]))
    return by_joint(mechanics, rate(twists)) / jnp.where(largest > 0, largest, 1.0)
