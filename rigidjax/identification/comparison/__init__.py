"""Comparison of models.

Start with `compare.py`.
May import `identification/result` and what is below it.
"""
