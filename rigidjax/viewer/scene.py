"""Conversion of runs to the data of a page: numbers, and arrays in base64."""

import base64
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..bodies import Mesh
from ..io.mechanism import GROUND
from .runs import DisplayedRun, to_space
from .shapes import AnyShape, Shape, as_shapes, inertia_ellipsoid, shapes_of

# Translations along and rotations about axes of the joint frame, in the order of the coordinates.
_FREEDOMS = {
    "Revolute": "c",
    "Prismatic": "z",
    "Cylindrical": "zc",
    "Screw": "c",
    "Planar": "xyc",
    "Universal": "ab",
}


class JointValue(NamedTuple):
    """Coordinate of a joint: its `name`, its letter in `_FREEDOMS`, `values`, (T,), m or rad, and
    `rates` or `None`."""

    joint: int
    name: str
    freedom: str
    values: np.ndarray
    rates: np.ndarray | None


def joint_values(run: DisplayedRun) -> Iterator[JointValue]:
    """Yield the coordinates of the joints of a run, angles with full revolutions.

    A revolute, prismatic, cylindrical, screw, planar or universal joint has coordinates; the signs
    are those of `Solution.coordinates`. Rates of universal joints are not computed. Between two
    times an angle changes by less than half a revolution more or less than its rates predict.
    """
    for index, joint in enumerate(run.mechanism["joints"]):
        freedoms = _FREEDOMS.get(joint["kind"], "")
        for freedom in freedoms:
            name = joint["name"] + (f" {freedoms.index(freedom) + 1}" if len(freedoms) > 1 else "")
            if freedom in "xyz":
                values, rates = _translation(run, joint, "xyz".index(freedom))
                yield JointValue(index, name, freedom, values, rates)
            else:
                angles, rates = _angle(run, joint, freedom)
                start = None if freedom == "b" else run.angles.get(joint["name"])
                values = _unwrap(angles, rates, run.times, start)
                yield JointValue(index, name, freedom, values, rates)


def _translation(
    run: DisplayedRun, joint: dict[str, Any], axis: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the displacement along an axis of the parent's joint frame, and its rate."""
    direction = _direction(run, joint, "parent", axis)
    start, end = (point_path(run, joint[e], joint[f"{e}_point"]) for e in ("parent", "child"))
    gap = end - start
    values = np.sum(gap * direction, axis=-1)
    if run.velocities is None or run.angular_velocities is None:
        return values, None
    velocity = _point_velocity(run, joint, "child") - _point_velocity(run, joint, "parent")
    turning = np.cross(_angular_velocity(run, joint["parent"]), direction)
    return values, np.sum(velocity * direction + gap * turning, axis=-1)


def _angle(
    run: DisplayedRun, joint: dict[str, Any], freedom: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return an angle in (-pi, pi], and its rate; `a`, `b` are the angles of a universal joint."""
    parent = np.stack([_direction(run, joint, "parent", k) for k in range(3)], axis=-1)
    child = np.stack([_direction(run, joint, "child", k) for k in range(3)], axis=-1)
    relative = np.swapaxes(parent, -1, -2) @ child
    if freedom == "a":
        return np.arctan2(relative[:, 2, 1], relative[:, 1, 1]), None
    if freedom == "b":
        return np.arctan2(relative[:, 0, 2], relative[:, 0, 0]), None
    angles = np.arctan2(
        relative[:, 1, 0] - relative[:, 0, 1], relative[:, 0, 0] + relative[:, 1, 1]
    )
    if run.angular_velocities is None:
        return angles, None
    spin = _angular_velocity(run, joint["child"]) - _angular_velocity(run, joint["parent"])
    return angles, np.sum(spin * parent[..., 2], axis=-1)


def _unwrap(
    angles: np.ndarray, rates: np.ndarray | None, times: np.ndarray, start: float | None
) -> np.ndarray:
    """Return angles with full revolutions, the first angle next to `start` if it is known."""
    if start is not None:
        angles = angles + 2 * np.pi * np.round((start - angles[0]) / (2 * np.pi))
    predicted = np.zeros(max(len(times) - 1, 0))
    if rates is not None:
        predicted = 0.5 * (rates[1:] + rates[:-1]) * np.diff(times)
    excess = np.diff(angles) - predicted
    steps = predicted + excess - 2 * np.pi * np.round(excess / (2 * np.pi))
    return angles[0] + np.concatenate([[0.0], np.cumsum(steps)])


def point_path(run: DisplayedRun, body: int, point: Any) -> np.ndarray:
    """Return the position of a point of a body at all times, (T, 3) m."""
    if body == GROUND:
        return np.broadcast_to(np.asarray(point, float), (len(run.times), 3))
    return run.positions[:, body] + _in_space(run, body, point)


def _direction(run: DisplayedRun, joint: dict[str, Any], end: str, axis: int) -> np.ndarray:
    return _in_space(run, joint[end], np.array(joint[f"{end}_frame"])[:, axis])


def _in_space(run: DisplayedRun, body: int, vector: Any) -> np.ndarray:
    vectors = np.broadcast_to(np.asarray(vector, float), (len(run.times), 3))
    return vectors if body == GROUND else to_space(run.orientations[:, body], vectors)


def _angular_velocity(run: DisplayedRun, body: int) -> np.ndarray:
    if body == GROUND or run.angular_velocities is None:
        return np.zeros((len(run.times), 3))
    return to_space(run.orientations[:, body], run.angular_velocities[:, body])


def _point_velocity(run: DisplayedRun, joint: dict[str, Any], end: str) -> np.ndarray:
    body = joint[end]
    if body == GROUND or run.velocities is None:
        return np.zeros((len(run.times), 3))
    arm = _in_space(run, body, joint[f"{end}_point"])
    return run.velocities[:, body] + np.cross(_angular_velocity(run, body), arm)


# Ratio of the extents across and along a plane below which a motion counts as plane.
_PLANE = 0.12


def scene_of(
    runs: Sequence[DisplayedRun],
    title: str = "",
    shapes: Mapping[str, AnyShape | Sequence[AnyShape]] | None = None,
    speed: float | None = None,
    theme: str = "auto",
) -> dict[str, Any]:
    """Return the data of a page, which `json` can write.

    **Arguments:** `runs`; `title`; `shapes`, by the names of bodies, instead of those of their
    inertia; `speed`, seconds of motion per second; `theme`, `"auto"`, `"light"` or `"dark"`.
    **Errors:** `ValueError` for shapes of unknown bodies.
    """
    user_shapes = {name: as_shapes(parts) for name, parts in (shapes or {}).items()}
    names = {body["name"] for run in runs for body in run.mechanism["bodies"]}
    unknown = sorted(set(user_shapes) - names)
    if unknown:
        raise ValueError(f"`view(shapes=...)` names {unknown}; the bodies are {sorted(names)}.")
    unit = _unit(runs)
    solids = [
        [
            user_shapes.get(body["name"]) or shapes_of(body, unit, _joint_points(run.mechanism, i))
            for i, body in enumerate(run.mechanism["bodies"])
        ]
        for run in runs
    ]
    start = min(float(run.times[0]) for run in runs)
    end = max(float(run.times[-1]) for run in runs)
    meshes: dict[Mesh, int] = {}
    entries = [_run(run, parts, meshes, unit) for run, parts in zip(runs, solids, strict=True)]
    scene = {
        "title": title,
        "theme": theme,
        "unit": unit,
        "start": start,
        "end": end,
        "poses": len(runs) == 1 and start == end and not runs[0].mechanism.get("has_loops", True),
        "speed": _round_speed(end - start) if speed is None else float(speed),
        "translates": any(body["mass"] for run in runs for body in run.mechanism["bodies"]),
        "camera": _camera(runs, solids, unit),
        "gravity": next((g for run in runs if (g := run.mechanism["gravity"])), None),
        "runs": entries,
    }
    if meshes:
        corners = [mesh.vertices[mesh.faces].reshape(-1, 3) for mesh in meshes]
        scene["meshes"] = [encode_array(points, "int16") for points in corners]
    return scene


def encode_array(values: Any, kind: str = "float32") -> dict[str, Any]:
    """Encode an array in base64, little-endian, with its shape; `"int16"` adds a scale.

    The error of `"int16"` is at most 1/65000 of the largest value; values that are not finite
    become zero.
    """
    array = np.asarray(values, float)
    if kind == "float32":
        data, extra = array.astype("<f4"), {}
    else:
        array = np.where(np.isfinite(array), array, 0.0)
        scale = float(np.max(np.abs(array), initial=0.0)) / 32767 or 1.0
        data, extra = np.round(array / scale).astype("<i2"), {"scale": scale}
    text = base64.b64encode(data.tobytes()).decode("ascii")
    return {"type": kind, "shape": list(array.shape), "data": text, **extra}


def decode_array(entry: Mapping[str, Any]) -> np.ndarray:
    """Return the array that `encode_array` encoded."""
    kind = {"float32": "<f4", "int16": "<i2"}[entry["type"]]
    array = np.frombuffer(base64.b64decode(entry["data"]), kind).reshape(entry["shape"])
    return array * entry.get("scale", 1.0)


def quaternion_of(axes: Any) -> list[float]:
    """Return the unit quaternion, scalar first, of a rotation matrix (3, 3)."""
    return Rotation.from_matrix(np.asarray(axes, float)).as_quat(scalar_first=True).tolist()


def _run(
    run: DisplayedRun, solids: Sequence[Sequence[Shape]], meshes: dict[Mesh, int], unit: float
) -> dict[str, Any]:
    mechanism, rates = run.mechanism, {}
    if run.angular_velocities is not None:
        in_space = to_space(run.orientations, run.angular_velocities)
        rates = {"rates": encode_array(in_space, "int16")}
    out = {
        "label": run.label,
        "ghost": run.is_ghost,
        "times": encode_array(run.times),
        "poses": encode_array(np.concatenate([run.positions, run.orientations], axis=-1)),
        **rates,
        "bodies": [
            {
                "name": body["name"],
                "mass": body["mass"],
                "shapes": [_shape(shape, meshes) for shape in parts],
                "extent": _extent(parts),
                "inertia": ellipsoid and _shape(ellipsoid, meshes),
            }
            for body, parts in zip(mechanism["bodies"], solids, strict=True)
            for ellipsoid in [inertia_ellipsoid(body)]
        ],
        "joints": [_joint(joint, run) for joint in mechanism["joints"]],
        "springs": mechanism["springs"],
        "frames": mechanism.get("frames", []),
        "graphs": [
            {"name": name, "unit": unit, "values": encode_array(values)}
            for (name, unit), values in run.graphs.items()
        ],
        "coordinates": [_coordinate(value, mechanism, unit) for value in joint_values(run)],
    }
    if run.forces is not None:
        out["forces"] = encode_array(run.forces, "int16")
    if run.reactions is not None:
        out["reactions"] = encode_array(run.reactions, "int16")
    return out


def _coordinate(value: JointValue, mechanism: dict[str, Any], unit: float) -> dict[str, Any]:
    """Return the data of a coordinate; sliders of lengths without limits reach twice `unit`, m."""
    rates = {} if value.rates is None else {"rates": encode_array(value.rates)}
    joint, is_length = mechanism["joints"][value.joint], value.freedom in "xyz"
    row = _FREEDOMS[joint["kind"]].index(value.freedom)
    low, high = joint["limits"][row] if joint.get("limits") else (-math.inf, math.inf)
    reach = 2.0 * unit if is_length else math.pi
    start = float(value.values[0])
    return {
        "joint": value.joint,
        "name": value.name,
        "unit": "m" if is_length else "rad",
        "freedom": value.freedom,
        "limits": [max(low, start - reach), min(high, start + reach)],
        "values": encode_array(value.values),
        **rates,
    }


def _extent(shapes: Sequence[Shape]) -> float:
    """Return the radius of a sphere around the reference point that contains the shapes, m."""
    return max(
        float(np.linalg.norm(shape.position) + np.linalg.norm(shape.half_extents))
        for shape in shapes
    )


def _shape(shape: Shape, meshes: dict[Mesh, int]) -> dict[str, Any]:
    """Return the data of a shape; a mesh is stored once in `meshes` and referred to by its row."""
    out = {
        "kind": shape.kind,
        "size": list(shape.size),
        "position": list(shape.position),
        "orientation": quaternion_of(shape.axes),
    }
    if shape.surface is not None:
        out["mesh"] = meshes.setdefault(shape.surface, len(meshes))
    return out


def _joint(joint: dict[str, Any], run: DisplayedRun) -> dict[str, Any]:
    """Return the data of a joint, with quaternions and the range of travel along its axis."""
    frame = np.array(joint["parent_frame"])
    child = point_path(run, joint["child"], joint["child_point"])
    parent = point_path(run, joint["parent"], joint["parent_point"])
    axis = point_path(run, joint["parent"], np.array(joint["parent_point"]) + frame[:, 2]) - parent
    along = np.sum((child - parent) * axis, axis=-1)
    return {
        **{name: joint[name] for name in ("name", "kind", "parent", "child")},
        "pitch": joint.get("pitch", 0.0),
        "parent_point": joint["parent_point"],
        "child_point": joint["child_point"],
        "parent_orientation": quaternion_of(joint["parent_frame"]),
        "child_orientation": quaternion_of(joint["child_frame"]),
        "range": [float(along.min()), float(along.max())],
    }


def _joint_points(mechanism: dict[str, Any], body: int) -> list[np.ndarray]:
    """Return the distinct points of a body with joints or springs, (3,), body components."""
    points: list[np.ndarray] = []
    for joint in [*mechanism["joints"], *mechanism["springs"]]:
        for end in ("parent", "child"):
            point = np.array(joint[f"{end}_point"])
            coincides = (np.linalg.norm(point - other) < 1e-6 for other in points)
            if joint[end] == body and not any(coincides):
                points.append(point)
    return points


def _unit(runs: Sequence[DisplayedRun]) -> float:
    """Return a typical length: the median over bodies of the distance of joints or mass, m."""
    lengths = []
    for run in runs[:1]:
        mechanism = run.mechanism
        for i, body in enumerate(mechanism["bodies"]):
            mass = body["mass"]
            trace = float(np.trace(np.array(body["inertia"])))
            length = math.sqrt(1.5 * trace / mass) if mass else 1.0
            for joint in mechanism["joints"]:
                for end in ("parent", "child"):
                    if joint[end] == i:
                        length = max(length, float(np.linalg.norm(joint[f"{end}_point"])))
            lengths.append(length)
    return float(np.median([length for length in lengths if length > 0] or [1.0]))


def _camera(
    runs: Sequence[DisplayedRun], solids: Sequence[Sequence[Sequence[Shape]]], unit: float
) -> dict[str, Any]:
    """Return the upward and the viewing direction, and the visible region."""
    low, high, points = [], [], []
    for run, parts in zip(runs, solids, strict=True):
        for i, shapes in enumerate(parts):
            for corner in _corners(shapes):
                path = point_path(run, i, corner)
                low.append(path.min(axis=0))
                high.append(path.max(axis=0))
            points.append(run.positions[:, i])
        ends = [*run.mechanism["joints"], *run.mechanism["springs"]]
        for joint, end in itertools.product(ends, ("parent", "child")):
            path = point_path(run, joint[end], joint[f"{end}_point"])
            low.append(path.min(axis=0))
            high.append(path.max(axis=0))
            points.append(path)
    low, high = np.min(low, axis=0), np.max(high, axis=0)
    gravity = next((g for run in runs if (g := run.mechanism["gravity"]) and np.any(g)), None)
    up, direction = _view(np.concatenate(points), gravity, unit)
    return {
        "up": up.tolist(),
        "direction": direction.tolist(),
        "center": (0.5 * (low + high)).tolist(),
        "size": (high - low).tolist(),
        "lowest": float(min(low @ up, high @ up, _lowest(low, high, up))),
        "radius": max(0.5 * float(np.linalg.norm(high - low)), 0.5 * unit),
    }


def _corners(shapes: Sequence[Shape]) -> np.ndarray:
    """Return the corners of the bounding boxes of shapes, (8 n, 3) m, body components."""
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    boxes = [
        np.array(shape.position) + signs * shape.half_extents @ shape.axes.T for shape in shapes
    ]
    return np.concatenate(boxes)


def _lowest(low: np.ndarray, high: np.ndarray, up: np.ndarray) -> float:
    corners = np.array([[(low, high)[k >> a & 1][a] for a in range(3)] for k in range(8)])
    return (corners @ up).min()


def _view(
    cloud: np.ndarray, gravity: Sequence[float] | None, unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the upward direction, and the direction from the centre to the camera.

    A plane motion is seen across its plane, with the larger coordinates to the right; others from a
    corner.
    """
    spread = cloud - cloud.mean(axis=0)
    scale = max(float(np.abs(spread).max()), 1e-9 * unit)
    squares, axes = np.linalg.eigh((spread / scale).T @ (spread / scale))
    least, middle, most = np.sqrt(np.maximum(squares, 0.0))
    is_plane = middle > 0.05 * most and least < _PLANE * middle
    normal = axes[:, 0]
    if gravity is not None:
        up = -np.array(gravity) / np.linalg.norm(gravity)
    elif is_plane and abs(normal[2]) > 0.9:
        up = np.array([0.0, 1.0, 0.0])
    else:
        up = np.array([0.0, 0.0, 1.0])
    if is_plane and abs(normal @ up) < 0.3:
        right = np.cross(up, normal)
        normal = normal if right[np.argmax(np.abs(right))] > 0 else -normal
        direction = normal + 0.22 * np.cross(up, normal) + 0.2 * up
    else:
        aside = np.cross([0.0, 1.0, 0.0] if abs(up[1]) < 0.9 else [0.0, 0.0, -1.0], up)
        aside /= np.linalg.norm(aside)
        direction = 0.7 * aside - np.cross(up, aside) + 0.55 * up
    return up, direction / np.linalg.norm(direction)


def _round_speed(duration: float) -> float:
    """Return 1, the speed of the motion itself, or for a run of less than 0.5 s or more than a
    minute a round speed at which it takes 5 to 12 s."""
    if 0.5 <= duration <= 60.0 or duration <= 0.0:
        return 1.0
    target = duration / 8.0
    power = 10.0 ** math.floor(math.log10(target))
    return min(
        (step * power for step in (1.0, 2.0, 5.0, 10.0)), key=lambda s: abs(math.log(s / target))
    )
