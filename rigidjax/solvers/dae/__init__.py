"""Implicit and extrapolation methods, for ordinary and differential-algebraic equations."""
