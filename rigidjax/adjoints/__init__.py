"""Derivatives of runs: tangents, and cotangents by discrete adjoints of the recorded steps.

Start with `any_mode.py`, the adjoint of every run. `steps.py` replays the steps of any solver,
`explicit.py` those of explicit methods, with less memory.
May import `solvers` and lower layers.
"""
