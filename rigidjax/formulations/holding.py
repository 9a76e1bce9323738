r"""Joints whose coordinates are held at rest, by friction or by a lock, and closed contacts.

Accelerations are linear in the efforts $\lambda$ on the held coordinates with the motions $S$:
$S \dot\nu = S \dot\nu_0 + S M^{-1} S^T \lambda$. The efforts make them zero. For a contact with the
distance $g$, $S$ is the gradient of $\dot g$, and the effort makes $\ddot g$ zero.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..annotations import Flag, Scalar
from ..joints.friction import Friction, HeldFriction, values_of_coordinate
from ..joints.replacing import replace_fields
from ..mechanics import System
from ..mechanics.dynamics.pseudo_inverse import pseudo_inverse
from ..signals.controllers import held_sources
from .actuation import actuated_rates
from .charts import Unknowns, split_chart

# Singular values of the scaled matrix below this part of the largest belong to joints that hold
# one another, as those of a gear do. Weights of efforts lie between this root and one.
_CUTOFF = 1e-11
_LEAST_WEIGHT = 1e-3


class HeldCoordinate(NamedTuple):
    """A coordinate that friction (`law`) or a lock (`None`) holds at times.

    **Attributes:** `joint`, its name; `component`, the index of its coordinate; `row`, that of its
    rate among the generalised velocities; `mode`, the name of the source of its mode.
    """

    joint: str
    component: int
    row: int
    mode: str
    law: Friction | None


def held_coordinates(model: Any) -> tuple[HeldCoordinate, ...]:
    """Return the coordinates that have a mode among the unknowns."""
    system, held = model.multibody, []
    for mode, (_, source) in held_sources(system.sources).items():
        if source_joint(source) is None:
            continue
        joint = system.joints[system.joint_index(source.joint)]
        for k, row in enumerate(rate_rows(model, source.joint, "simulate(model, ...)")):
            law: Any = joint.friction
            law = law.law if isinstance(law, HeldFriction) else law
            law = None if source.locks else values_of_coordinate(law, k)
            held.append(HeldCoordinate(source.joint, k, row, mode, law))
    return tuple(held)


def source_joint(source: Any) -> str | None:
    """Return the name of the joint whose mode a source is, or `None` for the value of an input."""
    return getattr(source, "joint", None)


def rate_rows(model: Any, joint: str, argument: str) -> list[int]:
    """Return the rows of the rates of a joint; `ValueError` unless it belongs to a tree."""
    return sorted(actuated_rates(model.multibody, model.rate_labels, joint, argument))


class HeldContact(eqx.Module):
    """A contact of a hybrid run that may stay closed.

    **Attributes:** `name`; `distance`, an `AbstractContact`; `is_closed`.
    """

    name: str = eqx.field(static=True)
    distance: Any
    is_closed: Flag


class Holding(NamedTuple):
    """Efforts and motion of K coordinates that have a mode, and then of C contacts, in the order of
    `held_coordinates`.

    **Attributes:** `efforts` that hold them, zero where none does; `accelerations`, of contacts
    those of their distances; `mobilities`, the acceleration per unit effort; `loads`, the
    accelerations without efforts; shape (K + C,). `nu_dot`, the generalised accelerations.
    """

    efforts: Float[Array, " K+C"]
    accelerations: Float[Array, " K+C"]
    mobilities: Float[Array, " K+C"]
    loads: Float[Array, " K+C"]
    nu_dot: Float[Array, " f"]


class Modes(NamedTuple):
    """Modes of K `coordinates`: the `direction` of sliding; and whether each coordinate and each of
    C `contacts` is `held`."""

    coordinates: tuple[HeldCoordinate, ...]
    contacts: tuple[HeldContact, ...]
    direction: Float[Array, " K"]
    held: Bool[Array, " K+C"]

    @property
    def rows(self) -> np.ndarray:
        """Rows of the coordinates among the generalised velocities."""
        return np.array([item.row for item in self.coordinates], int)

    @property
    def are_locks(self) -> np.ndarray:
        """Whether each coordinate belongs to a lock; contacts count as locks."""
        locks = [item.law is None for item in self.coordinates]
        return np.array([*locks, *[True] * len(self.contacts)], bool)

    @property
    def are_locked(self) -> Bool[Array, " K+C"]:
        """Whether a lock or a contact holds each coordinate."""
        return self.held & self.are_locks

    def stop_rates(self, nu: Float[Array, " f"], held: Bool[Array, " K+C"]) -> Float[Array, " f"]:
        """Return generalised velocities in which those of held coordinates are exactly zero."""
        if not self.coordinates:
            return nu
        return nu.at[self.rows].multiply(jnp.where(held[: len(self.coordinates)], 0.0, 1.0))


def modes_at(
    coordinates: Sequence[HeldCoordinate],
    values: dict[str, Float[Array, " *f"]],
    contacts: tuple[HeldContact, ...],
) -> Modes:
    """Return the modes of coordinates from the values of their sources, and those of contacts."""
    modes = [jnp.ravel(values[item.mode])[item.component] for item in coordinates]
    locked_rows = [
        [j for j, lock in enumerate(coordinates) if lock.law is None and lock.row == item.row]
        for item in coordinates
    ]
    held = []
    for k, item in enumerate(coordinates):
        is_held = modes[k] > 0.5 if item.law is None else modes[k] == 0
        for j in locked_rows[k]:
            # A lock takes the load that friction would carry.
            is_held = is_held if item.law is None else is_held & ~(modes[j] > 0.5)
        held.append(is_held)
    held += [contact.is_closed for contact in contacts]
    direction = jnp.stack(modes) if modes else jnp.zeros(0)
    return Modes(tuple(coordinates), contacts, direction, jnp.stack(held))


def with_closed(model: Any, is_closed: Bool[Array, " C"]) -> Any:
    """Return the model with other flags of the contacts that are closed."""
    system = model.system
    contacts = tuple(
        replace_fields(contact, is_closed=is_closed[c]) for c, contact in enumerate(system.contacts)
    )
    return replace_fields(model, system=replace_fields(system, contacts=contacts))


def rate_and_gradient(
    model: Any, rate: Callable[[Unknowns], Scalar], y: Unknowns
) -> tuple[Scalar, Float[Array, " f"]]:
    """Return a rate that depends on the unknowns, and its gradient on generalised velocities."""
    return jax.value_and_grad(lambda nu: rate(model.with_rates(y, nu)))(model.rates_of(y))


def motion_responses(
    model: Any, t: Scalar, y: Unknowns, modes: Modes
) -> tuple[Float[Array, "K+C f"], Float[Array, "K+C f"], Float[Array, "K+C K+C"]]:
    r"""Return $S$, $S M^{-1}$ and $S M^{-1} S^T$ of the coordinates and contacts, all free."""
    still = jnp.zeros_like(model.rates_of(y))
    return _responses(model, t, y, modes, _contact_motions(model, t, y, modes, still))


def _contact_motions(
    model: Any, t: Scalar, y: Unknowns, modes: Modes, nu_dot: Float[Array, " f"]
) -> list[Any]:
    return [contact.distance.motion(model, t, y, nu_dot) for contact in modes.contacts]


def _responses(
    model: Any, t: Scalar, y: Unknowns, modes: Modes, contacts: list[Any]
) -> tuple[Array, Array, Array]:
    S = jnp.eye(model.num_rates, dtype=split_chart(y)[0].dtype)[modes.rows]
    S = jnp.concatenate([S, *(contact.gradient[None] for contact in contacts)])
    responses = jax.vmap(lambda impulse: model.free_response(t, y, impulse))(S)
    return S, responses, responses @ S.T


def hold(model: Any, t: Scalar, y: Unknowns, modes: Modes, nu_dot: Float[Array, " f"]) -> Holding:
    """Return the efforts on the coordinates and contacts, and the motion that they cause.

    **Arguments:** `nu_dot`, the generalised accelerations without efforts.
    """
    contacts = _contact_motions(model, t, y, modes, nu_dot)
    _, responses, A = _responses(model, t, y, modes, contacts)
    loads = [nu_dot[modes.rows], *(contact.acceleration[None] for contact in contacts)]
    loads = jnp.concatenate(loads)
    efforts = -solve_held(A, modes, loads)
    nu_dot = modes.stop_rates(nu_dot + responses.T @ efforts, modes.held)
    accelerations = jnp.where(modes.held, 0.0, loads + A @ efforts)
    return Holding(efforts, accelerations, jnp.diagonal(A), loads, nu_dot)


def solve_held(
    A: Float[Array, "K K"], modes: Modes, rates: Float[Array, " K"]
) -> Float[Array, " K"]:
    """Return the impulses or efforts that cause `rates` at the held coordinates, (K,).

    Joints that hold one another share a load in proportion to their levels of friction, so that
    they slip together; locks take all of it.
    """
    if len(rates) == 1:
        return jnp.where(modes.held, rates / jnp.where(modes.held, jnp.diagonal(A), 1.0), 0.0)
    diagonal = jnp.diagonal(A)
    size = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
    none = jnp.zeros((), A.dtype)
    levels = [
        none if item.law is None else item.law.static_level.astype(A.dtype)
        for item in modes.coordinates
    ]
    levels = size * jnp.stack([*levels, *[none] * len(modes.contacts)])
    largest = jnp.max(levels)
    weights = jnp.maximum(levels / jnp.where(largest > 0, largest, 1.0), _LEAST_WEIGHT)
    if modes.are_locks.any():
        weights = jnp.where(modes.are_locks, 1.0, _LEAST_WEIGHT * weights)
    scale = jnp.where(modes.held, jnp.sqrt(weights) / size, 0.0)
    scaled, wanted = scale[:, None] * A * scale, scale * rates
    inverse = pseudo_inverse(scaled, _CUTOFF)
    found = inverse @ wanted
    # A second step removes the round-off of the decomposition.
    found = found + inverse @ (wanted - scaled @ found)
    return scale * found


def bind_efforts(model: Any, t: Scalar, y: Unknowns, efforts: Float[Array, " K+C"] | None) -> Any:
    """Return the bound model whose joints and contacts carry efforts, and friction where they
    slide."""
    system: System = model.system
    modes: Modes = model.modes(y)
    has_efforts = efforts is not None
    efforts = jnp.zeros_like(modes.direction) if efforts is None else efforts
    joints = list(system.joints)
    for j, joint in enumerate(joints):
        at = [k for k, item in enumerate(modes.coordinates) if item.joint == joint.name]
        if not at:
            continue
        effort = direction = jnp.zeros(joint.num_rates, efforts.dtype)
        for k in at:
            item = modes.coordinates[k]
            effort = effort.at[item.component].add(efforts[k])
            if item.law is not None:
                direction = direction.at[item.component].set(modes.direction[k])
        law: Any = joint.friction
        law = law.law if isinstance(law, HeldFriction) else law
        joints[j] = replace_fields(joint, friction=HeldFriction(effort, direction, law))
    if modes.coordinates:
        model = replace_fields(model, system=replace_fields(system, joints=tuple(joints)))
    if not (modes.contacts and has_efforts):
        return model
    first = len(modes.coordinates)
    forces = [
        contact.distance.force(model, efforts[first + c])
        for c, contact in enumerate(modes.contacts)
    ]
    model = model.prepare(t)
    prepared = model.prepared_system
    # Not added to the forces of the system, which determine whose revolutions it counts.
    arrays = replace_fields(
        prepared, forces=[*prepared.forces, *prepared.stack_forces(forces)], system=None
    )
    return replace_fields(model, arrays=arrays)


def with_smooth_friction(system: System) -> System:
    """Return the system in which joints do not stick exactly."""
    joints: list[Any] = list(system.joints)
    for j, joint in enumerate(joints):
        if joint.name in system.sticking_joints:
            joints[j] = replace_fields(
                joint, friction=replace_fields(joint.friction, sticking=False)
            )
    return replace_fields(system, joints=tuple(joints))
