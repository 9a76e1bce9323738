"""Extrapolation methods of variable order.

Start with `odex.py`.
May import `solvers/dae` and lower layers.
"""

from .odex import Odex as Odex
from .seulex import Seulex as Seulex
