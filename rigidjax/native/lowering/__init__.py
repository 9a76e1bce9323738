"""Emission of LLVM instructions for the equations of a jaxpr."""
