"""JAX rules of the kernel primitive: batching, differentiation, lane compaction and meshes."""
