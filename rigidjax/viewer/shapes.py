"""Shapes that bodies are drawn as, and the shape that a mass and an inertia have."""

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..bodies import Mesh
from ..checks import ArrayInput

# Relative difference of two moments of inertia up to which they count as equal.
_EQUAL = 1e-3


class Shape(NamedTuple):
    """A solid and where it is on its body.

    `kind`; `size`, m: edges of a box, radius and length of a cylinder, cone or bar with round ends,
    radius of a sphere, semi-axes of an ellipsoid; `position` of its centre and `axes` (3, 3),
    columns, in body components; `surface`, that of a mesh, in body components.
    """

    kind: str
    size: tuple[float, ...]
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    axes: np.ndarray = np.eye(3)
    surface: Mesh | None = None

    @property
    def half_extents(self) -> np.ndarray:
        """Half the edges of the box around it, (3,) m, along its own axes."""
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


def listed(given: AnyShape | Sequence[AnyShape]) -> list[Shape]:
    """Several shapes, or one; see `as_shape`."""
    if isinstance(given, Shape | Mesh | str | os.PathLike):
        return [as_shape(given)]
    return [as_shape(one) for one in given]


def box(size: ArrayInput, position: ArrayInput = (0.0, 0.0, 0.0)) -> Shape:
    """A box with edges `size`, (3,) m, along the body axes, its centre at `position`, (3,) m."""
    return _shape("box", size, 3, position)


def cylinder(
    radius: float,
    length: float,
    position: ArrayInput = (0.0, 0.0, 0.0),
    axis: ArrayInput = (0, 0, 1),
) -> Shape:
    """A cylinder along `axis`, (3,) in body components, its centre at `position`; lengths in m."""
    return _shape("cylinder", (radius, length), 2, position, _frame(axis))


def cone(
    radius: float,
    height: float,
    position: ArrayInput = (0.0, 0.0, 0.0),
    axis: ArrayInput = (0, 0, 1),
) -> Shape:
    """A cone along `axis`, (3,), from its apex to its base, half of its height at `position`."""
    return _shape("cone", (radius, height), 2, position, _frame(axis))


def sphere(radius: float, position: ArrayInput = (0.0, 0.0, 0.0)) -> Shape:
    """A sphere, its centre at `position`; lengths in m."""
    return _shape("sphere", (radius,), 1, position)


def ellipsoid(semi_axes: ArrayInput, position: ArrayInput = (0.0, 0.0, 0.0)) -> Shape:
    """An ellipsoid with `semi_axes`, (3,) m, along the body axes, its centre at `position`."""
    return _shape("ellipsoid", semi_axes, 3, position)


def as_shape(given: AnyShape) -> Shape:
    """The shape of a `Mesh`, or of an STL or OBJ file in m, in body components."""
    if isinstance(given, Shape):
        return given
    return Shape("mesh", (), surface=given if isinstance(given, Mesh) else Mesh.read(given))


def shapes_of(body: dict[str, Any], unit: float, points: Sequence[np.ndarray] = ()) -> list[Shape]:
    """The shape of a body of `describe_mechanism`: that it was made as, or that of its inertia.

    Without one that was given, equal moments make a sphere, two equal ones a cylinder, others a
    box. A bar goes to each joint that is outside. Where the inertia is that of no such link, as of
    a plate in a plane mechanism, bars between the joints are all there is. A body with a fixed
    point has no mass: its size is `unit`.

    **Arguments:** `body`; `unit`, m, a length of the mechanism, for what has no extension;
    `points`, of the joints, (3,) m, body components.
    """
    solid = _solid(body, unit)
    far = [point for point in points if np.linalg.norm(point) > 0.1 * unit]
    if not far:
        return [solid]
    sizes = 2 * np.sort(solid.half_extents)
    is_plate = sizes[0] < 0.06 * sizes[1] and sizes[1] > 0.3 * sizes[2]
    reach = max(float(np.linalg.norm(point)) for point in far)
    # A link between two joints that its inertia would make stout.
    is_link = len(far) == 2 and sizes[1] > 0.2 * float(np.linalg.norm(far[1] - far[0]))
    if body["shape"] is None and (is_plate or is_link or sizes[2] > 4 * reach):
        return _bars(points, unit)
    outside = [point for point in far if not _contains(solid, point)]
    return [solid, *(_bar(np.zeros(3), point, 0.03 * unit) for point in outside)]


def _contains(solid: Shape, point: np.ndarray) -> bool:
    local = solid.axes.T @ (point - np.array(solid.position))
    return bool(np.all(np.abs(local) <= 1.05 * solid.half_extents))


def _bars(points, unit):
    """Bars between joints: from one to the other, or from the middle of more to each of them."""
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
    if np.linalg.norm(aside) > 0.1 * unit:
        bars.append(
            _bar(hub + line * (-hub @ line) / max(line @ line, 1e-300), np.zeros(3), 0.03 * unit)
        )
    return [bar for bar in bars if bar.size[1] > 0] + [Shape("sphere", (0.07 * unit,))]


def _bar(start, end, radius):
    length = float(np.linalg.norm(end - start))
    axes = _frame(end - start) if length > 0 else np.eye(3)
    return Shape("bar", (radius, length), _tuple(0.5 * (start + end)), axes)


def _solid(body: dict[str, Any], unit: float) -> Shape:
    mass, axis = body["mass"], body["axis"]
    if isinstance(body["shape"], dict):
        return as_shape(Mesh(**body["shape"]))
    moments, axes = principal(np.array(body["inertia"]))
    if not mass:
        return _about_fixed_point(moments, axes, axis, unit)
    least = 0.02 * unit
    squares = np.maximum(np.sum(moments) - 2 * moments, 0.0) / (2 * mass)  # of the radii of inertia
    if not np.any(squares > 0):
        return Shape("sphere", (3 * least,))
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
        # Half of the height, from the centre of mass at three quarters of it.
        position = _tuple(-0.25 * height * axes[:, 2])
        return Shape(kind, (max(radius, least), max(height, least)), position, axes)
    radius, length = 2 * math.sqrt(across), math.sqrt(12 * along)
    return Shape("cylinder", (max(radius, least), max(length, 2 * least)), axes=axes)


def principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments (3,) and axes (3, 3), columns; of a diagonal tensor those of the body."""
    if np.array_equal(inertia, np.diag(np.diag(inertia))):
        return np.diag(inertia), np.eye(3)
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments, axes


def _kind(moments):
    a, b, c = np.sort(moments)
    if c - a <= _EQUAL * c:
        return "sphere"
    return "cylinder" if min(b - a, c - b) <= _EQUAL * c else "box"


def _symmetric_last(moments, axes):
    """The index of the moment that differs from the other two, and axes with its own last."""
    a, b, c = moments
    k = int(np.argmin([abs(b - c), abs(c - a), abs(a - b)]))
    return k, axes[:, [(k + 1) % 3, (k + 2) % 3, k]]


def _about_fixed_point(moments, axes, weight, unit):
    """A box about the fixed point; below a weight, a cone or box that stands on it.

    Moments of a cone about its apex: 3/10 m r^2 along the axis, 3/20 m r^2 + 3/5 m h^2 across; of a
    box about the middle of a face: m (a^2 + b^2) / 12 along, m (a^2/12 + c^2/3) across.
    """
    direction = np.zeros(3) if weight is None else np.array(weight)
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


def _shape(kind, size, width, position, axes=None):
    numbers, place = np.asarray(size, float), np.asarray(position, float)
    if numbers.shape != (width,) or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(
            f"`{kind}` takes {width} positive length{'s' * (width > 1)}, m; got {size!r}."
        )
    if place.shape != (3,) or not np.isfinite(place).all():
        raise ValueError(f"`{kind}(position=...)` must be finite, of shape (3,); got {position!r}.")
    return Shape(kind, _tuple(numbers), _tuple(place), np.eye(3) if axes is None else axes)


def _frame(axis):
    """A right-handed frame whose third axis has the direction of `axis`, columns."""
    direction = np.asarray(axis, float)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not np.any(direction):
        raise ValueError(f"An axis must be finite, of shape (3,) and not zero; got {axis!r}.")
    third = direction / np.abs(direction).max()
    third /= np.linalg.norm(third)
    first = np.cross(np.eye(3)[np.argmin(np.abs(third))], third)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(third, first), third], axis=1)


def _tuple(values):
    return tuple(float(value) for value in values)
