"""Solvers around solvers: projection, signals, counters, switching times, the probe."""
