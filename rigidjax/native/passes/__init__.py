"""Analysis and transformation of jaxprs before they are emitted."""
