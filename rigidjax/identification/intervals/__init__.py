"""Intervals of estimates beyond the linearisation: profiles, posterior samples.

Start with `profile.py`.
May import `identification/search` and lower layers.
"""
