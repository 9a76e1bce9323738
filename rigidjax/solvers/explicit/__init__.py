"""Explicit Runge-Kutta methods with unrolled stages or a loop over stages.

Start with `unrolled.py`.
May import `solvers/base`.
"""
