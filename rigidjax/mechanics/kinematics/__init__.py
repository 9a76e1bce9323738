"""Poses and twists of bodies, motion subspaces of trees, values and rates of constraints.

Start with `poses.py`, then `trees.py`.
May import `mechanics/stacked` and lower layers.
"""
