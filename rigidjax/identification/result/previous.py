"""Changes of estimates since an earlier fit, from its report."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...io.document import Block, Paragraph, Table, estimate_text, to_markdown, to_plain

# Change in standard errors above which a parameter is named.
_MOVED = 2.0
_COLUMNS = ("parameter", "previous", "now", "change", "standard errors", "unit")


@dataclasses.dataclass(frozen=True)
class EstimateChange:
    """Change of one estimate, in its unit.

    **Attributes:** `label`, `unit`, of the estimate; `previous`, `now`, its values; `previous_std`,
    `std`, their standard deviations.
    """

    label: str
    unit: str
    previous: float
    now: float
    previous_std: float
    std: float

    @property
    def standard_errors(self) -> float:
        """Change in units of the standard error of the difference of independent estimates.

        NaN where one of them is undetermined.
        """
        error = np.hypot(self.previous_std, self.std)
        return float((self.now - self.previous) / error) if 0 < error < np.inf else float("nan")

    def cells(self) -> tuple[str, ...]:
        """Return the change as a row of the table of changes."""
        return (
            self.label,
            estimate_text(self.previous, self.previous_std),
            estimate_text(self.now, self.std),
            f"{self.now - self.previous:+.2g}",
            f"{self.standard_errors:+.2g}",
            self.unit,
        )


@dataclasses.dataclass(frozen=True)
class Changes:
    """Changes of the estimates since an earlier fit.

    **Attributes:** `changes` of the parameters of both fits; `added` and `removed`, labels of
    others; `date` of the earlier report, `""` if unknown; `same_data`, whether both fits are of the
    same samples, `None` if unknown.
    """

    changes: tuple[EstimateChange, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    date: str
    same_data: bool | None

    @property
    def sentence(self) -> str:
        """Sentence on the estimates that changed."""
        moved = [
            f"{change.label} by {change.standard_errors:+.2g}"
            for change in self.changes
            if abs(change.standard_errors) > _MOVED
        ]
        data = {True: "the same data", False: "other data", None: "data that are not known"}
        since = f"Since the fit of {self.date}" if self.date else "Since the previous fit"
        text = f"{since}, of {data[self.same_data]}, "
        if moved:
            text += f"these moved by more than {_MOVED:g} standard errors: {', '.join(moved)}."
        else:
            text += f"no estimate moved by more than {_MOVED:g} standard errors."
        for labels, word in ((self.added, "New"), (self.removed, "No longer fitted")):
            text += f" {word}: {', '.join(labels)}." if labels else ""
        return text

    @property
    def blocks(self) -> list[Block]:
        """The table of the changes and the sentence, as parts of a document."""
        rows = [change.cells() for change in self.changes]
        return [Table(_COLUMNS, rows), Paragraph(self.sentence)]

    def to_markdown(self) -> str:
        """Return the table of the changes and the sentence as Markdown."""
        return to_markdown(self.blocks)

    def to_record(self) -> dict[str, Any]:
        """Return the changes as plain values for JSON."""
        changes = [vars(c) | {"standard_errors": c.standard_errors} for c in self.changes]
        return to_plain(
            {
                "since": self.date,
                "same_data": self.same_data,
                "sentence": self.sentence,
                "parameters": changes,
            }
        )


def changes_since(record: Mapping[str, Any], path: str | os.PathLike[str]) -> Changes:
    """Return the changes of the estimates since an earlier report in JSON.

    **Arguments:** `record` of the fit, see `as_record`; `path` of the earlier report.
    **Errors:** `OSError` for a file that cannot be read; `ValueError` for other content.
    """
    try:
        earlier = json.loads(pathlib.Path(path).read_text("utf-8"))
        previous = {p["label"]: p for p in earlier["parameters"]}
        pairs = [(previous[p["label"]], p) for p in record["parameters"] if p["label"] in previous]
        changes = tuple(
            EstimateChange(
                new["label"],
                new["unit"],
                float(old["estimate"]),
                float(new["estimate"]),
                float(old["std"]),
                float(new["std"]),
            )
            for old, new in pairs
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'`report(previous=...)` takes a file that `Fit.report("fit.json")` wrote; '
            f"{os.fspath(path)!r} is not one ({error})."
        ) from error
    labels = [p["label"] for p in record["parameters"]]
    known = earlier.get("data_sha256")
    return Changes(
        changes=changes,
        added=tuple(label for label in labels if label not in previous),
        removed=tuple(label for label in previous if label not in labels),
        date=earlier.get("date", ""),
        same_data=None if known is None else known == record["data_sha256"],
    )
