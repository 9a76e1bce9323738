"""Measurements, from arrays and from files."""
