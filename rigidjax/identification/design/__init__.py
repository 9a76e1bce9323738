"""Information content of planned runs, and design of informative experiments.

Start with `design.py`.
May import `identification/regression` and lower layers.
"""
