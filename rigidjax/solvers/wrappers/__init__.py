"""Wrappers of solvers: projection, signals, counters, switching times and the probe."""
