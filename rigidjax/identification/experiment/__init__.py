"""Parameters of a model, and runs with their derivatives with respect to them.

Start with `parameters.py`, then `linearised_runs.py`.
May import `identification/transforms` and lower layers.
"""
