r"""Joints that are held at rest: stick and slip by friction, locks and their release.

A joint slips where the effort that holds it reaches the level of friction at rest, and sticks where
its rate passes through zero; if friction cannot hold it, it continues to slip. One coordinate
changes at a time: after its change, and after every other transition, the coordinate whose mode
contradicts the motion most changes next, until none does.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..annotations import Scalar
from ..checks import common_dtype
from ..forces.joint_force import joint_name
from ..formulations import AbstractFormulation
from ..formulations.binding import set_inputs
from ..formulations.charts import Unknowns
from ..formulations.holding import HeldCoordinate, held_coordinates, rate_rows
from ..formulations.null_space import AbstractNullSpace
from ..formulations.view import SystemView
from ..joints.base import AbstractJoint
from ..joints.replacing import FORCE_FIELDS, replace_fields
from ..mechanics import System
from ..signals.controllers import SwitchedValue
from ..signals.inputs import InputTarget, inputs_of
from .transition import AbstractChange, Transition

# Rates that count as zero, relative to those that the kinetic energy and friction could cause.
_REST = 1e-12
# Excess of an effort or an acceleration, relative to friction at rest, that counts as round-off.
_ROUND_OFF = 1e-10


class _Motion:
    """Motion of the k-th coordinate that has a mode.

    **Attributes:** `sticks`, whether friction holds it; `is_locked`; `direction` of sliding;
    `effort` that holds it; `rate`; `is_moving`, whether the rate is more than round-off;
    `acceleration`; `mobility`, the acceleration per unit effort; `law` of friction.
    """

    def __init__(self, model: Any, t: Scalar, y: Unknowns, k: int, duration: Scalar):
        modes, at = model.modes(y), model.holding(t, y)
        self.law: Any = modes.coordinates[k].law
        self.direction, self.sticks = modes.direction[k], modes.held[k]
        self.is_locked = (self.direction == 0) & ~self.sticks
        self.effort, self.acceleration = at.efforts[k], at.accelerations[k]
        self.mobility = at.mobilities[k]
        self.rate = model.rates_of(y)[modes.coordinates[k].row]
        energy = jnp.maximum(model.kinetic_energy(t, y), 0.0)
        possible = jnp.sqrt(2.0 * energy * self.mobility)
        possible = possible + self.mobility * self.law.static_level * duration
        self.is_moving = jnp.abs(self.rate) > _REST * possible


class _Margin(eqx.Module):
    """The function whose fall through zero ends a mode of a coordinate: the squared level at rest
    less the squared effort while it sticks, the rate in the direction of sliding otherwise."""

    index: int = eqx.field(static=True)

    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        model, y, k = view.model, view.y, self.index
        modes, effort = model.modes(y), model.holding(t, y).efforts[k]
        item = modes.coordinates[k]
        level, direction = item.law.static_level, modes.direction[k]
        rate = direction * model.rates_of(y)[item.row]
        free = jnp.where(direction == 0, jnp.ones_like(rate), rate)
        return jnp.where(modes.held[k], (level - effort) * (level + effort), free)


class StickOrSlip(AbstractChange):
    """The change of a coordinate that starts to slip, or to stick.

    **Attributes:** `index` of the coordinate among those with a mode; `duration` of the run, s.
    """

    index: int = eqx.field(static=True)
    duration: Scalar
    sets_modes: ClassVar[bool] = True

    def apply(self, model: Any, t: Scalar, y: Unknowns, when: Callable[..., Scalar]) -> Unknowns:
        """Return the unknowns after the transition; see `AbstractChange.apply`."""
        item = held_coordinates(model)[self.index]
        at = _Motion(model, t, y, self.index, self.duration)
        slips = jnp.where(at.is_moving, jnp.sign(at.rate), -jnp.sign(at.effort))
        mode = jnp.where(at.sticks | at.is_moving, slips, 0.0)
        y = set_inputs(model, y, {item.mode: _with_entry(model, y, item, mode)})
        nu = model.rates_of(y)
        return model.with_rates(y, nu.at[item.row].multiply(jnp.where(mode == 0, 0.0, 1.0)))

    def urgency(self, model: Any, t: Scalar, y: Unknowns) -> Scalar:
        """Return how much the mode of the coordinate contradicts the motion; zero if not at all."""
        at = _Motion(model, t, y, self.index, self.duration)
        level = at.law.static_level
        excess = jnp.abs(at.effort) - level
        overloaded = at.sticks & ~at.is_moving & (excess > _ROUND_OFF * level)
        pushed = at.sticks & at.is_moving
        slides = ~at.sticks & ~at.is_locked
        reversed_ = slides & at.is_moving & (at.direction * at.rate < 0)
        inward = -at.direction * at.acceleration
        stops = slides & ~at.is_moving & (inward > _ROUND_OFF * at.mobility * level)
        # Efforts are compared by the accelerations that they would cause.
        return jnp.where(
            pushed | reversed_,
            jnp.inf,
            jnp.where(overloaded, excess * at.mobility, jnp.where(stops, inward, 0.0)),
        )

    def sticks(self, model: Any, y: Unknowns) -> Any:
        """Return whether the coordinate sticks."""
        return model.modes(y).held[self.index]


def stick_and_slip(model: Any, duration: Scalar) -> tuple[Transition, ...]:
    """Return the transitions of all coordinates that friction holds at times."""
    coordinates = held_coordinates(model)
    counts = [item.joint for item in coordinates if item.law is not None]
    return tuple(
        Transition(_Margin(k), StickOrSlip(k, duration), -1, _name(item, counts.count(item.joint)))
        for k, item in enumerate(coordinates)
        if item.law is not None
    )


def declare_modes(
    model: AbstractFormulation, transitions: Sequence[Transition]
) -> tuple[AbstractFormulation, dict[str, Array]]:
    """Return the model with the modes of its joints among the unknowns, and their values by name.

    Joints whose friction sticks have one, and joints that a transition locks or releases.

    **Errors:** `ValueError` for joints and formulations that have no modes.
    """
    locks: dict[str, bool] = {}
    for item in transitions:
        if isinstance(item.change, Lock):
            locks.setdefault(item.change.joint, False)
        elif isinstance(item.change, Release):
            locks[item.change.joint] = locks.get(item.change.joint) or item.change.from_start
    system = model.multibody
    if not locks and not system.sticking_joints:
        return model, {}
    if not isinstance(model, AbstractNullSpace) or not isinstance(model.system, System):
        raise ValueError(
            "Joints stick and lock in models of a `System` in the formulations `NullSpace` and "
            f"`Relative`; got `{type(model).__name__}` of a `{type(model.system).__name__}`."
        )
    sources = {
        sliding_name(name): _mode_of(model, name, 0.0, False, "Friction(sticking=True)")
        for name in system.sticking_joints
    }
    sources |= {
        locked_name(name): _mode_of(model, name, float(value), True, "Lock(joint=...)")
        for name, value in locks.items()
    }
    if taken := sorted(set(sources) & set(inputs_of(model))):
        raise ValueError(
            f"The model has an input called {taken[0]!r}, the name of the mode of a joint. "
            "Rename it."
        )
    system = replace_fields(system, sources={**system.sources, **sources})
    values = {name: source.value for name, (_, source) in sources.items()}
    return replace_fields(model, system=system), values


def start_modes(model: Any, t: Scalar, y: Unknowns, duration: Scalar) -> Unknowns:
    """Return the unknowns at the start of a run: joints that move slide, and locked ones stop."""
    y = stop_locked(model, t, y)
    for k, item in enumerate(held_coordinates(model)):
        if item.law is not None:
            at = _Motion(model, t, y, k, duration)
            mode = jnp.where(at.is_moving, jnp.sign(at.rate), at.direction)
            y = set_inputs(model, y, {item.mode: _with_entry(model, y, item, mode)})
    return y


def _mode_of(
    model: AbstractNullSpace, joint: str, value: float, locks: bool, argument: str
) -> tuple[InputTarget, SwitchedValue]:
    """Return the source of the mode of a joint."""
    found = model.multibody.joints[model.multibody.joint_index(joint)]
    if not set(FORCE_FIELDS) <= set(vars(found)):
        raise ValueError(
            f"`{argument}` holds a `Revolute`, `Prismatic`, `Screw` or `Cylindrical`; got the "
            f"{type(found).__name__} {joint!r}."
        )
    shape = (len(rate_rows(model, joint, argument)),)
    leaf = jnp.full(shape if shape != (1,) else (), value, common_dtype(model))
    name = locked_name(joint) if locks else sliding_name(joint)
    return InputTarget(None, name, leaf.shape), SwitchedValue(leaf, joint, locks)


def _with_entry(model: Any, y: Unknowns, item: HeldCoordinate, mode: Scalar) -> Array:
    """Return the modes of a joint with the mode of one coordinate replaced."""
    value = model.held_inputs(y)[item.mode]
    if not value.shape:
        return jax.lax.stop_gradient(mode)
    return value.at[item.component].set(jax.lax.stop_gradient(mode))


def _name(item: HeldCoordinate, count: int) -> str:
    return item.joint if count == 1 else f"{item.joint}[{item.component}]"


class Lock(AbstractChange):
    r"""Lock a joint at its present coordinates, a `change` of a `Transition`.

    Its rate ends by an impulse, to which all other joints respond: momentum is conserved in all
    motions but that of the joint, and kinetic energy is lost. From then on an effort holds the rate
    at zero, until an `rj.Release` of the same joint. Impacts act on the locked mechanism.
    `sol.inputs["hinge.locked"]` is 1 while the joint is locked, else 0.

    ```python
    catch = rj.Transition(lambda t, view: view.coordinates["elbow"][0], rj.Lock("elbow"))
    ```

    **Arguments:** `joint`, a `Revolute`, `Prismatic`, `Screw` or `Cylindrical` of a tree, or its
    name.
    **Raises:** `TypeError` for another object; when a run starts, `ValueError` for an unknown
    joint, a joint that closes a loop, and other kinds of joints and formulations.
    """

    joint: str = eqx.field(static=True)
    sets_modes: ClassVar[bool] = True

    def __init__(self, joint: str | AbstractJoint):
        self.joint = joint_name(joint, "Lock")

    def apply(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns, when: Callable[..., Scalar]
    ) -> Unknowns:
        """Return the unknowns after locking; see `AbstractChange.apply`."""
        y = _with_mode(model, y, locked_name(self.joint), 1.0)
        return stop_locked(model, t, _with_mode(model, y, sliding_name(self.joint), 0.0))


class Release(AbstractChange):
    """Release a locked joint, a `change` of a `Transition`; see `rj.Lock`.

    **Arguments:** `joint`, as for `rj.Lock`; `from_start`, whether the joint is locked from the
    start of the run until then.
    **Raises:** as `rj.Lock`.
    """

    joint: str = eqx.field(static=True)
    from_start: bool = eqx.field(static=True)
    sets_modes: ClassVar[bool] = True

    def __init__(self, joint: str | AbstractJoint, from_start: bool = False):
        self.joint = joint_name(joint, "Release")
        if not isinstance(from_start, bool):
            raise TypeError(f"`Release(from_start=...)` must be True or False; got {from_start!r}.")
        self.from_start = from_start

    def apply(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns, when: Callable[..., Scalar]
    ) -> Unknowns:
        """Return the unknowns after the release; see `AbstractChange.apply`."""
        return _with_mode(model, y, locked_name(self.joint), 0.0)


def locked_name(joint: str) -> str:
    """Return the name of the input that tells whether a joint is locked."""
    return f"{joint}.locked"


def sliding_name(joint: str) -> str:
    """Return the name of the input that is the direction in which a joint slides."""
    return f"{joint}.sliding"


def stop_locked(model: Any, t: Scalar, y: Unknowns) -> Unknowns:
    """Return the unknowns with the rates of locked joints stopped by impulses."""
    modes = model.modes(y) if isinstance(model, AbstractNullSpace) else None
    if modes is None or not modes.are_locks[: len(modes.coordinates)].any():
        return y
    # Closed contacts respond with impacts of their own.
    open_ = jnp.zeros(len(modes.contacts), bool)
    modes = modes._replace(held=modes.held.at[len(modes.coordinates) :].set(open_))
    nu = model.rates_of(y)
    nu = nu - model.locking_change(t, y, modes, nu)
    return model.with_rates(y, modes.stop_rates(nu, modes.are_locked))


def _with_mode(model: Any, y: Unknowns, name: str, value: float) -> Unknowns:
    """Return the unknowns with a mode set for all coordinates of a joint, if it has this mode."""
    if name not in model.multibody.sources:
        return y
    shape = model.multibody.sources[name][0].shape
    return set_inputs(model, y, {name: jnp.full(shape, value)})
