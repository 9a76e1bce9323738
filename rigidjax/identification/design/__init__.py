"""Information content of planned runs, and design of informative experiments.

Start with `design.py`.
May import `identification/fit` and what is below it.
"""
