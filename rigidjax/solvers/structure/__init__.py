"""Integrators that keep momentum, energy or the group structure."""

from .base import AbstractStructureSolver as AbstractStructureSolver, ModelTerm as ModelTerm
from .energy_midpoint import EnergyMidpoint as EnergyMidpoint
from .energy_momentum import EnergyMomentum as EnergyMomentum
from .simo_wong import SimoWong as SimoWong
from .variational import Variational as Variational
