"""Linear regression of inertial parameters.

Start with `regression.py`.
May import `identification/data` and what is below it.
"""
