"""Backward differentiation formulas of variable order.

Start with `bdf.py`.
May import `solvers/dae` and lower layers.
"""

from .bdf import BDF as BDF
