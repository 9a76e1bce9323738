"""Multiple shooting.

Start with `shooting.py`.
May import what `identification/fit` may.
"""
