"""Loads, accelerations, energies and reactions.

Start with `select.py`, which chooses the algorithm.
May import `mechanics/kinematics` and lower layers.
"""
