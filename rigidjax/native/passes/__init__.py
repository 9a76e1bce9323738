"""Analyses and transformations of jaxprs before they are emitted."""
