"""Structure-preserving steps of systems with joints."""
