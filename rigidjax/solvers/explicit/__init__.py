"""Explicit Runge-Kutta methods with unrolled stages or a loop over stages."""
