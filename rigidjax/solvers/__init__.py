"""Time integrators for diffrax."""

import typing as _typing
from importlib import import_module as _import_module

from .after_step import Projected as Projected, Recharted as Recharted
from .continuous import continuous as continuous
from .dae.dae_term import dae_term as dae_term
from .dae.newton import SimplifiedNewton as SimplifiedNewton
from .dae.predictive import PredictiveController as PredictiveController
from .dae.proposed import ProposedStepController as ProposedStepController
from .linear import Inverse as Inverse
from .terms import ImplicitTerm as ImplicitTerm, MassMatrixTerm as MassMatrixTerm
from .unrolled import Unrolled as Unrolled, unrolled as unrolled

if _typing.TYPE_CHECKING:
    from .dae.bdf import BDF as BDF
    from .dae.extrapolation import Odex as Odex, Seulex as Seulex
    from .dae.radau import (
        AbstractRadau as AbstractRadau,
        Radau1 as Radau1,
        Radau5 as Radau5,
        Radau9 as Radau9,
        Radau13 as Radau13,
    )
    from .structure.base import (
        AbstractStructureSolver as AbstractStructureSolver,
        ModelTerm as ModelTerm,
    )
    from .structure.energy_midpoint import EnergyMidpoint as EnergyMidpoint
    from .structure.energy_momentum import EnergyMomentum as EnergyMomentum
    from .structure.lie import (
        RK4 as RK4,
        CommutatorFree4 as CommutatorFree4,
        GeneralizedAlpha as GeneralizedAlpha,
        MuntheKaas as MuntheKaas,
    )
    from .structure.simo_wong import SimoWong as SimoWong
    from .structure.variational import Variational as Variational

# Imported when they are first asked for.
_HOMES = {
    "BDF": "dae.bdf",
    "Odex": "dae.extrapolation",
    "Seulex": "dae.extrapolation",
    "AbstractRadau": "dae.radau",
    "Radau1": "dae.radau",
    "Radau5": "dae.radau",
    "Radau9": "dae.radau",
    "Radau13": "dae.radau",
    "AbstractStructureSolver": "structure.base",
    "EnergyMidpoint": "structure.energy_midpoint",
    "EnergyMomentum": "structure.energy_momentum",
    "ModelTerm": "structure.base",
    "SimoWong": "structure.simo_wong",
    "Variational": "structure.variational",
    "MuntheKaas": "structure.lie",
    "RK4": "structure.lie",
    "CommutatorFree4": "structure.lie",
    "GeneralizedAlpha": "structure.lie",
}


def __getattr__(name: str) -> _typing.Any:
    if name in _HOMES:
        return getattr(_import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
