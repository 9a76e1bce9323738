"""Passes over jaxprs before they are lowered.

Start with `loop_fusion.py`, which calls the others.
May import `native/primitives`.
"""
