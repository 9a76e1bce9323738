"""Readers of STL and OBJ files as CAD programs write them."""

import itertools
import re

import numpy as np

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?"
_VERTEX = re.compile(rf"\bvertex\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})(?=\s|$)", re.IGNORECASE)
_FACET = re.compile(r"^\s*facet\b", re.IGNORECASE | re.MULTILINE)
_KEYWORD = re.compile(r"^\s*vertex\b.*$", re.IGNORECASE | re.MULTILINE)
# No file has larger indices, and some would overflow NumPy's integers.
_MOST = 2**31


def read_stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return corners (3 F, 3) and faces (F, 3) of an STL file, text or binary.

    A text file may contain several solids, capital letters and any white space. A binary file may
    begin with "solid", and may have further bytes after its last facet.

    **Errors:** `ValueError` for an incomplete file.
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
    vertices = _VERTEX.findall(text)
    lines = _KEYWORD.findall(text)
    if len(lines) > len(vertices):
        wrong = next(line for line in lines if not _VERTEX.search(line))
        raise ValueError(f"a vertex has three numbers; got {wrong.strip()!r}.")
    facets = len(_FACET.findall(text))
    if len(vertices) % 3 or (facets and len(vertices) != 3 * facets):
        raise ValueError(
            f"each facet must have three vertices; got {len(vertices)} for {facets} facets."
        )
    coordinates = [[x.replace("D", "e").replace("d", "e") for x in row] for row in vertices]
    return np.array(coordinates, float).reshape(-1, 3)


def read_obj(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (V, 3) and faces (F, 3) of an OBJ file; polygons are split into triangles.

    A backslash continues a line. Corners are `v`, `v/vt`, `v//vn` or `v/vt/vn`; vertices are
    numbered from 1, or by negative numbers back from the last one.

    **Errors:** `ValueError` that quotes the invalid line.
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
    """Return the zero-based index of a corner; `count` vertices have been read so far."""
    k = int(word.split("/")[0])
    if k == 0 or k < -count or k > _MOST:
        raise ValueError(
            f"{word!r} is no vertex: vertices are numbered from 1, or from -1 backwards."
        )
    return k - 1 if k > 0 else count + k
