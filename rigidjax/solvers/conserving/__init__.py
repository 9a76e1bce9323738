"""Integrators that conserve momentum, energy or the group structure."""
