"""Formulas that only the reproduction of papers needs; the rest of the package imports none."""
