"""Changes of the start state of a run in directions that the joints allow."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...annotations import Flag, Scalar, Vector
from ...formulations import AbstractFormulation, Relative
from ...formulations.leaves import LeafMark, mark_leaves
from ...initial import JointStart
from ...initial.consistent import nearest_state
from ...initial.local_coordinates import Directions, num_rates, retract, selection
from ...joints.replacing import FORCE_FIELDS
from ...mechanics import System, has_joints
from ...persistent_jit import persistent_jit
from ...rotations import Quaternion
from ...state import State

# Constraint violation, relative to the size of the mechanism, to which loops are closed.
_CLOSED = 1e-8


@dataclasses.dataclass(frozen=True)
class StartSelector:
    """Function that picks a change of the start state; equal selectors share compiled code.

    **Attributes:** `independent`, indices of the generalised velocities along which the start
    changes; `num_rates`, number of all of them; `positions` and `rates`, whether the change
    contains either part.
    """

    independent: tuple[int, ...]
    num_rates: int
    positions: bool
    rates: bool

    def __call__(self, experiment: Any) -> Any:
        return experiment.start.changes[repr(self)]

    @property
    def entries(self) -> set[tuple[int, bool]]:
        """Indices of the changed generalised velocities, each with whether its rate changes."""
        parts = [False] * self.positions + [True] * self.rates
        return {(i, is_rate) for i in self.independent for is_rate in parts}


class StartChange(eqx.Module):
    """Changes of the start state in directions that the joints allow.

    **Attributes:** `changes`, for each selector of the independent positions, then of the
    independent rates, zero at the given start; `directions`, the generalised velocities that
    belong to all of them; `selectors`.
    """

    changes: dict[str, Vector]
    directions: Directions
    selectors: tuple[StartSelector, ...] = eqx.field(static=True)

    def apply(self, model: AbstractFormulation, state: State, t: Scalar) -> tuple[State, Flag]:
        """Return the changed state, and whether the joints could be closed."""
        independent = _independent(self.selectors)
        shift = rate = jnp.zeros(len(independent), self.directions.free.dtype)
        for selector in self.selectors:
            change, count = self.changes[repr(selector)], len(selector.independent)
            places = np.array([independent.index(i) for i in selector.independent])
            if selector.positions:
                shift = shift.at[places].set(change[:count])
            if selector.rates:
                rate = rate.at[places].set(change[-count:])
        return retract(model, state, t, self.directions, shift, rate)


def _independent(selectors: Iterable[StartSelector]) -> list[int]:
    return sorted({i for selector in selectors for i in selector.independent})


def zero_change(
    model: AbstractFormulation, selectors: tuple[StartSelector, ...], dtype: Any
) -> StartChange:
    """Return a zero change of the start.

    **Errors:** `ValueError` for another system than the one that the selectors were made for, and
    for two selectors of the same start.
    """
    count = num_rates(model)
    for selector in selectors:
        if selector.num_rates != count:
            raise ValueError(
                f"`start_state(model)` was called with a system of {selector.num_rates} "
                f"generalised velocities; the fitted one has {count}. Call it with the model that "
                "is fitted."
            )
    if sum(len(s.entries) for s in selectors) > len(set().union(*(s.entries for s in selectors))):
        raise ValueError("Two parameters fit the same part of the start; leave one of them out.")
    changes = {repr(s): jnp.zeros(len(s.entries), dtype) for s in selectors}
    return StartChange(changes, selection(tuple(_independent(selectors)), count, dtype), selectors)


def picks_geometry(experiment: Any, picked: Iterable[Callable[[Any], Any]]) -> bool:
    """Return whether admissible start states depend on the picked leaves.

    They depend on positions and orientations of bodies, on all fields of joints except those of
    forces, on constraints, and on prescribed motions. A `JointStart` follows the geometry anyway.
    """
    model = experiment.model
    if isinstance(model, JointStart) or not has_joints(model.system):
        return False
    pairs, marked = mark_leaves(experiment)
    marks = [where(marked) for where in picked]
    paths = [pairs[mark.number][0] for mark in marks if isinstance(mark, LeafMark)]
    return any(_is_geometry([getattr(key, "name", None) for key in path]) for path in paths)


def _is_geometry(names: list[str | None]) -> bool:
    """Return whether a path of field names, `None` for items of tuples, leads to geometry."""
    if names[0] != "model":
        return False
    for k, name in enumerate(names):
        if name == "bodies":
            return names[k + 2] in ("position", "orientation")
        if name == "joints":
            return names[k + 2] not in FORCE_FIELDS
        if name in ("constraints", "frames"):
            return True
    return False


def transfer_state(
    reference: AbstractFormulation, model: AbstractFormulation, state: State, t: Scalar
) -> tuple[State, Flag]:
    """Return the state of `model` that has the joint coordinates and rates of `state`.

    The coordinates are those of the spanning tree. Free bodies keep poses and twists, and
    prescribed joints follow their motion. Loops are then closed by the smallest change of the
    state. Differentiable with respect to the model, the state and the time.

    **Arguments:** `reference`, the model whose joints allow `state`; `model`, the same model with
    other parameter values; `t`, s.
    **Returns:** the state, and whether the loops could be closed.
    """
    t = jnp.asarray(t, state.position.dtype)
    systems: list[System] = [reference.multibody, model.multibody]
    before, after = (Relative(s, Quaternion(), recharting=False) for s in systems)
    transferred = after.decode(t, before.pack(state.normalized(), None, t))
    if not (systems[1].has_loops or systems[1].velocity_constraints):
        return transferred, jnp.array(True)
    closed, position, velocity = nearest_state(systems[1], transferred, t)
    okay = (jnp.max(position) < _CLOSED) & (jnp.max(velocity) < _CLOSED)
    # A trial whose loops do not close starts from the open state, where nothing raises, and fails.
    return jax.tree.map(lambda new, old: jnp.where(okay, new, old), closed, transferred), okay


@persistent_jit
def place_prescribed_joints(model: AbstractFormulation, state: State, t: Scalar) -> State:
    """Return the state with prescribed joints at the positions of their motions at time `t`, s."""
    return transfer_state(model, model, state, t)[0]
