"""Fits of parameters by least squares."""
