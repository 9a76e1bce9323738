r"""Motion near a state in independent coordinates, and its derivatives.

The coordinates are $\xi = (\delta, \eta, s)$. The generalised velocities $\nu = N \delta$,
maintained over a unit of time, displace the positions by $\delta$; $\eta$ is the change of
independent generalised velocities, from which the constraints determine the others; $s$ is that of
the states of actuators.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix, Scalar, Vector
from ..checks import ArrayInput
from ..formulations import AbstractNullSpace
from ..formulations.charts import Unknowns, join_chart, split_chart
from ..formulations.choice import choose_formulation
from ..formulations.layout import TreeLayout
from ..formulations.minimal_rates import SystemConfiguration
from ..initial.local_coordinates import Directions
from ..mechanics.dynamics.loops import loop_gradient
from ..mechanics.kinematics.constraints import constraint_rates
from ..mechanics.kinematics.forward import plain_counts, turning_bodies
from ..mechanics.kinematics.poses import Motion, joint_frames_at
from ..mechanics.kinematics.trees import body_twists
from ..mechanics.stacked.system import PreparedSystem
from ..rotations.so3 import skew
from ..sensors import AbstractSensor
from ..state import State


def check_model(model: Any, function: str) -> AbstractNullSpace:
    """Return the model, or the formulation of a system; `TypeError` for one without generalised
    velocities as unknowns."""
    model = choose_formulation(model, function)
    if not isinstance(model, AbstractNullSpace):
        raise TypeError(
            f"`{function}` takes a `NullSpace` or `Relative` model; got `{type(model).__name__}`."
        )
    return model


def encode_state(model: AbstractNullSpace, t: ArrayInput, state: State) -> Unknowns:
    """Return the unknowns of a checked state, in moving charts if the model has them."""
    state = state.normalized()
    return model.chart(state, t) if model.recharting else model.start(state, t)


class LocalCoordinates(eqx.Module):
    r"""Independent coordinates of positions $\delta$, and of velocities $\eta$.

    They differ in number if constraints act on velocities alone. The rows, (p, f) and (v, f), map
    generalised velocities that the constraints permit to $\dot\delta$ and to $\eta$.
    """

    positions: Directions
    velocities: Directions
    position_rows: Float[Array, "p f"]
    velocity_rows: Float[Array, "v f"]


class LocalModel(NamedTuple):
    r"""First-order model near a state: $\dot\xi = f_0 + A \xi + B \delta u$ and $\delta z = C \xi +
    D \delta u$; `directions`, $N$, (f, p)."""

    A: Matrix
    B: Float[Array, "n m"]
    C: Float[Array, "z n"]
    D: Float[Array, "z m"]
    f0: Vector
    directions: Float[Array, "f p"]


def differentiate_motion(
    model_at: Callable[[Float[Array, " m"]], AbstractNullSpace],
    u: Float[Array, " m"],
    t: Scalar,
    y: Unknowns,
    local: LocalCoordinates,
    sensors: Sequence[AbstractSensor] = (),
) -> LocalModel:
    r"""Differentiate the rates of local coordinates and sensor readings in one forward pass.

    The matrix $A$ is that of the variational equation along the motion through the state: the
    difference of two neighbouring motions satisfies $\dot\xi = A \xi + B \delta u$. For angular
    velocities in body components, the variation of a rotation satisfies $\dot\delta = \eta - \Omega
    \times \delta$; for all other generalised velocities $\dot\delta = \eta$.

    **Arguments:** `model_at`, the model at values of its inputs; `u`, these values, (m,).

    **Source:** Marsden and Ratiu, Introduction to Mechanics and Symmetry, 2nd edition, 13.5, for
    variations of rotations.
    """
    model = model_at(u)
    readings = [sensor.predict(model, t, y) for sensor in sensors]
    model = model.bind(t, y).prepare(t)
    at = model.configuration_prepared(t, y)
    layout, p = model.layout, len(local.position_rows)
    n = p + len(local.velocity_rows) + layout.num_states

    def local_rates(both):
        xi, u = jnp.split(both, [n])
        near = unknowns_near(model, at, y, local, xi)
        used = model_at(u)
        nu = layout.velocities(split_chart(near)[0])
        field, _ = split_chart(used.vector_field(t, near))
        changes = [
            sensor.residual(sensor.predict(used, t, near), jax.lax.stop_gradient(reading))
            for sensor, reading in zip(sensors, readings, strict=True)
        ]
        rates = local.position_rows @ nu, local.velocity_rows @ layout.velocities(field)
        return (jnp.concatenate([*rates, layout.states(field), *changes]),) * 2

    both = jnp.concatenate([jnp.zeros(n, u.dtype), u])
    J, values = jax.jacfwd(local_rates, has_aux=True)(both)
    unit = jnp.eye(p, dtype=u.dtype)
    directions = jax.vmap(lambda delta: _permitted_velocities(at, local, delta), 0, 1)(unit)
    rotated = local.position_rows @ _rotation_of_variations(model, at, y) @ directions
    A = J[:n, :n].at[:p, :p].add(rotated)
    return LocalModel(A, J[:n, n:], J[n:, :n], J[n:, n:], values[:n], directions)


def unknowns_near(
    model: AbstractNullSpace,
    at: SystemConfiguration,
    y: Unknowns,
    local: LocalCoordinates,
    xi: Vector,
) -> Unknowns:
    """Return the unknowns at small local coordinates, exact to first order.

    **Arguments:** `model`, bound and prepared; `at`, its configuration at the unknowns `y`.
    """
    prepared, t, layout, (values, _) = at.prepared, at.t, model.layout, split_chart(y)
    p, v = len(local.position_rows), len(local.velocity_rows)
    delta, eta, states = jnp.split(xi, [p, p + v])
    zeta = _permitted_velocities(at, local, delta)
    values = values + displacement(model, at, y, zeta)
    values = layout.with_states(values, layout.states(values) + states)
    if not prepared.system.has_loops:
        nu = layout.velocities(values) + local.velocities.free @ eta
        return join_chart(layout.with_velocities(values, nu), y)
    poses = model.poses(t, join_chart(values, y))
    joint_frames = joint_frames_at(prepared, poses)
    twists = body_twists(prepared, t, poses, joint_frames, at.nu)
    residual = constraint_rates(prepared, t, joint_frames, twists, loops_only=True)
    loops = loop_gradient(prepared, t, poses, joint_frames)
    nu = at.nu + local.velocities.complete(loops, eta, residual)
    return join_chart(layout.with_velocities(values, nu), y)


def _permitted_velocities(
    at: SystemConfiguration, local: LocalCoordinates, delta: Float[Array, " p"]
) -> Float[Array, " f"]:
    r"""Return the generalised velocities $N \delta$ that constraints on positions permit."""
    holonomic: PreparedSystem = at.prepared.holonomic
    if not holonomic.system.has_loops:
        return local.positions.free @ delta
    loops = loop_gradient(holonomic, at.t, at.poses, at.joint_frames)
    return local.positions.complete(loops, delta, jnp.zeros_like(loops.units))


def displacement(
    model: AbstractNullSpace, at: SystemConfiguration, y: Unknowns, zeta: Float[Array, " f"]
) -> Float[Array, " N"]:
    """Return the rates of the position-level unknowns with generalised velocities `zeta`.

    The motion that drives prescribe has no part in them.
    """
    layout, (values, _) = model.layout, split_chart(y)
    nu = model.minimal(at.poses, layout.with_velocities(values, zeta))

    def twists(nu):
        return body_twists(at.prepared, at.t, at.poses, at.joint_frames, nu)

    change = jax.tree.map(jnp.subtract, twists(nu), twists(jnp.zeros_like(nu)))
    motion = Motion(nu, change, jnp.zeros_like(nu))
    rates = model.joined_rates(y, at.joint_frames, motion)
    rates = layout.with_velocities(rates, jnp.zeros_like(nu))
    return layout.with_states(rates, jnp.zeros_like(layout.states(rates)))


def _rotation_of_variations(
    model: AbstractNullSpace, at: SystemConfiguration, y: Unknowns
) -> Float[Array, "f f"]:
    r"""Return the matrix $X$ in $\dot\zeta = \delta\nu + X \zeta$ for variations $\zeta$."""
    system, nu = model.multibody, model.layout.velocities(split_chart(y)[0])
    if system.has_loops:
        nu = at.nu
    layout = TreeLayout(
        plain_counts(system), turning_bodies(system), 3, system.rates_of_bodies, 0,
        system.translates,
    )  # fmt: skip
    _, rows = layout.where_of_rates
    sign = -1.0 if model.rates == "body" else 1.0
    X = jnp.zeros((nu.size, nu.size), nu.dtype)
    if not len(rows):
        return X
    blocks = sign * jax.vmap(skew)(nu[rows])
    return X.at[rows[:, :, None], rows[:, None]].set(blocks, unique_indices=True)
