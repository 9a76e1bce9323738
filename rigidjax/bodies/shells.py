"""Detection of the closed shells of a mesh that overlap."""

import itertools

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

# Distance relative to the extent of the mesh below which corners of triangles are one vertex.
SAME = 1e-6
# Distance relative to the largest coordinate below which corners are one vertex: files have single
# precision.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
# Distance relative to an edge by which it must pass through a triangle to cross it.
_THROUGH = 1e-6
# Maximum number of pairs of an edge and a triangle that are tested for two shells.
_MOST_PAIRS = 20_000_000
_CHUNK = 2_000_000


def weld(vertices: np.ndarray) -> np.ndarray:
    """Return a label for each vertex, (V,), equal for vertices that differ only by rounding."""
    distinct, index = np.unique(vertices, axis=0, return_inverse=True)
    tolerance = SAME * np.ptp(vertices, axis=0).max() + _ROUNDING * np.abs(vertices).max()
    pairs = KDTree(distinct).query_pairs(tolerance, output_type="ndarray")
    return _components(len(distinct), pairs)[index.reshape(-1)]


def overlaps(vertices: np.ndarray, faces: np.ndarray, vertex_labels: np.ndarray) -> list[str]:
    """Return a sentence for each pair of shells that overlap.

    A shell inside another one that faces inwards is a cavity, not an overlap.

    **Arguments:** `vertices` (V, 3); `faces` (F, 3), of a closed surface; `vertex_labels` (V,), see
    `weld`.
    """
    corners = vertex_labels[faces]
    links = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]]])
    shell = _components(vertex_labels.max() + 1, links)[corners[:, 0]]
    labels = np.unique(shell)
    if len(labels) == 1:
        return []
    parts = [vertices[faces[shell == n]] for n in labels]
    volumes = np.array([_volume(part) for part in parts])
    outwards = volumes * np.sign(volumes.sum()) > 0
    low = np.array([part.min(axis=(0, 1)) for part in parts])
    high = np.array([part.max(axis=(0, 1)) for part in parts])
    sentences = []
    for i, j in itertools.combinations(range(len(parts)), 2):
        if np.any(low[i] >= high[j]) or np.any(low[j] >= high[i]):
            continue
        first, second = f"shell {i + 1} ({_size(parts[i])})", f"shell {j + 1} ({_size(parts[j])})"
        if _cross(parts[i], parts[j]) or _cross(parts[j], parts[i]):
            sentences.append(f"{first} and {second} intersect")
        elif _inside(parts[i], parts[j]) and outwards[i] == outwards[j]:
            sentences.append(f"{first} lies within {second}, both facing the same way")
        elif _inside(parts[j], parts[i]) and outwards[i] == outwards[j]:
            sentences.append(f"{second} lies within {first}, both facing the same way")
    return sentences


def _components(count: int, pairs: np.ndarray) -> np.ndarray:
    ones = np.ones(len(pairs), bool)
    graph = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def _size(part: np.ndarray) -> str:
    return f"{len(part)} triangles"


def _volume(part: np.ndarray) -> float:
    a, b, c = np.moveaxis(part - part.mean(axis=(0, 1)), 1, 0)
    return float(np.sum(a * np.cross(b, c)) / 6)


def _inside(part: np.ndarray, other: np.ndarray) -> bool:
    """Return whether a shell that does not cross another one lies inside it.

    The solid angle of the other shell, seen from a point inside it, is 4 pi.
    """
    # Seen from the centre of the largest triangle, because a vertex may touch the other shell.
    areas = np.linalg.norm(np.cross(part[:, 1] - part[:, 0], part[:, 2] - part[:, 0]), axis=1)
    a, b, c = np.moveaxis(other - part[areas.argmax()].mean(axis=0), 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    above = np.sum(a * np.cross(b, c), axis=1)
    dots = [np.sum(x * y, axis=1) for x, y in ((a, b), (b, c), (c, a))]
    below = la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb
    return bool(abs(np.sum(np.arctan2(above, below))) > np.pi)


def _cross(part: np.ndarray, other: np.ndarray) -> bool:
    """Return whether an edge of one shell crosses a triangle of the other one.

    If there are very many edges, only a part of them is tested.

    **Source:** Moeller and Trumbore (1997).
    """
    edges = np.concatenate([part[:, [0, 1]], part[:, [1, 2]], part[:, [2, 0]]])
    edges = _near(edges, other)
    triangles = _near(other, part)
    if not (len(edges) and len(triangles)):
        return False
    edges = edges[:: 1 + len(edges) * len(triangles) // _MOST_PAIRS]
    start, vector = edges[:, 0], edges[:, 1] - edges[:, 0]
    corner = triangles[:, 0]
    u, v = triangles[:, 1] - corner, triangles[:, 2] - corner
    normal = np.cross(u, v)
    rows = max(1, _CHUNK // len(triangles))
    for k in range(0, len(edges), rows):
        s, w = start[k : k + rows, None] - corner, vector[k : k + rows, None]
        along = np.sum(w * normal, axis=2)
        size = np.linalg.norm(w, axis=2) * np.linalg.norm(normal, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Parameter along the edge, and barycentric coordinates, where it meets the plane.
            t = -np.sum(s * normal, axis=2) / along
            q = np.cross(s, w)
            x, y = np.sum(q * v, axis=2) / -along, np.sum(q * u, axis=2) / along
        least = np.minimum(np.minimum(t, 1 - t), np.minimum(np.minimum(x, y), 1 - x - y))
        if np.any((np.abs(along) > _THROUGH * size) & (least > _THROUGH)):
            return True
    return False


def _near(pieces: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the edges or triangles (P, k, 3) that reach into the bounding box of a shell."""
    low, high = other.min(axis=(0, 1)), other.max(axis=(0, 1))
    reach = (pieces.max(axis=1) >= low).all(axis=1) & (pieces.min(axis=1) <= high).all(axis=1)
    return pieces[reach]
