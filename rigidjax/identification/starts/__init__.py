"""Starts of runs, given, estimated or fitted.

Start with `estimates.py`.
May import `identification/data` and lower layers.
"""
