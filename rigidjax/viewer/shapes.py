"""Shapes of bodies in the viewer, given or derived from mass and inertia."""

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..bodies import Mesh
from ..checks import ArrayInput

# Relative difference of two moments of inertia up to which they count as equal.
_EQUAL = 1e-3


class Shape(NamedTuple):
    """A solid and its pose on a body.

    `kind`; `size`, m: edges of a box, radius and length of a cylinder, cone or bar with round ends,
    radius of a sphere, semi-axes of an ellipsoid; `position` of its centre and `axes` (3, 3),
    columns, in body components; `surface`, the `Mesh` of the kind `"mesh"`, in body components.
    """

    kind: str
    size: tuple[float, ...]
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    axes: np.ndarray = np.eye(3)
    surface: Mesh | None = None

    @property
    def half_extents(self) -> np.ndarray:
        """Half the edges of the bounding box, (3,) m, along the axes of the shape."""
        match self.kind:
            case "box":
                return 0.5 * np.array(self.size)
            case "cylinder" | "cone" | "bar":
                radius, length = self.size
                return np.array([radius, radius, 0.5 * length])
            case "mesh":
                assert self.surface is not None
                return np.abs(self.surface.vertices).max(axis=0)
            case _:
                return np.broadcast_to(np.array(self.size), (3,)).copy()


AnyShape = Shape | Mesh | str | os.PathLike[str]


def as_shapes(shapes: AnyShape | Sequence[AnyShape]) -> list[Shape]:
    """Convert one shape or several to a list; see `as_shape`."""
    if isinstance(shapes, Shape | Mesh | str | os.PathLike):
        return [as_shape(shapes)]
    return [as_shape(shape) for shape in shapes]


def box(size: ArrayInput, position: ArrayInput = (0.0, 0.0, 0.0)) -> Shape:
    """Return a box with edges `size`, (3,) m, along the body axes, its centre at `position`."""
    return _shape("box", size, 3, position)


def cylinder(
    radius: float,
    length: float,
    position: ArrayInput = (0.0, 0.0, 0.0),
    axis: ArrayInput = (0, 0, 1),
) -> Shape:
    """Return a cylinder along `axis`, (3,), body components, its centre at `position`, m."""
    return _shape("cylinder", (radius, length), 2, position, _frame(axis))


def cone(
    radius: float,
    height: float,
    position: ArrayInput = (0.0, 0.0, 0.0),
    axis: ArrayInput = (0, 0, 1),
) -> Shape:
    """Return a cone along `axis`, (3,), from apex to base; `position` is at half its height."""
    return _shape("cone", (radius, height), 2, position, _frame(axis))


def sphere(radius: float, position: ArrayInput = (0.0, 0.0, 0.0)) -> Shape:
    """Return a sphere, its centre at `position`; lengths in m."""
    return _shape("sphere", (radius,), 1, position)


def ellipsoid(semi_axes: ArrayInput, position: ArrayInput = (0.0, 0.0, 0.0)) -> Shape:
    """Return an ellipsoid with `semi_axes`, (3,) m, along the body axes, centred at `position`."""
    return _shape("ellipsoid", semi_axes, 3, position)


def as_shape(shape: AnyShape) -> Shape:
    """Convert a `Mesh`, or an STL or OBJ file in m, to a shape in body components."""
    if isinstance(shape, Shape):
        return shape
    return Shape("mesh", (), surface=shape if isinstance(shape, Mesh) else Mesh.read(shape))


def shapes_of(body: dict[str, Any], unit: float, points: Sequence[np.ndarray] = ()) -> list[Shape]:
    """Return the shapes of a body from `describe_mechanism`: its own, or links between its joints.

    A body with its own shape has bars to joints outside. Without a shape it consists of bars
    between its joints, unless its inertia is that of a rod through them. A body without joints, or
    with joints at its centre of mass alone, is drawn as the solid of uniform density with its
    inertia: three equal moments give a sphere, two a cylinder, others a box; a cylinder that a
    joint holds at its centre becomes a disc. A body with a fixed point has no mass; its size is
    `unit`.

    **Arguments:** `body`; `unit`, a length of the mechanism, m, for bodies without extension;
    `points` of the joints, (3,) m, body components.
    """
    solid = _solid(body, unit)
    far = [point for point in points if np.linalg.norm(point) > 0.1 * unit]
    outside = [point for point in far if not _contains(solid, point)]
    if body["shape"] is not None or not body["mass"]:
        return [solid, *(_bar(np.zeros(3), point, 0.03 * unit) for point in outside)]
    if not far:
        return [_as_disc(solid) if len(points) else solid]
    sizes = 2 * np.sort(solid.half_extents)
    is_rod = sizes[1] < 0.25 * sizes[2] and not outside
    return [solid] if is_rod else _bars(points, unit)


def inertia_ellipsoid(body: dict[str, Any]) -> Shape | None:
    """Return the ellipsoid of uniform density with the mass and inertia of a body.

    It is `None` for a body without mass or extension.
    """
    moments, axes = principal(np.array(body["inertia"]))
    if not body["mass"]:
        return None
    squares = np.maximum(np.sum(moments) - 2 * moments, 0.0) / (2 * body["mass"])
    semi_axes = np.sqrt(5 * squares)
    if not np.any(semi_axes > 0):
        return None
    return Shape("ellipsoid", _tuple(np.maximum(semi_axes, 0.02 * semi_axes.max())), axes=axes)


def _as_disc(solid: Shape) -> Shape:
    if solid.kind != "cylinder":
        return solid
    radius, length = solid.size
    return solid._replace(size=(radius, min(length, 0.3 * radius)))


def _contains(solid: Shape, point: np.ndarray) -> bool:
    local = solid.axes.T @ (point - np.array(solid.position))
    return bool(np.all(np.abs(local) <= 1.05 * solid.half_extents))


def _bars(points: Sequence[np.ndarray], unit: float) -> list[Shape]:
    """Return bars between two joints, or from the middle of several joints to each of them."""
    bars = []
    middle = np.mean(points, axis=0)
    if len(points) == 1:
        bars = [_bar(np.zeros(3), points[0], 0.045 * unit)]
    elif len(points) == 2:
        bars = [_bar(points[0], points[1], 0.045 * unit)]
    else:
        bars = [_bar(middle, point, 0.045 * unit) for point in points]
    hub = middle if len(points) > 2 else points[0]
    line = points[-1] - hub
    aside = -hub - line * (-hub @ line) / max(line @ line, 1e-300)
    if len(points) > 1 and np.linalg.norm(aside) > 0.1 * unit:
        bars.append(
            _bar(hub + line * (-hub @ line) / max(line @ line, 1e-300), np.zeros(3), 0.03 * unit)
        )
    return [bar for bar in bars if bar.size[1] > 0] + [Shape("sphere", (0.07 * unit,))]


def _bar(start: np.ndarray, end: np.ndarray, radius: float) -> Shape:
    length = float(np.linalg.norm(end - start))
    axes = _frame(end - start) if length > 0 else np.eye(3)
    return Shape("bar", (radius, length), _tuple(0.5 * (start + end)), axes)


def _solid(body: dict[str, Any], unit: float) -> Shape:
    mass, axis = body["mass"], body["axis"]
    if isinstance(body["shape"], dict):
        return as_shape(Mesh(**body["shape"]))
    moments, axes = principal(np.array(body["inertia"]))
    if not mass and moments.any():
        return _about_fixed_point(moments, axes, axis, unit)
    # Thick enough to be seen.
    least = 0.02 * unit if body["shape"] else 0.04 * unit
    # Squares of the radii of inertia.
    squares = np.maximum(np.sum(moments) - 2 * moments, 0.0) / (2 * (mass or 1.0))
    if not np.any(squares > 0):
        return Shape("sphere", (0.06 * unit,))
    kind = body["shape"] or _kind(moments)
    if kind == "sphere":
        return Shape("sphere", (max(math.sqrt(5 * squares.mean()), least),))
    if kind == "ellipsoid":
        return Shape(kind, _tuple(np.maximum(np.sqrt(5 * squares), least)), axes=axes)
    if kind == "box":
        return Shape(kind, _tuple(np.maximum(np.sqrt(12 * squares), 2 * least)), axes=axes)
    k, axes = _symmetric_last(moments, axes)
    across, along = np.delete(squares, k).mean(), squares[k]
    if kind == "cone":
        radius, height = math.sqrt(across * 20 / 3), math.sqrt(along * 80 / 3)
        # From the centre of mass, at 3/4 of the height from the apex, to half the height.
        position = _tuple(-0.25 * height * axes[:, 2])
        return Shape(kind, (max(radius, least), max(height, least)), position, axes)
    radius, length = 2 * math.sqrt(across), math.sqrt(12 * along)
    return Shape("cylinder", (max(radius, least), max(length, 2 * least)), axes=axes)


def principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return principal moments (3,), and the axes as columns (3, 3)."""
    if np.array_equal(inertia, np.diag(np.diag(inertia))):
        return np.diag(inertia), np.eye(3)
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments, axes


def _kind(moments: np.ndarray) -> str:
    a, b, c = np.sort(moments)
    if c - a <= _EQUAL * c:
        return "sphere"
    return "cylinder" if min(b - a, c - b) <= _EQUAL * c else "box"


def _symmetric_last(moments: np.ndarray, axes: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the index of the moment that differs most, and the axes with its axis last."""
    a, b, c = moments
    k = int(np.argmin([abs(b - c), abs(c - a), abs(a - b)]))
    return k, axes[:, [(k + 1) % 3, (k + 2) % 3, k]]


def _about_fixed_point(
    moments: np.ndarray, axes: np.ndarray, center: Sequence[float] | None, unit: float
) -> Shape:
    """Return a solid with these moments of inertia, up to a factor, about the fixed point.

    It is a box around the point, or, if there is a direction to the centre of mass, a cone or a box
    that stands on the point. A cone has the moments 3/10 m r^2 along and 3/20 m r^2 + 3/5 m h^2
    across its axis about its apex; a box has m (a^2 + b^2) / 12 along and m (a^2/12 + c^2/3) across
    about the middle of a face.
    """
    direction = np.zeros(3) if center is None else np.array(center)
    direction = direction / max(float(np.linalg.norm(direction)), 1e-300)
    k = int(np.argmax(np.abs(direction @ axes)))
    if abs(direction @ axes[:, k]) < 1 - _EQUAL:
        edges = np.sqrt(np.maximum(np.sum(moments) - 2 * moments, 0.0))
        edges *= unit / edges.max()
        return Shape("box", _tuple(np.maximum(edges, 0.04 * unit)), axes=axes)
    i, j = (k + 1) % 3, (k + 2) % 3
    if abs(moments[i] - moments[j]) <= _EQUAL * moments[i] and 2 * moments[i] > moments[k]:
        slender = math.sqrt(0.5 * (moments[i] / moments[k] - 0.5))
        height = unit if slender > 1 else unit * slender
        size, axes = (height / slender, height), _frame(direction)
        return Shape("cone", size, _tuple(0.5 * height * direction), axes)
    edges = np.zeros(3)
    edges[k] = 1.5 * (moments[i] + moments[j] - moments[k])
    edges[i] = 6 * (moments[j] - moments[i] + moments[k])
    edges[j] = 6 * (moments[i] - moments[j] + moments[k])
    edges = np.sqrt(np.maximum(edges, 0.0))
    edges = np.maximum(edges * unit / edges.max(), 0.04 * unit)
    return Shape("box", _tuple(edges), _tuple(0.5 * edges[k] * direction), axes)


def _shape(
    kind: str, size: ArrayInput, count: int, position: ArrayInput, axes: np.ndarray | None = None
) -> Shape:
    """Return a shape with `count` positive lengths; `ValueError` for others."""
    lengths, center = np.asarray(size, float), np.asarray(position, float)
    if lengths.shape != (count,) or not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ValueError(
            f"`{kind}` takes {count} positive length{'s' * (count > 1)}, m; got {size!r}."
        )
    if center.shape != (3,) or not np.isfinite(center).all():
        raise ValueError(f"`{kind}(position=...)` must be finite, of shape (3,); got {position!r}.")
    return Shape(kind, _tuple(lengths), _tuple(center), np.eye(3) if axes is None else axes)


def _frame(axis: ArrayInput) -> np.ndarray:
    """Return a right-handed frame, in columns, whose third axis has the direction of `axis`."""
    direction = np.asarray(axis, float)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not np.any(direction):
        raise ValueError(f"An axis must be finite, of shape (3,) and not zero; got {axis!r}.")
    third = direction / np.abs(direction).max()
    third /= np.linalg.norm(third)
    first = np.cross(np.eye(3)[np.argmin(np.abs(third))], third)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(third, first), third], axis=1)


def _tuple(values: Iterable[float] | np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
