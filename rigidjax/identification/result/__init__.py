"""The result of a fit: its record, reports, datasets and validation on other runs.

Start with `result.py`.
May import `identification/intervals` and lower layers.
"""
