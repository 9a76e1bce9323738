"""Weighted least squares: residuals of all runs, their derivatives, the search, its uncertainty.

Start with `problem.py`, then `least_squares.py`.
May import `identification/starts`, `noise`, `statistics` and lower layers.
"""
