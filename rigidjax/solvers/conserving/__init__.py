"""Integrators that keep momentum, energy or the group structure."""
