"""Hooks and wrappers of solvers: projection, signals, counters, switching times, the probe.

Start with `after_step.py`.
May import all other folders of `solvers`.
"""
