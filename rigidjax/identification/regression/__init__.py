"""Linear regression of inertial parameters.

Start with `regression.py`.
May import `identification/statistics` and lower layers.
"""
