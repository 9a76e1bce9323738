"""Machine code, the kernel cache, and calls from XLA."""
