"""Starts of runs."""
