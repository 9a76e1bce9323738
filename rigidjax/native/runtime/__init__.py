"""Machine code, the kernel cache on disk, and calls from XLA."""

from . import disk as disk
