"""Structure-preserving steps of systems with joints."""

from .energy_momentum import energy_momentum_step as energy_momentum_step
from .solver import AbstractSystemSolver as AbstractSystemSolver
from .variational import variational_step as variational_step
