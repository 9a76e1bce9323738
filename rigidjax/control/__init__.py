"""Control: what controllers see of a system, and hybrid runs."""
