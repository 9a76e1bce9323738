"""Machine code, the kernel cache on disk, and calls from XLA.

Start with `kernel.py`.
May import `native/lowering` and lower layers.
"""

from . import disk as disk
