r"""States near a given one that the joints allow, in as many coordinates as there are freedoms."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..formulations import AbstractFormulation
from ..formulations.joint_checks import TOLERANCE, violations
from ..mechanics import System, has_joints
from ..mechanics.attachment import Poses
from ..mechanics.constraints import LoopGradient, loop_gradient, pose_correction
from ..mechanics.mechanics import SystemMechanics
from ..mechanics.pseudo_inverses import pseudo_inverse
from ..mechanics.trees import spread, tree_rates, tree_twists
from ..mechanics.twists import Twists
from ..rotations.euler_map import euler_map
from ..rotations.so3 import exp_quaternion, multiply
from ..state import State

# Runge-Kutta steps of a displacement: a hinge turned by 1 rad is then off by 1e-7 rad.
_STEPS = 8
# Newton steps that close the joints afterwards, to round-off.
_NEWTON_STEPS = 3
# Relative violation of a joint above which a displacement has failed: half of what states may have.
_OPEN = 0.5 * TOLERANCE
# Part of the largest singular value below which the constraint of a loop counts as redundant.
_REDUNDANT = 1e-8
# Part of the largest pivot that is enough for a pivot which is preferred.
_ENOUGH = 0.1


class Directions(eqx.Module):
    r"""How the minimal velocities $\nu = F d + C y$ follow from the coordinates $d$ of a change.

    `free`, $F$ (f, k), one column for each coordinate; `rest`, $C$ (f, f - k), what the loops
    determine: $J (F d + C y) = 0$.
    """

    free: Float[Array, "f k"]
    rest: Float[Array, "f r"]

    def completed(self, loops: LoopGradient, d, residual):
        """$F d + C y$ with which the loops, whose rates are off by `residual`, stay closed."""
        nu = self.free @ d
        if self.rest.shape[1] == 0:
            return nu
        # Without units: every column a motion of size one.
        rest = self.rest / loops.scale[:, None]
        rest = rest / jnp.sqrt(jnp.sum(rest * rest, axis=0, keepdims=True))
        gap = loops.matrix @ (nu / loops.scale) + residual / loops.units
        return nu - loops.scale * (rest @ (pseudo_inverse(loops.matrix @ rest) @ gap))


def num_rates(model: AbstractFormulation) -> int:
    """Number of minimal velocities: those of the spanning trees, before loops are closed."""
    return sum(model.multibody.rates_of_bodies)


def independent_rates(model: AbstractFormulation, state: State) -> tuple[int, ...]:
    """Minimal velocities that determine all others in a state, as many as degrees of freedom.

    Without loops these are all of them. Otherwise the others are found by elimination with
    pivoting, the last of the tree first, if the loops act on them enough.

    **Errors:** `ValueError` for a system with a `VelocityConstraint`.
    """
    system = model.multibody
    if system.velocity_constraints:
        raise ValueError(
            "Starts are fitted where positions and rates are free alike; the `VelocityConstraint` "
            f"{system.velocity_constraints[0].name!r} holds rates and leaves positions free. Give "
            "the start."
        )
    count = num_rates(model)
    J = loop_rows(model, state)
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
    return tuple(i for i in range(count) if i not in dependent)


def loop_rows(model: AbstractFormulation, state: State) -> np.ndarray:
    """Constraints of the loops on the minimal velocities in a state, without units, (m, f), on the
    host."""
    system = model.multibody
    if not system.closes:
        return np.zeros((0, num_rates(model)))
    return np.asarray(_loop_rows(system, state).matrix)


@eqx.filter_jit
def loop_rows_at(system: System, states: State) -> Float[Array, "B K m f"]:
    """Constraints of the loops on the minimal velocities in many states, (B, K) in front."""

    def rows(state):
        loops = _loop_rows(system, state)
        return loops.matrix / loops.scale

    return jax.vmap(jax.vmap(rows))(states)


@eqx.filter_jit
def _loop_rows(system, state):
    mechanics = SystemMechanics(system)
    poses = mechanics.poses_of(state.normalized())
    places = mechanics.place(poses)
    t = jnp.zeros((), state.position.dtype)
    return loop_gradient(mechanics, t, poses, places)


def selection(independent: tuple[int, ...], count: int, dtype: Any = float) -> Directions:
    """Directions whose coordinates are the changes of the minimal velocities `independent`."""
    unit = np.eye(count)
    rest = [i for i in range(count) if i not in independent]
    return Directions(
        jnp.asarray(unit[:, list(independent)], dtype), jnp.asarray(unit[:, rest], dtype)
    )


def displaced(
    model: AbstractFormulation,
    state: State,
    t: Float[Array, ""],
    directions: Directions,
    positions: Float[Array, " k"],
    rates: Float[Array, " k"],
) -> tuple[State, Bool[Array, ""]]:
    r"""The state moved along the null space of the joints, and whether they could be closed.

    The poses follow $q' = T(q)\,\nu$, with the free coordinates of $\nu$ constant, over one unit of
    a time in which nothing else changes; then Newton steps close the joints. So the change of a
    joint's coordinate is what was asked for, if it is one of `directions`. The minimal velocities
    are those of the state, changed in the new pose.

    **Arguments:** `state`, which the joints allow at `t`, s; `positions` and `rates`, changes in
    rad or m, and rad/s or m/s.
    **Source:** Lang (11) with (24), for the kinematics.
    """
    state = state.normalized()
    system = model.multibody
    if has_joints(system):
        return _displaced_with_joints(system, state, t, directions, positions, rates)
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


def _displaced_with_joints(system: System, state, t, directions, positions, rates):
    mechanics = SystemMechanics(system)
    t = jnp.asarray(t, state.position.dtype)
    places = mechanics.place(mechanics.poses_of(state))
    twists = Twists(state.velocity, state.angular_velocity)
    nu = tree_rates(mechanics, t, places, twists)
    angles = mechanics.angles_at(places, system.angle_joints)
    at = state.position, state.orientation, angles
    x, p, angles = _moved(mechanics, t, directions, positions, at)

    def closed(_, at):
        x, p = at
        return _closed(mechanics, t, x, p, angles)

    x, p = jax.lax.fori_loop(0, _NEWTON_STEPS, closed, (x, p))
    poses = _poses(mechanics, x, p, angles)
    places = mechanics.place(poses)
    twists = tree_twists(mechanics, t, poses, places, nu)
    residual = mechanics.constraint_rate(t, places, twists, loops_only=True)
    loops = loop_gradient(mechanics, t, poses, places)
    nu = nu + directions.completed(loops, rates, residual)
    twists = tree_twists(mechanics, t, poses, places, nu)
    moved = mechanics.with_angles_at(State(x, p, twists.linear, twists.angular), places)
    state = mechanics.with_angles_at(state, mechanics.place(mechanics.poses_of(state)))
    okay = jnp.max(jnp.stack(violations(mechanics, t, poses, places, twists))) < _OPEN
    # A trial that cannot be closed starts where nothing raises; it counts as failed.
    return jax.tree.map(lambda new, old: jnp.where(okay, new, old), moved, state), okay


def _moved(mechanics, t, directions, positions, at):
    """Poses and joint angles after a displacement, by Runge-Kutta steps of order 4."""

    def velocity(x, p, angles):
        poses = _poses(mechanics, x, p, angles)
        places = mechanics.place(poses)
        loops = loop_gradient(mechanics, t, poses, places)
        nu = directions.completed(loops, positions, jnp.zeros_like(loops.units))
        w = spread(mechanics, poses, loops.moving, nu)
        turn = jnp.pad(0.5 * w[:, 3:], ((0, 0), (1, 0)))
        joints = mechanics.system.angle_joints
        rates = mechanics.angle_rates(places, Twists(w[:, :3], w[:, 3:]), joints)
        return w[:, :3], jax.vmap(multiply)(p, turn), rates

    h, dtype = 1.0 / _STEPS, at[0].dtype
    parts = jnp.array([0.0, 0.5, 0.5, 1.0], dtype)
    weights = jnp.array([1 / 6, 1 / 3, 1 / 3, 1 / 6], dtype)

    def step(_, at):
        # The stages are a loop too: compiled once, not four times.
        def stage(carry, coefficients):
            total, slope = carry
            part, weight = coefficients
            slope = velocity(*jax.tree.map(lambda a, s: a + h * part * s, at, slope))
            return (jax.tree.map(lambda a, s: a + h * weight * s, total, slope), slope), None

        none = jax.tree.map(jnp.zeros_like, at)
        ((x, p, angles), _), _ = jax.lax.scan(stage, (at, none), (parts, weights))
        return x, _unit(p), angles

    return jax.lax.fori_loop(0, _STEPS, step, at)


def _closed(mechanics, t, x, p, angles):
    """One Newton step towards poses that the joints allow."""
    poses = _poses(mechanics, x, p, angles)
    change = pose_correction(mechanics, t, poses, mechanics.place(poses))
    turned = jax.vmap(multiply)(p, jax.vmap(exp_quaternion)(change[:, 3:]))
    return x + change[:, :3], _unit(turned)


def _unit(p):
    return p / jnp.sqrt(jnp.sum(p * p, axis=1, keepdims=True))


def _poses(mechanics, x, p, angles) -> Poses:
    """Poses with the revolutions that bring the angles of joints next to `angles`."""
    R = jax.vmap(euler_map)(_unit(p))
    return mechanics.poses(x, R, angles, mechanics.system.angle_joints)
