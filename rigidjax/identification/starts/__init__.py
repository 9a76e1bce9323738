"""Starts of runs, given, estimated or fitted.

Start with `estimates.py`.
May import `simulate` and what is below it.
"""
