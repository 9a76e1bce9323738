"""Comparison of models, and validation on held-out runs.

Start with `compare.py`.
May import `identification/fit` and what is below it.
"""
