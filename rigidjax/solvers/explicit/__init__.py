"""Explicit Runge-Kutta methods in the form that kernels and XLA are fastest with."""
