"""Kernels for NVIDIA GPUs.

Start with `launch.py`.
May import `native/runtime` and lower layers.
"""
