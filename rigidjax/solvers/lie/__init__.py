"""Integrators on the rotation group."""

from .generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from .munthe_kaas import MuntheKaas as MuntheKaas
from .tableau import RK4 as RK4
