"""Causes of residuals: what a model or its sensors may lack, added to a fit one by one.

Start with `causes.py`.
May import `identification/search`, `identification/starts` and lower layers.
"""
