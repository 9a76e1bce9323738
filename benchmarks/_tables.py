"""Parts of the tables in `docs/benchmarks`."""

from collections.abc import Sequence
from typing import Any


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with the first column left-aligned and the others right-aligned."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def span(values: Sequence[float], form: str) -> str:
    """Return the least and the largest of some values, a single value, or an empty string."""
    texts = [form.format(value) for value in (min(values), max(values))] if values else [""]
    return " to ".join(dict.fromkeys(texts))


def provenance(rows: list[dict[str, Any]]) -> str:
    """Return a sentence on where and when rows were measured."""
    row = rows[0]
    loads = sorted(r["load"] for r in rows)
    load = f"load {loads[0]:g}" if loads[0] == loads[-1] else f"load {loads[0]:g} to {loads[-1]:g}"
    commits = " and ".join(dict.fromkeys(r["commit"] for r in rows))
    return (
        f"Measured {row['date']} at {commits}: {row['processor']}, {row['cores']} cores, "
        f"{load}, device {row['device']}; Python {row['python']}, jax {row['jax']}, "
        f"diffrax {row['diffrax']}, equinox {row['equinox']}."
    )
