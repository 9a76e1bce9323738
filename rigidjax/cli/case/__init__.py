"""Cases of identification and simulation, described in TOML files.

Start with `case.py`.
May import `cli/base` and the package below `cli`.
"""

from ...extras import import_optional

import_optional("pydantic", "Case files")

from .case import (  # noqa: E402
    Case as Case,
    RunCase as RunCase,
    read_case as read_case,
    read_export_case as read_export_case,
    read_run_case as read_run_case,
)
