"""LLVM values: scalars, vectors over lanes, complex pairs, memory, and their instructions.

Start with `lanes.py`.
Imports no other folder.
"""
