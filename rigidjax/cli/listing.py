"""`rigidjax list`."""

import inspect

from rich.table import Table

from .. import problems
from .messages import console


def list_problems() -> None:
    """List the problems, what is known of them, and where their data are from.

    Example: `rigidjax list`
    """
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("problem", "what it is", "end", "reference", "settings", "source"):
        table.add_column(heading, justify="right" if heading == "end" else "left")
    for name, build in problems.all().items():
        problem = build()
        settings = ", ".join(
            f"{key}={parameter.default:g}"
            for key, parameter in inspect.signature(build).parameters.items()
        )
        reference = "closed form" if problem.has_reference else "40 digits, at the end"
        table.add_row(
            f"[bold]{name}[/]",
            problem.title,
            f"{problem.t1:g} s",
            reference,
            settings,
            problem.source,
        )
    console().print(table)
