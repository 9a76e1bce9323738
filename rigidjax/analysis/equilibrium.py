"""States at rest in which all forces balance."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, is_traced, is_tracing
from ..formulations import AbstractNullSpace
from ..formulations.charts import Unknowns, join_chart, split_chart
from ..formulations.choice import ModelInput
from ..initial.local_coordinates import Directions
from ..mechanics.dynamics.loops import loop_gradient
from ..persistent_jit import persistent_jit
from ..state import State
from .local_motion import (
    LocalCoordinates,
    check_model,
    differentiate_motion,
    displacement,
    encode_state,
)

# Largest number of Newton steps in the search for an equilibrium, largest number of halvings of a
# step, and largest step, in rad or relative to the size of the mechanism.
_MAX_STEPS, _MAX_HALVINGS, _MAX_LENGTH = 60, 30, 0.5
# Fraction of the largest singular value of the loop gradient below which others count as zero.
_CUTOFF = 1e-8


def equilibrium(model: ModelInput, state: State, t: ArrayInput = 0.0) -> State:
    """Return a state at rest near `state` in which all forces balance.

    Where the stiffness is not positive, a step descends in energy, by at most half a radian (or
    half the size of the mechanism); elsewhere it is a Newton step. A pendulum thus finds its lower
    equilibrium. A state that is already an equilibrium is returned, stable or not; `rj.linearize`
    tells whether it is stable. Directions without stiffness, such as those of a free body, are not
    changed.

    **Arguments:** `model`, a `NullSpace`, a `Relative` or a system; `state`, a guess that satisfies
    the joints, whose velocities are ignored; `t`, s.
    **Errors:** `TypeError` for another model; `ValueError` for actuators and controllers with
    states, and if the search does not converge.
    """
    checked = check_model(model, "equilibrium")
    # A function under `jax.jit` may also build model and state from concrete values.
    if is_traced((model, state)) or is_tracing():
        raise ValueError("`equilibrium` needs concrete values: call it outside `jax.jit`.")
    if checked.multibody.num_states:
        raise ValueError(
            "`equilibrium` balances the forces on bodies; it does not find the states of actuators "
            "and sampled controllers, which would have to be at rest as well. Replace every "
            "actuator by an `rj.Motor` with its force at rest."
        )
    state = checked.check_state(state.at_rest(), t)
    t = jnp.asarray(t, state.position.dtype)
    y = encode_state(checked, t, state)
    current, largest = _evaluate_rest(checked, t, y), 1e-300
    for _ in range(_MAX_STEPS):
        largest = max(largest, current.size, np.abs(current.stiffness).max(initial=0.0))
        if current.size <= 1e3 * np.finfo(current.acceleration.dtype).eps * largest:
            return checked.decode(t, y)
        step = current.step()
        for _ in range(_MAX_HALVINGS):
            trial = _displace(checked, t, y, current.directions @ jnp.asarray(step))
            after = _evaluate_rest(checked, t, trial)
            if after.size < current.size or after.energy < current.energy:
                break
            step *= 0.5
        else:
            break
        y, current = trial, after
    raise ValueError(
        f"`equilibrium` found none: accelerations of {current.size:.3g} (rad/s^2 or m/s^2) remain "
        "and do not decrease. Pass a `state` closer to an equilibrium."
    )


class _RestState(NamedTuple):
    """Mass, stiffness, acceleration and energy of a state at rest, in its free directions."""

    directions: Array
    mass: np.ndarray
    stiffness: np.ndarray  # derivative of the accelerations
    acceleration: np.ndarray
    energy: float

    @property
    def size(self) -> float:
        size = float(np.abs(self.acceleration).max(initial=0.0))
        return size if np.isfinite(size) else np.inf

    def step(self) -> np.ndarray:
        """Return Newton's step, or a descent step if the stiffness is not positive."""
        factor = np.linalg.cholesky(self.mass)
        inner = -np.linalg.solve(factor, self.mass @ self.stiffness) @ np.linalg.inv(factor).T
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        flat = 1e-10 * np.abs(values).max(initial=0.0)
        if np.all(values > flat):
            step = np.linalg.solve(self.stiffness, -self.acceleration)
        else:
            keep = np.abs(values) > flat
            along = vectors[:, keep].T @ (factor.T @ self.acceleration) / np.abs(values[keep])
            step = np.linalg.solve(factor.T, vectors[:, keep] @ along)
        return step * min(1.0, _MAX_LENGTH / max(np.abs(step).max(initial=0.0), 1e-300))


def _evaluate_rest(model: AbstractNullSpace, t: Scalar, y: Unknowns) -> _RestState:
    directions, mass, stiffness, acceleration, energy = _rest_arrays(
        model, t, y, _free_coordinates(model, t, y)
    )
    arrays = np.asarray(mass), np.asarray(stiffness), np.asarray(acceleration)
    return _RestState(directions, *arrays, float(energy))


@persistent_jit
def _rest_arrays(
    model: AbstractNullSpace, t: Scalar, y: Unknowns, local: LocalCoordinates
) -> tuple[Array, Array, Array, Array, Array]:
    motion = differentiate_motion(lambda _: model, jnp.zeros(0, t.dtype), t, y, local)
    N, r = motion.directions, motion.directions.shape[1]
    mass = N.T @ model.mass_matrix(t, y) @ N
    return N, mass, motion.A[r : 2 * r, :r], motion.f0[r : 2 * r], model.energy(t, y)


def _free_coordinates(model: AbstractNullSpace, t: Scalar, y: Unknowns) -> LocalCoordinates:
    """Return orthogonal coordinates that the loop constraints permit, in units of the mechanism."""
    f = model.num_rates
    scale, rows, rank = np.ones(f), np.eye(f), 0
    if model.multibody.has_loops:
        J, scale = (np.asarray(part) for part in _scaled_loop_gradient(model, t, y))
        _, sizes, rows = np.linalg.svd(J)
        rank = int(np.sum(sizes > _CUTOFF * sizes.max(initial=0.0)))
    columns = jnp.asarray(scale[:, None] * rows.T)
    directions = Directions(columns[:, rank:], columns[:, :rank])
    left_inverse = jnp.asarray(rows[rank:] / scale)
    return LocalCoordinates(directions, directions, left_inverse, left_inverse)


@persistent_jit
def _scaled_loop_gradient(model: AbstractNullSpace, t: Scalar, y: Unknowns) -> tuple[Array, Array]:
    at = model.configuration(t, y)
    loops = loop_gradient(at.prepared, at.t, at.poses, at.joint_frames)
    return loops.matrix, loops.scale


@persistent_jit
def _displace(
    model: AbstractNullSpace, t: Scalar, y: Unknowns, change: Float[Array, " f"]
) -> Unknowns:
    """Move by a finite `change` of generalised coordinates, and project onto the constraints."""
    parts = 8
    model = model.bind(t, y).prepare(t)

    def advance(_, y):
        at = model.configuration_prepared(t, y)
        moved = split_chart(y)[0] + displacement(model, at, y, change / parts)
        moved = model.layout.with_velocities(moved, jnp.zeros_like(change))
        projected = split_chart(model.project(t, join_chart(moved, y)))[0]
        return join_chart(model.layout.with_velocities(projected, jnp.zeros_like(change)), y)

    return jax.lax.fori_loop(0, parts, advance, y)
