r"""Local coordinates on the constraint manifold around a given state."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..formulations import AbstractFormulation
from ..formulations.binding import bind_start
from ..formulations.joint_checks import TOLERANCE, violations
from ..mechanics import System, has_joints
from ..mechanics.dynamics.loops import LoopGradient, loop_gradient
from ..mechanics.dynamics.projections import pose_correction
from ..mechanics.dynamics.pseudo_inverse import pseudo_inverse
from ..mechanics.kinematics.constraints import constraint_rates
from ..mechanics.kinematics.poses import (
    Twists,
    assemble_poses,
    joint_angle_rates,
    joint_angles,
    joint_frames_at,
    poses_of_state,
    with_joint_angles,
)
from ..mechanics.kinematics.trees import body_twists, generalised_velocities, twists_from_velocities
from ..mechanics.stacked.joints import Poses
from ..mechanics.stacked.system import PreparedSystem
from ..persistent_jit import persistent_jit
from ..rotations.euler_map import euler_map
from ..rotations.so3 import exp_quaternion, multiply
from ..state import State

# Runge-Kutta steps of a retraction: the error of a hinge that turns by 1 rad is 1e-7 rad.
_STEPS = 8
# Newton steps that close the joints to round-off afterwards.
_NEWTON_STEPS = 3
# Relative constraint violation above which a retraction has failed: half the tolerance of states.
_OPEN = 0.5 * TOLERANCE
# Fraction of the largest singular value below which a loop constraint counts as redundant.
_REDUNDANT = 1e-8
# Fraction of the largest pivot that a preferred pivot must reach.
_ENOUGH = 0.1


class Directions(eqx.Module):
    r"""Map from local coordinates $d$ to generalised velocities $\nu = F d + C y$.

    **Attributes:** `free`, $F$ (f, k), one column per coordinate; `rest`, $C$ (f, f - k), the
    velocities that the loop constraints $J (F d + C y) = 0$ determine.
    """

    free: Float[Array, "f k"]
    rest: Float[Array, "f r"]

    def complete(
        self, loops: LoopGradient, d: Float[Array, " k"], residual: Float[Array, " m"]
    ) -> Float[Array, " f"]:
        """Return $F d + C y$, (f,), with the $y$ that cancels a `residual` of loop velocities."""
        nu = self.free @ d
        if self.rest.shape[1] == 0:
            return nu
        # Scaled so that every column is a motion of size one.
        rest = self.rest / loops.scale[:, None]
        rest = rest / jnp.sqrt(jnp.sum(rest * rest, axis=0, keepdims=True))
        gap = loops.matrix @ (nu / loops.scale) + residual / loops.units
        return nu - loops.scale * (rest @ (pseudo_inverse(loops.matrix @ rest) @ gap))


def num_rates(model: AbstractFormulation) -> int:
    """Return the number of generalised velocities of the spanning tree, before loops are closed."""
    return sum(model.multibody.rates_of_bodies)


def independent_rates(model: AbstractFormulation, state: State) -> tuple[int, ...]:
    """Return indices of independent generalised velocities, as many as degrees of freedom.

    Without loops all of them are independent. With loops, dependent velocities are chosen by
    elimination with pivoting, preferably the last ones of the tree.

    **Errors:** `ValueError` for a system with a `VelocityConstraint`.
    """
    system = model.multibody
    if system.velocity_constraints:
        raise ValueError(
            "A start can only be fitted if every constraint acts on positions; the "
            f"`VelocityConstraint` {system.velocity_constraints[0].name!r} acts on velocities "
            "alone. Give the start instead of fitting it."
        )
    return independent_columns(loop_rows(system, state))


def independent_columns(J: np.ndarray) -> tuple[int, ...]:
    """Return indices of independent generalised velocities under the constraints `J`, (m, f)."""
    left, dependent = J.copy(), []
    size = np.abs(J).max(initial=0.0)
    for _ in range(min(J.shape)):
        norms = np.sqrt(np.sum(left**2, axis=0))
        if not norms.max() > _REDUNDANT * size:
            break
        pivot = int(np.flatnonzero(norms > _ENOUGH * norms.max())[-1])
        dependent.append(pivot)
        along = left[:, pivot] / norms[pivot]
        left = left - np.outer(along, along @ left)
    return tuple(i for i in range(J.shape[1]) if i not in dependent)


def loop_rows(system: System, state: State) -> np.ndarray:
    """Return the dimensionless Jacobian of loop constraints in generalised velocities, (m, f)."""
    if not system.has_loops:
        return np.zeros((0, sum(system.rates_of_bodies)))
    return np.asarray(_loop_rows(system, state).matrix)


@persistent_jit
def loop_rows_at(system: System, states: State) -> Float[Array, "B K m f"]:
    """Return Jacobians of loop constraints for states with leading axes (B, K), (B, K, m, f)."""

    def rows(state):
        loops = _loop_rows(system, state)
        return loops.matrix / loops.scale

    return jax.vmap(jax.vmap(rows))(states)


@persistent_jit
def _loop_rows(system: System, state: State) -> LoopGradient:
    prepared = PreparedSystem(system)
    poses = poses_of_state(prepared, state.normalized())
    joint_frames = joint_frames_at(prepared, poses)
    t = jnp.zeros((), state.position.dtype)
    return loop_gradient(prepared, t, poses, joint_frames)


def selection(independent: tuple[int, ...], count: int, dtype: Any = float) -> Directions:
    """Return directions whose coordinates are the generalised velocities `independent`."""
    unit = np.eye(count)
    rest = [i for i in range(count) if i not in independent]
    return Directions(
        jnp.asarray(unit[:, list(independent)], dtype), jnp.asarray(unit[:, rest], dtype)
    )


def retract(
    model: AbstractFormulation,
    state: State,
    t: Float[Array, ""],
    directions: Directions,
    positions: Float[Array, " k"],
    rates: Float[Array, " k"],
) -> tuple[State, Bool[Array, ""]]:
    r"""Retract a change of local coordinates: return the new state, and whether joints close.

    Poses are integrated along $q' = T(q)\,\nu$ over one unit of a fictitious time, the free
    components of $\nu$ constant; Newton steps then close the joints. The coordinate of a joint in
    `directions` changes by exactly the given amount. Generalised velocities keep their values but
    for the given change.

    **Arguments:** `state`, consistent at `t`, s; `positions` and `rates`, changes (k,) in rad or m,
    and rad/s or m/s.
    **Source:** kinematics: Lang (11) with (24).
    """
    state = state.normalized()
    system = bind_start(model).multibody
    if has_joints(system):
        return _retract_with_joints(system, state, t, directions, positions, rates)
    change = directions.free @ positions
    rate_change = directions.free @ rates
    if not system.translates:
        change, rate_change = (jnp.pad(x, (3, 0)) for x in (change, rate_change))
    change, rate_change = change.reshape(-1, 6), rate_change.reshape(-1, 6)
    turned = jax.vmap(multiply)(state.orientation, jax.vmap(exp_quaternion)(change[:, 3:]))
    moved = State(
        state.position + change[:, :3],
        turned,
        state.velocity + rate_change[:, :3],
        state.angular_velocity + rate_change[:, 3:],
    )
    return moved, jnp.array(True)


def _retract_with_joints(
    system: System,
    state: State,
    t: Float[Array, ""],
    directions: Directions,
    positions: Float[Array, " k"],
    rates: Float[Array, " k"],
) -> tuple[State, Bool[Array, ""]]:
    prepared = PreparedSystem(system)
    t = jnp.asarray(t, state.position.dtype)
    joint_frames = joint_frames_at(prepared, poses_of_state(prepared, state))
    twists = Twists(state.velocity, state.angular_velocity)
    nu = generalised_velocities(prepared, t, joint_frames, twists)
    angles = joint_angles(prepared, joint_frames, system.angle_joints)
    at = state.position, state.orientation, angles
    x, p, angles = _integrate_poses(prepared, t, directions, positions, at)

    def close(_, at):
        x, p = at
        return _close_joints(prepared, t, x, p, angles)

    x, p = jax.lax.fori_loop(0, _NEWTON_STEPS, close, (x, p))
    poses = _poses(prepared, x, p, angles)
    joint_frames = joint_frames_at(prepared, poses)
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    residual = constraint_rates(prepared, t, joint_frames, twists, loops_only=True)
    loops = loop_gradient(prepared, t, poses, joint_frames)
    nu = nu + directions.complete(loops, rates, residual)
    twists = body_twists(prepared, t, poses, joint_frames, nu)
    moved = with_joint_angles(prepared, State(x, p, twists.linear, twists.angular), joint_frames)
    state = with_joint_angles(
        prepared, state, joint_frames_at(prepared, poses_of_state(prepared, state))
    )
    okay = jnp.max(jnp.stack(violations(prepared, t, poses, joint_frames, twists))) < _OPEN
    # A trial that cannot be closed keeps the old state, so that nothing raises, and has failed.
    return jax.tree.map(lambda new, old: jnp.where(okay, new, old), moved, state), okay


def _integrate_poses(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    directions: Directions,
    positions: Float[Array, " k"],
    at: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array]:
    """Integrate poses and joint angles by Runge-Kutta steps of order 4."""

    def velocity(x, p, angles):
        poses = _poses(prepared, x, p, angles)
        joint_frames = joint_frames_at(prepared, poses)
        loops = loop_gradient(prepared, t, poses, joint_frames)
        nu = directions.complete(loops, positions, jnp.zeros_like(loops.units))
        w = twists_from_velocities(prepared, poses, loops.moving, nu)
        turn = jnp.pad(0.5 * w[:, 3:], ((0, 0), (1, 0)))
        joints = prepared.system.angle_joints
        rates = joint_angle_rates(prepared, joint_frames, Twists(w[:, :3], w[:, 3:]), joints)
        return w[:, :3], jax.vmap(multiply)(p, turn), rates

    h, dtype = 1.0 / _STEPS, at[0].dtype
    parts = jnp.array([0.0, 0.5, 0.5, 1.0], dtype)
    weights = jnp.array([1 / 6, 1 / 3, 1 / 3, 1 / 6], dtype)

    def step(_, at):
        # Stages in a loop are compiled once instead of four times.
        def stage(carry, coefficients):
            total, slope = carry
            part, weight = coefficients
            slope = velocity(*jax.tree.map(lambda a, s: a + h * part * s, at, slope))
            return (jax.tree.map(lambda a, s: a + h * weight * s, total, slope), slope), None

        none = jax.tree.map(jnp.zeros_like, at)
        ((x, p, angles), _), _ = jax.lax.scan(stage, (at, none), (parts, weights))
        return x, _unit(p), angles

    return jax.lax.fori_loop(0, _STEPS, step, at)


def _close_joints(
    prepared: PreparedSystem,
    t: Float[Array, ""],
    x: Float[Array, "L 3"],
    p: Float[Array, "L 4"],
    angles: Float[Array, " A"],
) -> tuple[Array, Array]:
    """Make one Newton step towards poses that satisfy the constraints."""
    poses = _poses(prepared, x, p, angles)
    change = pose_correction(prepared, t, poses, joint_frames_at(prepared, poses))
    turned = jax.vmap(multiply)(p, jax.vmap(exp_quaternion)(change[:, 3:]))
    return x + change[:, :3], _unit(turned)


def _unit(p: Float[Array, "L 4"]) -> Float[Array, "L 4"]:
    return p / jnp.sqrt(jnp.sum(p * p, axis=1, keepdims=True))


def _poses(
    prepared: PreparedSystem,
    x: Float[Array, "L 3"],
    p: Float[Array, "L 4"],
    angles: Float[Array, " A"],
) -> Poses:
    """Return poses with the revolutions that bring joint angles next to `angles`."""
    R = jax.vmap(euler_map)(_unit(p))
    return assemble_poses(prepared, x, R, angles, prepared.system.angle_joints)
