"""Derivatives of runs: tangents, and cotangents by the recorded steps (discrete adjoints)."""
