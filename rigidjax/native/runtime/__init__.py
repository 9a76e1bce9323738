"""Machine code, the kernel cache, and calls from XLA."""

from . import disk as disk
