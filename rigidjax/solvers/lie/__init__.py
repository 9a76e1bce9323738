"""Integrators on the rotation group."""

from .commutator_free import CommutatorFree4 as CommutatorFree4
from .generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from .munthe_kaas import MuntheKaas as MuntheKaas
from .tableau import RK4 as RK4
