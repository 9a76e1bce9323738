"""Covariances, what data determine, tests of residuals."""
