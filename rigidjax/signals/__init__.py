"""Functions of time in a model."""
