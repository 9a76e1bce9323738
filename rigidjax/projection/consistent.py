"""Consistent initial positions and velocities of systems with joints."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from ..checks import ArrayInput, checked_with_derivatives, is_traced
from ..rotations.euler_map import euler_map
from ..rotations.so3 import exp_quaternion, multiply
from ..state import State
from ..system import System
from ..system.constraints import mass_metric, pose_correction, project_twists
from ..system.jointed import JointedMechanics, Twists

_TOLERANCE = 1e-9


def consistent_state(system: System, state: State | None = None, t: ArrayInput = 0.0) -> State:
    r"""The state nearest to `state` that the joints of `system` allow at time `t`.

    Positions by Levenberg-Marquardt's method from the given ones, in the mass metric, finished by
    Newton steps; velocities by one linear solve (Lang (62), P and V). Driven joints are where their
    `motion(t)` wants them.

    **Arguments:** `system`; `state`, a guess, the reference configuration if `None`; `t`, s.
    **Returns:** a `State` whose violations are at round-off.
    **Errors:** `ValueError` where the joints cannot be closed from there, or where prescribed
    motions contradict other constraints; both say which joint.
    """
    state = system.reference_state() if state is None else state
    state = state.normalized()
    if not system.joints:
        return state
    found, position, velocity = _consistent(system, state, t)
    names = [joint.name for joint in system.joints]
    for violation, message in (
        (position, "cannot be closed from these positions: the loop is too short, or a prescribed "
                   "motion asks for what other joints forbid"),
        (velocity, "contradicts the velocities that other constraints prescribe"),
    ):  # fmt: skip
        if is_traced(violation):
            messages = [f"The joint {name!r} {message}." for name in names]
            bad, which = jnp.any(~(violation < _TOLERANCE)), jnp.argmax(violation)
            check = functools.partial(eqx.branched_error_if, pred=bad, index=which, msgs=messages)
            found = checked_with_derivatives(found, check)
        else:
            worst = int(np.argmax(violation))
            if not violation[worst] < _TOLERANCE:
                raise ValueError(
                    f"The joint {names[worst]!r} {message}. It is left open by "
                    f"{float(violation[worst]):.3g}."
                )
    return found


@eqx.filter_jit
def _consistent(system, state, t):
    mechanics = JointedMechanics(system)
    t = jnp.asarray(t, state.position.dtype)

    def poses(x, p):
        return mechanics.poses(x, jax.vmap(euler_map)(p), jnp.zeros(0))

    def moved(x, p, change):
        turned = jax.vmap(multiply)(p, jax.vmap(exp_quaternion)(change[:, 3:]))
        return x + change[:, :3], turned

    scale = mass_metric(mechanics)

    def residual(unknowns, args):
        x, p = args
        x, p = moved(x, p, scale(unknowns))
        return mechanics.constraint(t, mechanics.place(poses(x, p)))

    start = (state.position, state.orientation)
    eps = float(jnp.finfo(state.position.dtype).eps)
    solution = optx.least_squares(
        residual, optx.LevenbergMarquardt(rtol=100 * eps, atol=100 * eps),
        jnp.zeros((mechanics.num_bodies, 6), state.position.dtype), start,
        max_steps=256, throw=False, adjoint=optx.RecursiveCheckpointAdjoint(),
    )  # fmt: skip
    x, p = moved(*start, scale(solution.value))
    for _ in range(3):
        here = poses(x, p)
        x, p = moved(x, p, pose_correction(mechanics, t, here, mechanics.place(here)))
    p = p / jnp.sqrt(jnp.sum(p * p, axis=1, keepdims=True))
    here = poses(x, p)
    places = mechanics.place(here)
    twists = Twists(state.velocity, state.angular_velocity)
    twists = project_twists(mechanics, t, here, places, twists)
    owners = np.array(mechanics.constraint_owners(), int)
    worst = lambda g: jnp.zeros(len(system.joints), g.dtype).at[owners].max(jnp.abs(g))  # noqa: E731
    position = worst(mechanics.constraint(t, places)) / jnp.maximum(1.0, jnp.max(jnp.abs(x)))
    rate = mechanics.constraint_rate(t, places, twists)
    velocity = worst(rate) / jnp.maximum(1.0, jnp.max(jnp.abs(twists.linear)))
    return State(x, p, twists.linear, twists.angular), position, velocity
