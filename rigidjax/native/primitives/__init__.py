"""Primitives of kernels: which have a rule, which expand into others, variants for XLA.

Start with `registry.py`.
Imports no other folder.
"""
