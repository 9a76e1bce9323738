"""Check of the elements and attributes of a model file against those that are known."""

from collections.abc import Collection, Mapping

from ..checks import did_you_mean
from .report import Report
from .xml_source import Element


def check_elements(
    root: Element,
    schema: Mapping[str, tuple[Collection[str], Collection[str]]],
    without_meaning: Mapping[str, str],
    report: Report,
    other_attributes: Collection[tuple[str, str]] = (),
    unsupported: Mapping[tuple[str, str], str] | None = None,
) -> None:
    """Refuse unknown and unsupported elements and attributes; report those without meaning.

    **Arguments:** `root`; `schema`, attributes and children of the elements that are read, by tag;
    `without_meaning`, elements without effect on the motion, by tag, with what they are; `report`;
    `other_attributes`, pairs of tag and attribute without effect; `unsupported`, reasons by tag and
    the tag of the child.
    """
    counts: dict[str, list[Element]] = {}
    reasons = unsupported or {}

    def check(element: Element) -> None:
        attributes, children = schema[element.tag]
        for name in element.attributes:
            if (element.tag, name) in other_attributes:
                report.add("no meaning", str(element), f"attribute `{name}`", element.line)
            elif name not in attributes and not name.startswith("xmlns"):
                hint = did_you_mean(name, sorted(attributes))
                report.refuse(
                    f"{element.tag}/{name}", str(element),
                    f"the attribute `{name}` is unknown.{hint}", element.line,
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
                hint = did_you_mean(child.tag, sorted(children))
                report.refuse(
                    child.tag, str(element), f"the element <{child.tag}> is unknown.{hint}",
                    child.line,
                )  # fmt: skip

    check(root)
    for tag, found in counts.items():
        report.add("no meaning", f"<{tag}>", f"{len(found)} {without_meaning[tag]}", found[0].line)
