"""Array functions that kernels compute well."""
