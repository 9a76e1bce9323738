"""Lowering of jaxprs to LLVM instructions.

Start with `emitter.py`; the rules of primitives are in `rules`.
May import `native/passes`, `native/libm` and lower layers.
"""
