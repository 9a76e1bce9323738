"""Lowering of jaxprs to LLVM instructions."""
