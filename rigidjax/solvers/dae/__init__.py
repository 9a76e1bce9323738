"""Implicit and extrapolation methods, for ordinary and differential-algebraic equations.

Start with `equations.py`, then `base.py`.
May import `solvers/explicit` and `solvers/base`.
"""
