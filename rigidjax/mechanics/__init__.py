"""Systems of bodies, joints and forces.

Start with `system.py`; then `declared` (what a user declares), `stacked` (its parameters as
arrays), `kinematics` (poses, twists, constraints) and `dynamics` (accelerations, reactions), each
of which imports those before it.
May import `forces` and lower layers.
"""

from typing import TypeGuard

from ..bodies.fixed_point import FixedPointBody
from ..checks import check_one_precision
from .fixed_point import system_of as system_of
from .kinematics.forward import joint_states as joint_states, rate_labels as rate_labels
from .stacked.system import (
    PreparedSystem as PreparedSystem,
    StackedSystem as StackedSystem,
    prepare_system as prepare_system,
    separate_arrays as separate_arrays,
)
from .system import System as System


def check_system(system: object) -> None:
    """Raise `TypeError` unless it is a `System` or a `FixedPointBody`, `ValueError` for parts of
    different precision."""
    if not isinstance(system, System | FixedPointBody):
        raise TypeError(
            f"A formulation takes a `System` or a `FixedPointBody`; got {type(system).__name__}. "
            "Wrap a single `Body` as `System(body)`."
        )
    check_one_precision("A formulation", [("the system", system)])


def check_constant_masses(what: str, system: System) -> None:
    """Raise `ValueError` for masses that are functions of time.

    **Arguments:** `what`, subject of the message.
    """
    if system.has_changing_mass:
        raise ValueError(
            f"{what} takes constant masses; `Body(mass=...)` is a function of time. Use "
            "`NullSpace` or `Relative` with a Runge-Kutta method."
        )


def has_joints(system: object) -> TypeGuard[System]:
    """Return whether it is a `System` with joints, or other constraints between bodies."""
    return isinstance(system, System) and bool(system.joints or system.constraints)
