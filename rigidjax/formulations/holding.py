r"""Joints whose coordinates are held at rest, by friction or by a lock.

Accelerations are linear in the efforts $\lambda$ on the held coordinates with the motions $S$:
$S \dot\nu = S \dot\nu_0 + S M^{-1} S^T \lambda$. The efforts make them zero.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..annotations import Scalar
from ..joints.friction import Friction, HeldFriction
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
            law = None if source.locks else jax.tree.map(lambda leaf, k=k: leaf[k], law)
            held.append(HeldCoordinate(source.joint, k, row, mode, law))
    return tuple(held)


def source_joint(source: Any) -> str | None:
    """Return the name of the joint whose mode a source is, or `None` for the value of an input."""
    return getattr(source, "joint", None)


def rate_rows(model: Any, joint: str, argument: str) -> list[int]:
    """Return the rows of the rates of a joint; `ValueError` unless it belongs to a tree."""
    return sorted(actuated_rates(model.multibody, model.rate_labels, joint, argument))


class Holding(NamedTuple):
    """Efforts and motion of K coordinates that have a mode, in the order of `held_coordinates`.

    **Attributes:** `efforts` that hold them (K,), zero where none does; `accelerations` (K,);
    `mobilities` (K,), the acceleration by a unit effort; `field`, the rate of all unknowns.
    """

    efforts: Float[Array, " K"]
    accelerations: Float[Array, " K"]
    mobilities: Float[Array, " K"]
    field: Unknowns


class Modes(NamedTuple):
    """Modes of K `coordinates`: the `direction` of sliding, and whether each is `held`."""

    coordinates: tuple[HeldCoordinate, ...]
    direction: Float[Array, " K"]
    held: Bool[Array, " K"]

    @property
    def rows(self) -> np.ndarray:
        """Rows of the coordinates among the generalised velocities."""
        return np.array([item.row for item in self.coordinates])

    @property
    def are_locks(self) -> np.ndarray:
        """Whether each coordinate belongs to a lock."""
        return np.array([item.law is None for item in self.coordinates])

    @property
    def are_locked(self) -> Bool[Array, " K"]:
        """Whether a lock holds each coordinate."""
        return self.held & self.are_locks


def modes_at(
    coordinates: Sequence[HeldCoordinate], values: dict[str, Float[Array, " *f"]]
) -> Modes:
    """Return the modes of coordinates from the values of their sources."""
    mode = jnp.stack([jnp.ravel(values[item.mode])[item.component] for item in coordinates])
    locked_rows = [
        [j for j, lock in enumerate(coordinates) if lock.law is None and lock.row == item.row]
        for item in coordinates
    ]
    held = []
    for k, item in enumerate(coordinates):
        is_held = mode[k] > 0.5 if item.law is None else mode[k] == 0
        for j in locked_rows[k]:
            # A lock takes the load that friction would carry.
            is_held = is_held if item.law is None else is_held & ~(mode[j] > 0.5)
        held.append(is_held)
    return Modes(tuple(coordinates), mode, jnp.stack(held))


def motion_responses(
    model: Any, t: Scalar, y: Unknowns, modes: Modes
) -> tuple[Float[Array, "K f"], Float[Array, "K K"]]:
    r"""Return $S M^{-1}$ and $S M^{-1} S^T$ of the coordinates, all others free to move."""
    units = jnp.eye(model.num_rates, dtype=split_chart(y)[0].dtype)[modes.rows]
    responses = jax.vmap(lambda impulse: model.free_response(t, y, impulse))(units)
    return responses, responses[:, modes.rows]


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
    levels = size * jnp.stack(
        [
            jnp.zeros((), A.dtype) if item.law is None else item.law.static_level.astype(A.dtype)
            for item in modes.coordinates
        ]
    )
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


def bind_efforts(model: Any, y: Unknowns, efforts: Float[Array, " K"] | None) -> Any:
    """Return the bound model whose joints carry efforts, and friction where they slide."""
    system: System = model.system
    modes: Modes = model.modes(y)
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
    return replace_fields(model, system=replace_fields(system, joints=tuple(joints)))


def with_smooth_friction(system: System) -> System:
    """Return the system in which joints do not stick exactly."""
    joints: list[Any] = list(system.joints)
    for j, joint in enumerate(joints):
        if joint.name in system.sticking_joints:
            joints[j] = replace_fields(
                joint, friction=replace_fields(joint.friction, sticking=False)
            )
    return replace_fields(system, joints=tuple(joints))
