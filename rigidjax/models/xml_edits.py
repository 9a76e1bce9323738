"""Replacement of numbers in the bytes of an XML file."""

import re
from collections.abc import Sequence

import numpy as np

from .xml_source import Element, attribute_span, text_span


class Edits:
    """Numbers to replace in a file, and attributes to add to its elements.

    **Arguments:** `content` of the file.
    """

    def __init__(self, content: bytes):
        self._content = content
        self._edits: list[tuple[int, int, bytes]] = []

    def set_numbers(
        self,
        element: Element,
        attribute: str | None,
        values: Sequence[float] | np.ndarray,
        tolerance: float,
    ) -> None:
        """Replace the first numbers of an attribute, or of the text of an element.

        Numbers that change by `tolerance` or less stay as they are. An attribute that the element
        does not have is added.

        **Errors:** `ValueError` for an element that has fewer numbers.
        """
        if attribute is not None and attribute not in element.attributes:
            text = " ".join(map(_word, values))
            at = element.start + 1 + len(element.tag.encode())
            self._edits.append((at, at, f' {attribute}="{text}"'.encode()))
            return
        if attribute is None:
            start, end = text_span(self._content, element)
        else:
            start, end = attribute_span(self._content, element, attribute)
        words = list(re.finditer(rb"\S+", self._content[start:end]))
        if len(words) < len(values):
            raise element.error(f"has {len(words)} numbers; {len(values)} are to be replaced.")
        for word, value in zip(words, values, strict=False):
            if b"&" in word[0]:
                raise element.error(f"{word[0].decode()!r} is no number; write its digits instead.")
            if not abs(float(word[0]) - value) <= tolerance:
                new = _word(value).encode()
                self._edits.append((start + word.start(), start + word.end(), new))

    def apply(self) -> bytes:
        """Return the file with all replacements."""
        content = self._content
        for start, end, new in sorted(self._edits, reverse=True):
            content = content[:start] + new + content[end:]
        return content


def _word(value: float) -> str:
    return repr(float(value))
