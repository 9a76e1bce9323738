"""Equilibria, and linear models around a motion.

Start with `linearisation.py`.
May import `control` and lower layers.
"""
