"""Integrators on the rotation group.

Start with `generalized_alpha.py`.
May import `solvers/conserving`, `solvers/dae` and lower layers.
"""

from .generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from .munthe_kaas import RK4 as RK4, MuntheKaas as MuntheKaas
