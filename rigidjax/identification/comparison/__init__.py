"""Comparison of models.

Start with `compare.py`.
May import `identification/result` and lower layers.
"""
