"""Causes of residuals that a model does not explain."""
