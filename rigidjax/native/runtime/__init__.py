"""Machine code, the kernel cache on disk, and calls from XLA.

Start with `kernel.py`.
May import `native/lowering` and what is below it.
"""

from . import disk as disk
