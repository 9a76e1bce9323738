"""Tables of text: Markdown, and aligned columns for a terminal."""

from collections.abc import Sequence


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; the first row is the heading."""
    heading, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [heading, "|---" * len(rows[0]) + "|", *rest]


def aligned_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of columns that are aligned on the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
