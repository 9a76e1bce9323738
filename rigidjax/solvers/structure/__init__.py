"""Integrators that keep momentum, energy or the group structure."""

from .base import AbstractStructureSolver as AbstractStructureSolver, ModelTerm as ModelTerm
