"""Consistent initial positions and velocities of systems with joints."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, check_one_precision, checked_with_derivatives, is_traced
from ..mechanics import System
from ..mechanics.dynamics.projections import mass_metric, project_twists
from ..mechanics.kinematics.constraints import (
    closing_residual,
    constraint_rates,
    constraint_units,
    constraint_violations,
    largest_by_joint,
)
from ..mechanics.kinematics.poses import Twists, joint_frames_at, poses_of_state, with_joint_angles
from ..mechanics.stacked.joints import JointFrames
from ..mechanics.stacked.system import PreparedSystem
from ..native import call_by_kernel
from ..persistent_jit import persistent_jit
from ..rotations.so3 import exp_quaternion, multiply
from ..state import State
from .least_change import LeastChange


def consistent_state(system: System, state: State | None = None, t: ArrayInput = 0.0) -> State:
    r"""Return the state nearest to `state` that the joints of `system` allow at time `t`.

    Each body is moved by a displacement $\Delta x$ and a rotation vector $\Delta\theta$, body
    components, so that all constraints hold and
    $\sum m |\Delta x|^2 + \Delta\theta^T I \Delta\theta$ is stationary. (A millionth of its trace
    is added to each inertia, because a rod has none about its axis.) The velocities are then
    projected in the metric of the kinetic energy by one linear solve, Lang (62), P and V. Driven
    joints are at their `motion(t)`, and no joint is closed with its child the wrong way round.
    Derivatives with respect to `system`, `state` and `t` are exact in both modes.

    **Arguments:** `system`, with joints or constraints; `state`, a guess, by default the reference
    configuration; `t`, s.
    **Returns:** a `State` whose constraint violations are at round-off.
    **Errors:** `TypeError` unless `system` is a `System`; `ValueError` for another number of
    bodies, and with the name of the joint where joints cannot be closed or where prescribed
    motions contradict other constraints.
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
    found, position, velocity = _solve_as_kernel(system, state, t)
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


@persistent_jit
def _solve_as_kernel(
    system: System, state: State, t: Scalar
) -> tuple[State, Float[Array, " J"], Float[Array, " J"]]:
    """Return the consistent state and the violations of positions and of velocities by joint."""
    return call_by_kernel(nearest_state, system, state, t)


def nearest_state(
    system: System, state: State, t: Scalar
) -> tuple[State, Float[Array, " C"], Float[Array, " C"]]:
    """Return the consistent state without checks, and the violations of each constraint.

    Violations of positions are in rad or relative to the size of the mechanism, violations of
    velocities relative to the largest velocity; both (C,).
    """
    prepared = PreparedSystem(system)

    def displace(change):
        change = change.reshape(prepared.num_bodies, 6)
        turned = jax.vmap(multiply)(state.orientation, jax.vmap(exp_quaternion)(change[:, 3:]))
        shifted = state.position + prepared.lengths[:, None] * change[:, :3]
        return eqx.tree_at(lambda s: (s.position, s.orientation), state, (shifted, turned))

    def equations(change):
        return closing_residual(
            prepared.holonomic,
            t,
            joint_frames_at(prepared, poses_of_state(prepared, displace(change))),
        )

    found = state
    if prepared.holonomic.num_constraints:
        found = displace(LeastChange(equations, mass_metric(prepared)).solve()).normalized()
    here = poses_of_state(prepared, found)
    joint_frames = joint_frames_at(prepared, here)
    given = Twists(state.velocity, state.angular_velocity)
    twists = project_twists(prepared, t, here, joint_frames, given)
    found = State(found.position, found.orientation, twists.linear, twists.angular)
    found = with_joint_angles(prepared, found, joint_frames)
    violations = (
        constraint_violations(prepared, t, joint_frames),
        _contradictions(prepared, t, joint_frames, given, twists),
    )
    return found, *jax.lax.stop_gradient(violations)


def _contradictions(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames, given: Twists, twists: Twists
) -> Float[Array, " J"]:
    """Return the violation of each joint's velocities relative to the largest velocity."""

    def rate(twists):
        return constraint_rates(prepared, t, joint_frames, twists) / constraint_units(prepared)

    driven = rate(jax.tree.map(jnp.zeros_like, twists))
    lengths = prepared.lengths[:, None]
    parts = [driven]
    for source in (given, twists):
        parts += [source.linear / lengths, source.angular]
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(part), initial=0.0) for part in parts]))
    return largest_by_joint(prepared, rate(twists)) / jnp.where(largest > 0, largest, 1.0)
