"""Covariances, identifiability, and tests of residuals.

Start with `estimate_covariance.py`.
May import `identification/experiment`.
"""
