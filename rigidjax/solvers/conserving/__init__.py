"""Integrators that conserve momentum, energy or the group structure.

Start with `one_step.py`, then `energy_momentum.py`.
May import `solvers/base`.
"""
