"""Cases of identification and simulation, described in TOML files."""

from .case import (
    Case as Case,
    RunCase as RunCase,
    read_case as read_case,
    read_export_case as read_export_case,
    read_run_case as read_run_case,
)
