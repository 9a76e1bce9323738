"""Runs as the data of a page: plain numbers, and arrays in base64."""

import base64
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..bodies import Mesh
from ..io.mechanism import GROUND
from .runs import Run
from .shapes import AnyShape, Shape, listed, shapes_of

# Extent of the points across their plane, over that along it, below which a motion counts as plane.
_PLANE = 0.12


def scene_of(
    runs: Sequence[Run],
    title: str = "",
    shapes: Mapping[str, AnyShape | Sequence[AnyShape]] | None = None,
    speed: float | None = None,
    theme: str = "auto",
) -> dict[str, Any]:
    """Everything that a page shows, as `json` can write it.

    **Arguments:** `runs`; `title`; `shapes`, by the names of bodies, in the place of those of their
    inertia; `speed`, seconds of motion in a second; `theme`, `"auto"`, `"light"` or `"dark"`.
    **Raises:** `ValueError` for shapes of unknown bodies.
    """
    given = {name: listed(parts) for name, parts in (shapes or {}).items()}
    names = {body["name"] for run in runs for body in run.mechanism["bodies"]}
    unknown = sorted(set(given) - names)
    if unknown:
        raise ValueError(f"`view(shapes=...)` names {unknown}; the bodies are {sorted(names)}.")
    unit = _unit(runs)
    solids = [
        [
            given.get(body["name"]) or shapes_of(body, unit, _joint_points(run.mechanism, i))
            for i, body in enumerate(run.mechanism["bodies"])
        ]
        for run in runs
    ]
    start = min(float(run.times[0]) for run in runs)
    end = max(float(run.times[-1]) for run in runs)
    meshes: dict[Mesh, int] = {}
    shown = [_run(run, parts, meshes) for run, parts in zip(runs, solids, strict=True)]
    scene = {
        "title": title,
        "theme": theme,
        "unit": unit,
        "start": start,
        "end": end,
        "speed": _nice(end - start) if speed is None else float(speed),
        "translates": any(body["mass"] for run in runs for body in run.mechanism["bodies"]),
        "camera": _camera(runs, solids, unit),
        "gravity": next((g for run in runs if (g := run.mechanism["gravity"])), None),
        "runs": shown,
    }
    if meshes:
        corners = [mesh.vertices[mesh.faces].reshape(-1, 3) for mesh in meshes]
        scene["meshes"] = [encoded(points, "int16") for points in corners]
    return scene


def encoded(values: Any, kind: str = "float32") -> dict[str, Any]:
    """An array in base64, little-endian, with its shape; `"int16"` has a scale.

    Of `"int16"` the error is at most 1/65000 of the largest value. What is not finite becomes zero
    there.
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


def decoded(entry: Mapping[str, Any]) -> np.ndarray:
    """The array that `encoded` wrote."""
    kind = {"float32": "<f4", "int16": "<i2"}[entry["type"]]
    array = np.frombuffer(base64.b64decode(entry["data"]), kind).reshape(entry["shape"])
    return array * entry.get("scale", 1.0)


def quaternion_of(axes: Any) -> list[float]:
    """The unit quaternion, scalar first, of a rotation matrix (3, 3) or of its columns."""
    return Rotation.from_matrix(np.asarray(axes, float)).as_quat(scalar_first=True).tolist()


def _run(run: Run, solids: Sequence[Sequence[Shape]], meshes: dict[Mesh, int]) -> dict[str, Any]:
    mechanism, rates = run.mechanism, {}
    if run.angular_velocities is not None:
        in_space = _to_space(run.orientations, run.angular_velocities)
        rates = {"rates": encoded(in_space, "int16")}
    out = {
        "label": run.label,
        "ghost": run.is_ghost,
        "times": encoded(run.times),
        "poses": encoded(np.concatenate([run.positions, run.orientations], axis=-1)),
        **rates,
        "bodies": [
            {
                "name": body["name"],
                "shapes": [_shape(shape, meshes) for shape in parts],
                "extent": _extent(parts),
            }
            for body, parts in zip(mechanism["bodies"], solids, strict=True)
        ],
        "joints": [_joint(joint, run) for joint in mechanism["joints"]],
        "springs": mechanism["springs"],
        "graphs": [
            {"name": name, "unit": unit, "values": encoded(values)}
            for (name, unit), values in run.graphs.items()
        ],
    }
    if run.forces is not None:
        out["forces"] = encoded(run.forces, "int16")
    if run.reactions is not None:
        out["reactions"] = encoded(run.reactions, "int16")
    return out


def _extent(shapes: Sequence[Shape]) -> float:
    """A radius around the reference point that the shapes are inside of, m."""
    return max(
        float(np.linalg.norm(shape.position) + np.linalg.norm(shape.half_extents))
        for shape in shapes
    )


def _shape(shape: Shape, meshes: dict[Mesh, int]) -> dict[str, Any]:
    """A shape; of a mesh its row among the meshes of the scene, each of which is there once."""
    out = {
        "kind": shape.kind,
        "size": list(shape.size),
        "position": list(shape.position),
        "orientation": quaternion_of(shape.axes),
    }
    if shape.surface is not None:
        out["mesh"] = meshes.setdefault(shape.surface, len(meshes))
    return out


def _joint(joint: dict[str, Any], run: Run) -> dict[str, Any]:
    """A joint, quaternions in the place of frames, and how far its child went along its axis."""
    frame = np.array(joint["parent_frame"])
    child = _points(run, joint["child"], joint["child_point"])
    parent = _points(run, joint["parent"], joint["parent_point"])
    axis = _points(run, joint["parent"], np.array(joint["parent_point"]) + frame[:, 2]) - parent
    along = np.sum((child - parent) * axis, axis=-1)
    return {
        **{name: joint[name] for name in ("name", "kind", "parent", "child")},
        "parent_point": joint["parent_point"],
        "child_point": joint["child_point"],
        "parent_orientation": quaternion_of(joint["parent_frame"]),
        "child_orientation": quaternion_of(joint["child_frame"]),
        "range": [float(along.min()), float(along.max())],
    }


def _joint_points(mechanism: dict[str, Any], body: int) -> list[np.ndarray]:
    """Points of a body at which joints and springs are, (3,) each, body components, each once."""
    points: list[np.ndarray] = []
    for joint in [*mechanism["joints"], *mechanism["springs"]]:
        for end in ("parent", "child"):
            point = np.array(joint[f"{end}_point"])
            near = (np.linalg.norm(point - other) < 1e-6 for other in points)
            if joint[end] == body and not any(near):
                points.append(point)
    return points


def _points(run: Run, body: int, point: Any) -> np.ndarray:
    """Where a point of a body is at all times, (T, 3)."""
    if body == GROUND:
        return np.broadcast_to(np.asarray(point, float), (len(run.times), 3))
    arm = np.broadcast_to(np.asarray(point, float), (len(run.times), 1, 3))
    return run.positions[:, body] + _to_space(run.orientations[:, body : body + 1], arm)[:, 0]


def _to_space(orientations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Space components (..., 3) of vectors in body components."""
    scalar, vector = orientations[..., :1], orientations[..., 1:]
    turned = 2 * np.cross(vector, vectors)
    return vectors + scalar * turned + np.cross(vector, turned)


def _unit(runs: Sequence[Run]) -> float:
    """A length of the mechanism: the median over bodies of how far a joint or the mass is away."""
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


def _camera(runs, solids, unit) -> dict[str, Any]:
    """Which way is up, and from where to look at how large a region; to a plane from its side."""
    low, high, points = [], [], []
    for run, parts in zip(runs, solids, strict=True):
        for i, shapes in enumerate(parts):
            path = run.positions[:, i]
            size = _extent(shapes)
            low.append(path.min(axis=0) - 0.8 * size)
            high.append(path.max(axis=0) + 0.8 * size)
            points.append(path)
        ends = [*run.mechanism["joints"], *run.mechanism["springs"]]
        for joint, end in itertools.product(ends, ("parent", "child")):
            path = _points(run, joint[end], joint[f"{end}_point"])
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


def _lowest(low, high, up):
    corners = np.array([[(low, high)[k >> a & 1][a] for a in range(3)] for k in range(8)])
    return (corners @ up).min()


def _view(cloud, gravity, unit):
    """Which way is up, and the direction from the middle to the camera.

    Across the plane of a plane motion, so that the larger coordinates are to the right; else from
    a corner.
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


def _nice(duration: float) -> float:
    """A round speed at which a run takes 5 to 12 s; 1 if it takes no less and not much more."""
    if 3.0 <= duration <= 20.0 or duration <= 0.0:
        return 1.0
    wanted = duration / 8.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return min(
        (step * power for step in (1.0, 2.0, 5.0, 10.0)), key=lambda s: abs(math.log(s / wanted))
    )
