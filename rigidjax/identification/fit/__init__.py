"""Fits of parameters by least squares.

Start with `identify.py`.
May import `identification/noise`, `identification/statistics` and what is below them.
"""
