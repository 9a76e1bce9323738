"""Locking and releasing joints as changes of transitions."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..annotations import Scalar
from ..forces.joint_force import joint_name
from ..formulations import AbstractFormulation
from ..formulations.binding import set_inputs
from ..formulations.charts import Unknowns
from ..formulations.null_space import AbstractNullSpace
from ..joints.base import AbstractJoint
from .transition import AbstractChange


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
    # Closed contacts answer by impacts of their own.
    open_ = jnp.zeros(len(modes.contacts), bool)
    modes = modes._replace(held=modes.held.at[len(modes.coordinates) :].set(open_))
    nu = model.rates_of(y)
    nu = nu - model.locking_change(t, y, modes, nu)
    return model.with_rates(y, modes.stop_rates(nu, modes.are_locked))


def _with_mode(model: Any, y: Unknowns, name: str, value: float) -> Unknowns:
    """Return the unknowns with a mode of all coordinates of a joint, if it has this mode."""
    if name not in model.multibody.sources:
        return y
    shape = model.multibody.sources[name][0].shape
    return set_inputs(model, y, {name: jnp.full(shape, value)})
