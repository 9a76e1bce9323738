"""Integrators on the rotation group.

Start with `generalized_alpha.py`.
May import `solvers/conserving`, `solvers/dae` and what is below them.
"""

from .generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from .munthe_kaas import MuntheKaas as MuntheKaas
from .tableau import RK4 as RK4
