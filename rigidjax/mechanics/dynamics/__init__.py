"""Algorithms that compute accelerations and solve constraints."""
