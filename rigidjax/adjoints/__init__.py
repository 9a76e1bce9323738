"""Derivatives of runs: tangents, and cotangents by discrete adjoints of the recorded steps."""
