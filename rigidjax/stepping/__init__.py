"""Runs that are advanced one period at a time, for environments, learning and control.

Start with `stepper.py`.
May import `simulate` and lower layers.
"""
