"""Report on the elements of a model file: each is read, translated, without meaning, or refused."""

import dataclasses
import warnings
from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from ..checks import did_you_mean
from .xml_source import Element

Kind: TypeAlias = Literal["read", "translated", "no meaning", "skipped", "ignored", "warning"]

# Problems that one error lists.
_SHOWN = 12
# Smallest similarity of a misspelt name to a known one.
_ALIKE = 0.75


@dataclasses.dataclass(frozen=True)
class Entry:
    """One line of a report.

    `kind`; `line` of the file, 0 if it has none; `subject`, the element, such as `joint 'elbow'`;
    `text`, its treatment and the reason.
    """

    kind: Kind
    line: int
    subject: str
    text: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.subject}: {self.text}"


class Report:
    """Account of all elements of a model file; `str` gives one line for each.

    Entries have the kinds `"read"`; `"translated"`, with the way in which a feature of the file is
    expressed here; `"no meaning"`, for elements that have no effect on the motion of rigid bodies;
    `"skipped"`, for others without effect that cannot be read, such as attributes that an
    exporter added; `"ignored"`, for unsupported features that the caller chose to leave out; and
    `"warning"`.

    **Arguments:** `path` of the file, for messages; `ignore`, names of unsupported features that
    are left out; `strict`, whether elements that would be skipped are errors.
    """

    def __init__(self, path: str, ignore: Collection[str] = (), strict: bool = False):
        self.path, self.strict = path, strict
        self.entries: list[Entry] = []
        self._ignore = {item: False for item in ignore}
        self._problems: list[str] = []
        self._skipped: dict[str, int] = {}

    def add(self, kind: Kind, subject: str, text: str, line: int = 0) -> None:
        """Add an entry."""
        self.entries.append(Entry(kind, line, subject, text))

    def refuse(self, feature: str, subject: str, text: str, line: int = 0) -> None:
        """Record a feature that is not supported; `check` raises unless it is to be ignored.

        **Arguments:** `feature`, its name in `ignore`; `subject`, the element; `text`, the reason.
        """
        if feature in self._ignore:
            self._ignore[feature] = True
            self.add("ignored", subject, text, line)
            return
        place = f"{self.path}:{line}" if line else self.path
        self._problems.append(f'{place}: {subject}: {text} [ignore=("{feature}",)]')

    def skip(self, feature: str, subject: str, text: str, line: int = 0) -> None:
        """Record an unreadable element without effect on the motion; arguments of `refuse`."""
        if self.strict or feature in self._ignore:
            self.refuse(feature, subject, text, line)
            return
        self._skipped[feature] = self._skipped.get(feature, 0) + 1
        self.add("skipped", subject, text, line)

    def check(self) -> None:
        """Raise `ValueError` for all refused features, and for names in `ignore` without use; warn
        of elements that were skipped."""
        if self._problems:
            shown, rest = self._problems[:_SHOWN], len(self._problems) - _SHOWN
            more = [f"... and {rest} more"] if rest > 0 else []
            lines = "\n  ".join([*shown, *more])
            raise ValueError(
                f"The model file has {len(self._problems)} unsupported features. Correct the file, "
                "or leave a feature out by the `ignore` behind it:\n  " + lines
            )
        unused = [item for item, used in self._ignore.items() if not used]
        if unused:
            raise ValueError(
                f"`load(ignore={unused!r})`: the file has no such unsupported feature; remove it."
            )
        if self._skipped:
            counts = ", ".join(f"{name} ({count})" for name, count in self._skipped.items())
            warnings.warn(
                f"{self.path}: {sum(self._skipped.values())} elements and attributes without "
                f"effect on the motion were skipped: {counts}. `Model.report` lists them; "
                "`strict=True` refuses them.",
                stacklevel=4,
            )

    def of_kind(self, kind: Kind) -> list[Entry]:
        """Return the entries of one kind."""
        return [entry for entry in self.entries if entry.kind == kind]

    def __str__(self) -> str:
        kinds: tuple[Kind, ...] = (
            "read", "translated", "warning", "ignored", "skipped", "no meaning"
        )  # fmt: skip
        lines = [self.path]
        for kind in kinds:
            entries = self.of_kind(kind)
            if entries:
                lines.append(f"{kind}:")
                lines += [f"  {entry}" for entry in entries]
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = {entry.kind: len(self.of_kind(entry.kind)) for entry in self.entries}
        parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        return f"Report on {self.path}: {parts}"


def check_elements(
    root: Element,
    schema: Mapping[str, tuple[Collection[str], Collection[str]]],
    without_meaning: Mapping[str, str],
    report: Report,
    other_attributes: Collection[tuple[str, str]] = (),
    unsupported: Mapping[tuple[str, str], str] | None = None,
    skips_unknown: bool = False,
) -> None:
    """Refuse unknown and unsupported elements and attributes; report those without meaning.

    **Arguments:** `root`; `schema`, attributes and children of the elements that are read, by tag;
    `without_meaning`, elements without effect on the motion, by tag, with what they are; `report`;
    `other_attributes`, pairs of tag and attribute without effect; `unsupported`, reasons by tag and
    the tag of the child; `skips_unknown`, whether unknown ones are skipped; those that
    look like a misspelling are still refused.
    """
    counts: dict[str, list[Element]] = {}
    reasons = unsupported or {}

    def refuse(feature: str, subject: str, text: str, line: int, hint: str) -> None:
        record = report.skip if skips_unknown and not hint else report.refuse
        record(feature, subject, text + hint, line)

    def check(element: Element) -> None:
        attributes, children = schema[element.tag]
        for name in element.attributes:
            if (element.tag, name) in other_attributes:
                report.add("no meaning", str(element), f"attribute `{name}`", element.line)
            elif name not in attributes and not name.startswith("xmlns"):
                refuse(
                    f"{element.tag}/{name}", str(element), f"the attribute `{name}` is unknown.",
                    element.line, did_you_mean(name, sorted(attributes), cutoff=_ALIKE),
                )  # fmt: skip
        for child in element.children:
            if (element.tag, child.tag) in reasons:
                report.refuse(
                    child.tag, str(child), reasons[element.tag, child.tag], child.line
                )  # fmt: skip
            elif child.tag in children and child.tag in schema:
                check(child)
            elif child.tag in without_meaning:
                counts.setdefault(child.tag, []).append(child)
            elif child.tag not in children:
                refuse(
                    child.tag, str(element), f"the element <{child.tag}> is unknown.", child.line,
                    did_you_mean(child.tag, sorted(children), cutoff=_ALIKE),
                )  # fmt: skip

    check(root)
    for tag, found in counts.items():
        report.add("no meaning", f"<{tag}>", f"{len(found)} {without_meaning[tag]}", found[0].line)
