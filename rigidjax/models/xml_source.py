"""XML files with the line of every element, and replacement of numbers in their bytes."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
from jaxtyping import ArrayLike

_LARGEST = 64 * 2**20  # bytes
DEEPEST = 200  # nested elements
MOST = 100_000  # elements


@dataclasses.dataclass
class Element:
    """An element of an XML file.

    `tag`; `attributes`; `children`; `text`; `line` and `start`, the first byte, of its start tag;
    `path` of the file.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    start: int
    path: str
    text: str = ""
    children: list["Element"] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}>" if name is None else f"<{self.tag} name={name!r}>"

    def all(self, tag: str) -> list["Element"]:
        """Return the children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> "Element | None":
        """Return the only child with a tag, or `None`; `ValueError` for several."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"is defined twice in {self}.")
        return found[0] if found else None

    def walk(self) -> Iterator["Element"]:
        """Yield the element and all its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()

    def error(self, text: str) -> ValueError:
        """Return an error that names file, line and element."""
        return ValueError(f"{self.path}:{self.line}: {self}: {text}")

    def text_of(self, attribute: str) -> str:
        """Return an attribute that must be there."""
        value = self.attributes.get(attribute)
        if value is None or not value.strip():
            raise self.error(f"the attribute `{attribute}` is missing.")
        return value.strip()

    def number(self, attribute: str, default: float | None = None) -> float:
        """Return an attribute as a number; without `default` it must be there."""
        if attribute not in self.attributes and default is not None:
            return default
        return float(self.vector(attribute, 1)[0])

    def vector(
        self, attribute: str, count: int, default: tuple[float, ...] | None = None
    ) -> np.ndarray:
        """Return an attribute as numbers, shape (count,)."""
        if attribute not in self.attributes and default is not None:
            return np.array(default, float)
        return self._numbers(self.text_of(attribute), count, f"`{attribute}`")

    def numbers(self, count: int) -> np.ndarray:
        """Return the text of the element as numbers, shape (count,)."""
        return self._numbers(self.text, count, "its text")

    def _numbers(self, text: str, count: int, name: str) -> np.ndarray:
        try:
            # Python reads 1_0 and digits of other scripts, which are no numbers in a model file.
            plain = text if text.isascii() and "_" not in text else "no number"
            values = np.array([float(word) for word in plain.split()])
        except ValueError:
            values = np.zeros(0)
        if values.shape != (count,) or not np.isfinite(values).all():
            what = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"{name} must be {what}; got {text.strip()[:60]!r}.")
        return values


def parse(path: str | os.PathLike[str]) -> tuple[Element, bytes]:
    """Read an XML file; return its root element and its bytes.

    Nothing else is opened: declarations of document types and entities are refused.

    **Errors:** `OSError` for a file that cannot be read; `ValueError` for a file that is too large
    or no well-formed XML, with the line.
    """
    path = pathlib.Path(path)
    # Devices and pipes may have no end.
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file.")
    size = path.stat().st_size
    if size > _LARGEST:
        raise ValueError(f"{path} has {size} bytes; a model file has at most {_LARGEST}.")
    content = path.read_bytes()
    return parse_bytes(content, str(path)), content


def parse_bytes(content: bytes, path: str) -> Element:
    """Return the root element of an XML document; see `parse`."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    roots: list[Element] = []
    stack: list[Element] = []
    count = 0

    def open_element(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, parser.CurrentLineNumber, parser.CurrentByteIndex, path)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)
        nonlocal count
        count += 1
        if len(stack) > DEEPEST:
            raise element.error(f"is nested more than {DEEPEST} deep.")
        if count > MOST:
            raise element.error(f"a model file has at most {MOST} elements.")

    def close_element(tag: str) -> None:
        stack.pop()

    def add_text(text: str) -> None:
        stack[-1].text += text

    def refuse_doctype(name: str, *rest: object) -> None:
        raise ValueError(
            f"{path}:{parser.CurrentLineNumber}: document types and entities are not read; remove "
            f"<!DOCTYPE {name} ...>."
        )

    parser.StartElementHandler = open_element
    parser.EndElementHandler = close_element
    parser.CharacterDataHandler = add_text
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"{path}:{error.lineno}: no well-formed XML: {error}.") from None
    except LookupError as error:
        raise ValueError(f"{path}: the file cannot be decoded: {error}.") from None
    return roots[0]


_TAG = re.compile(rb"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE = re.compile(rb"""\s([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


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
        new_words = [repr(float(value)) for value in values]
        if attribute is not None and attribute not in element.attributes:
            at = element.start + 1 + len(element.tag.encode())
            self._edits.append((at, at, f' {attribute}="{" ".join(new_words)}"'.encode()))
            return
        start, end = self._span(element, attribute)
        words = list(re.finditer(rb"\S+", self._content[start:end]))
        if len(words) < len(values):
            raise element.error(f"has {len(words)} numbers; {len(values)} are to be replaced.")
        for word, value, new in zip(words, values, new_words, strict=False):
            if b"&" in word[0]:
                raise element.error(f"{word[0].decode()!r} is no number; write its digits instead.")
            if not abs(float(word[0]) - value) <= tolerance:
                self._edits.append((start + word.start(), start + word.end(), new.encode()))

    def _span(self, element: Element, attribute: str | None) -> tuple[int, int]:
        """Return first and last byte of the value of an attribute, or of the text."""
        tag = _TAG.match(self._content, element.start)
        assert tag is not None
        if attribute is not None:
            # All attributes in turn, as the value of one may look like another.
            attributes = _ATTRIBUTE.finditer(self._content, element.start, tag.end())
            found = next(match for match in attributes if match[1] == attribute.encode())
            return found.start(2) + 1, found.end(2) - 1
        end = self._content.find(b"<", tag.end())
        if element.children or tag[0].endswith(b"/>"):
            raise element.error("has no text.")
        if self._content[end : end + 2] != b"</":
            raise element.error("has a comment in its text, which cannot be replaced.")
        return tag.end(), end

    def apply(self) -> bytes:
        """Return the file with all replacements."""
        content = self._content
        for start, end, new in sorted(self._edits, reverse=True):
            content = content[:start] + new + content[end:]
        return content


def add_element(
    parent: ElementTree.Element, tag: str, **attributes: str | ArrayLike
) -> ElementTree.Element:
    """Add an element with attributes, texts or numbers, to a tree that is written."""
    texts = {
        name: value if isinstance(value, str) else format_numbers(value)
        for name, value in attributes.items()
    }
    return ElementTree.SubElement(parent, tag, texts)


def format_numbers(values: ArrayLike) -> str:
    """Return numbers as text, in full precision."""
    # Without the sign of a negative zero.
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(np.asarray(values)))


def write_tree(root: ElementTree.Element, path: pathlib.Path) -> None:
    """Write a tree to a file, with an element in each line."""
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, "utf-8", xml_declaration=True)
