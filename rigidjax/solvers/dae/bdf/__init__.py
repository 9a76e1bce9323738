"""Backward differentiation formulas of variable order."""

from .bdf import BDF as BDF
