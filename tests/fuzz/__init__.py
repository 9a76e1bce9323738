"""Differential fuzzing: random jaxprs as kernels and by XLA, random systems in all formulations."""
