"""Linearisation and modes of a model."""
