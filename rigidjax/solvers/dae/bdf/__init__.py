"""Backward differentiation formulas of variable order.

Start with `bdf.py`.
May import `solvers/dae` and what is below it.
"""

from .bdf import BDF as BDF
