"""JAX rules of the kernel primitive: batching, differentiation, lane compaction and meshes.

Start with `primitive.py`.
May import `native/runtime` and lower layers.
"""
