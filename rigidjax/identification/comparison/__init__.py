"""Comparison of models, and validation on held-out runs."""
