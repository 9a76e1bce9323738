"""Cases of identification, described in TOML files."""

from .case import Case as Case, read_case as read_case
