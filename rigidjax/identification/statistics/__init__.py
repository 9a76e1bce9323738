"""Covariances, identifiability, and tests of residuals."""
