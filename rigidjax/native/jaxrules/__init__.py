"""Rules that make kernels a JAX primitive: batching, differentiation, lane compaction, meshes."""
