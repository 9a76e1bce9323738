"""Radau IIA methods for stiff and differential-algebraic equations."""

from .radau import AbstractRadau as AbstractRadau, Radau5 as Radau5
