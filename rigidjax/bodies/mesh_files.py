"""Triangles of STL and OBJ files, as CAD programs write them."""

import itertools
import re

import numpy as np

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?"
_VERTEX = re.compile(rf"\bvertex\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})(?=\s|$)", re.IGNORECASE)
_FACET = re.compile(r"^\s*facet\b", re.IGNORECASE | re.MULTILINE)
_KEYWORD = re.compile(r"^\s*vertex\b.*$", re.IGNORECASE | re.MULTILINE)
# Larger indices belong to no file; NumPy has no room for some of them.
_MOST = 2**31


def read_stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return corners (3 F, 3) and faces (F, 3) of an STL file, text or binary.

    A text may have several solids, capitals, and any white space. A binary file may begin with
    "solid", and may have bytes behind its last facet.

    **Errors:** `ValueError` that says what is missing.
    """
    count = int.from_bytes(data[80:_HEADER], "little")
    if 0 < count <= (len(data) - _HEADER) // _RECORD.itemsize:
        corners = np.frombuffer(data, _RECORD, count, _HEADER)["corners"].reshape(-1, 3)
    elif b"\0" in data and count:
        raise ValueError(
            f"a binary STL of {count} facets has {_HEADER + count * _RECORD.itemsize} bytes; "
            f"there are {len(data)}."
        )
    else:
        corners = _text_corners(data.decode("latin-1"))
    return corners, np.arange(len(corners)).reshape(-1, 3)


def _text_corners(text: str) -> np.ndarray:
    found = _VERTEX.findall(text)
    lines = _KEYWORD.findall(text)
    if len(lines) > len(found):
        wrong = next(line for line in lines if not _VERTEX.search(line))
        raise ValueError(f"a vertex has three numbers; got {wrong.strip()!r}.")
    facets = len(_FACET.findall(text))
    if len(found) % 3 or (facets and len(found) != 3 * facets):
        raise ValueError(
            f"the vertices are not three for each facet: {len(found)} for {facets} facets."
        )
    numbers = [[x.replace("D", "e").replace("d", "e") for x in row] for row in found]
    return np.array(numbers, float).reshape(-1, 3)


def read_obj(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (V, 3) and faces (F, 3) of an OBJ file; polygons are cut into triangles.

    Lines may go on after a backslash; corners are `v`, `v/vt`, `v//vn` or `v/vt/vn`, counted from
    1, or backwards from the last vertex.

    **Errors:** `ValueError` with the line that is wrong.
    """
    points, triangles = [], []
    text = re.sub(r"\\[ \t]*(\r\n|\r|\n)", " ", data.decode("utf-8-sig"))
    for line in text.splitlines():
        words = line.split("#")[0].split()
        keyword = words[0].lower() if words else ""
        if keyword == "v":
            points.append([float(word) for word in words[1:4]])
            if len(points[-1]) != 3:
                raise ValueError(f"a vertex has three coordinates; got {line.strip()!r}.")
        elif keyword == "f":
            corners = [_index(word, len(points)) for word in words[1:]]
            if len(corners) < 3:
                raise ValueError(f"a face has at least three corners; got {line.strip()!r}.")
            triangles += [(corners[0], b, c) for b, c in itertools.pairwise(corners[1:])]
    return np.array(points, float).reshape(-1, 3), np.array(triangles, int).reshape(-1, 3)


def _index(word: str, count: int) -> int:
    """Return the index, from 0, of a corner among `count` vertices so far."""
    k = int(word.split("/")[0])
    if k == 0 or k < -count or k > _MOST:
        raise ValueError(f"{word!r} is no vertex: they are counted from 1, or back from -1.")
    return k - 1 if k > 0 else count + k
