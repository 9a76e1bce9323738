"""Measurements from arrays and files."""
