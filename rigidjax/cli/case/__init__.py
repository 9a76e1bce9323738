"""A case of identification, described in a file in TOML."""

from .case import Case as Case, read_case as read_case
