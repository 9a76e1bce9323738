"""Fits of parameters, one data set or many.

Start with `identify.py`.
May import `identification/prediction`, `shooting` and lower layers.
"""
