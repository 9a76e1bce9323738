"""Systems of bodies, joints and forces."""

from typing import TypeGuard

from ..bodies.fixed_point import FixedPointBody
from .fixed_point import FixedPointMechanics as FixedPointMechanics
from .mechanics import AbstractMechanics as AbstractMechanics
from .placing import joint_states as joint_states, rate_labels as rate_labels
from .system import System as System


def as_mechanics(system: System | FixedPointBody) -> AbstractMechanics:
    """The mechanics of what a formulation was given; `TypeError` for anything else."""
    if isinstance(system, FixedPointBody):
        return FixedPointMechanics(system)
    if isinstance(system, AbstractMechanics):
        return system
    raise TypeError(
        f"A formulation takes a `System` or a `FixedPointBody`; got {type(system).__name__}. "
        "Wrap a single `Body` as `System(body)`."
    )


def has_joints(system: object) -> TypeGuard[System]:
    """Whether it is a `System` with joints, or other constraints between bodies."""
    return isinstance(system, System) and bool(system.joints or system.constraints)
