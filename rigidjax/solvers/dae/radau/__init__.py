"""Radau IIA methods for stiff and differential-algebraic equations.

Start with `radau.py`.
May import `solvers/dae` and lower layers.
"""

from .radau import (
    AbstractRadau as AbstractRadau,
    Radau1 as Radau1,
    Radau5 as Radau5,
    Radau9 as Radau9,
    Radau13 as Radau13,
)
