"""Time integrators for diffrax.

Start with `base/terms.py`. Methods are in `explicit`, `dae`, `conserving` and `lie`; each folder
imports only those before it in this list, and `base`. `wrappers` changes the steps of all of them.
May import `projection` and lower layers.
"""

import typing as _typing

from ..deferred import deferred_names as _deferred_names
from .base.linear import Inverse as Inverse
from .base.terms import ImplicitTerm as ImplicitTerm, MassMatrixTerm as MassMatrixTerm
from .dae.controllers import (
    PredictiveController as PredictiveController,
    ProposedStepController as ProposedStepController,
)
from .dae.dae_term import dae_term as dae_term
from .dae.newton import SimplifiedNewton as SimplifiedNewton
from .explicit.continuous import continuous as continuous
from .explicit.unrolled import Unrolled as Unrolled, unroll_stages
from .wrappers.after_step import Projected as Projected, Recharted as Recharted

if _typing.TYPE_CHECKING:
    from .conserving.base import (
        AbstractStructureSolver as AbstractStructureSolver,
        ModelTerm as ModelTerm,
    )
    from .conserving.energy_midpoint import EnergyMidpoint as EnergyMidpoint
    from .conserving.energy_momentum import EnergyMomentum as EnergyMomentum
    from .conserving.simo_wong import SimoWong as SimoWong
    from .conserving.variational_step import Variational as Variational
    from .dae.bdf import BDF as BDF
    from .dae.extrapolation import Odex as Odex, Seulex as Seulex
    from .dae.radau import (
        AbstractRadau as AbstractRadau,
        Radau1 as Radau1,
        Radau5 as Radau5,
        Radau9 as Radau9,
        Radau13 as Radau13,
    )
    from .lie import RK4 as RK4, GeneralizedAlpha as GeneralizedAlpha, MuntheKaas as MuntheKaas

unrolled = unroll_stages

__getattr__, __dir__ = _deferred_names(
    __name__,
    {
        "BDF": "dae.bdf",
        "Odex": "dae.extrapolation",
        "Seulex": "dae.extrapolation",
        "AbstractRadau": "dae.radau",
        "Radau1": "dae.radau",
        "Radau5": "dae.radau",
        "Radau9": "dae.radau",
        "Radau13": "dae.radau",
        "AbstractStructureSolver": "conserving.base",
        "EnergyMidpoint": "conserving.energy_midpoint",
        "EnergyMomentum": "conserving.energy_momentum",
        "ModelTerm": "conserving.base",
        "SimoWong": "conserving.simo_wong",
        "Variational": "conserving.variational_step",
        "MuntheKaas": "lie",
        "RK4": "lie",
        "GeneralizedAlpha": "lie",
    },
)
