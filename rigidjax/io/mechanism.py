"""Description of a mechanism by plain text and numbers, for files and for pictures."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..bodies import Mesh
from ..bodies.potentials import AxialGravityPotential, GravityPotential
from ..forces import Cable, Gravity, Spring
from ..formulations import AbstractFormulation
from ..joints import AbstractJoint
from ..mechanics import System
from ..mechanics.stacked.joints import find_origins, with_origins

GROUND = -1


def describe_mechanism(model: AbstractFormulation | Any) -> dict[str, Any]:
    """Describe bodies, joints, springs and gravity of a model by lists, numbers and strings.

    **Arguments:** `model`, a formulation, a `System` or a `FixedPointBody`, without a batch axis.
    **Returns:** a dictionary that `json` can write. `bodies`: `name`, `mass` (kg, `None` for a
    body with a fixed point), `inertia` (3, 3), kg m^2, about the reference point, `shape` (a name,
    `None`, or `vertices` and `faces` of a mesh), `axis` (from a fixed point towards the centre of
    mass, or `None`). `joints`: `name`, `kind`, `parent` and `child` (rows of the bodies, -1 for
    the ground), and for both of them `point` (3,), m, and `frame` (3, 3), columns, in components
    of the body; `pitch`, m per revolution, of a screw; `limits`, rows of (low, high), m or rad, or
    `None`. `has_loops`, also by couplings and constraints. `springs`: their ends, like those of
    joints, and `is_cord`, for cords and for the parts of cables. `frames`: `name`, `body` (a row)
    and `point` of every `Frame`, (3,) m, body
    components. `gravity`: (3,), m/s^2, or `None`.
    """
    system = model.system if isinstance(model, AbstractFormulation) else model
    if not isinstance(system, System):
        return _fixed_point(system)
    rows = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": GROUND}
    positions = [np.asarray(body.position) for body in system.bodies] + [np.zeros(3)]
    rotations = [rotation_of(np.asarray(body.orientation)) for body in system.bodies] + [np.eye(3)]

    def body_components(name: str, point: Any) -> list[float]:
        i = rows[name]
        return (rotations[i].T @ (np.asarray(point) - positions[i])).tolist()

    ends = system.joined_bodies

    def joint_of(joint: AbstractJoint) -> dict[str, Any]:
        joint = with_origins(joint, *find_origins(joint, system))
        first, second = joint.points()
        frame = np.asarray(joint.frame())
        parent_name, child_name = ends[joint.name]
        parent, child = rows[parent_name], rows[child_name]
        return {
            "name": joint.name,
            "kind": type(joint).__name__,
            "parent": parent,
            "child": child,
            "parent_point": body_components(parent_name, first),
            "parent_frame": (rotations[parent].T @ frame).tolist(),
            "child_point": body_components(child_name, second),
            "child_frame": (rotations[child].T @ frame).tolist(),
            "pitch": float(getattr(joint, "pitch", 0.0)),
            "limits": None if joint.limits is None else np.asarray(joint.limits).tolist(),
        }

    frames = {frame.name: frame for frame in system.frames}
    body_of = system.body_of

    def end(name: str, point: Any) -> list[float]:
        if point is not None:
            return body_components(body_of.get(name, name), point)
        return np.asarray(frames[name].point).tolist() if name in frames else [0.0, 0.0, 0.0]

    gravities = [force.vector for force in system.forces if isinstance(force, Gravity)]
    return {
        "bodies": [
            {
                "name": body.name,
                "mass": float(body.mass),
                "inertia": _tensor(body.inertia).tolist(),
                "shape": _shape_entry(body.shape),
                "axis": None,
            }
            for body in system.bodies
        ],
        "joints": [joint_of(joint) for joint in system.joints if not joint.at_centre],
        "springs": [
            {
                "parent": rows[body_of.get(first[0], first[0])],
                "child": rows[body_of.get(last[0], last[0])],
                "parent_point": end(*first),
                "child_point": end(*last),
                "is_cord": is_cord,
            }
            for first, last, is_cord in _lines(system)
        ],
        "frames": [
            {
                "name": frame.name,
                "body": rows[frame.body],
                "point": np.asarray(frame.point).tolist(),
            }
            for frame in system.frames
        ],
        "has_loops": bool(system.topology.loops or system.constraints),
        "gravity": np.sum(gravities, axis=0).tolist() if gravities else None,
    }


def _lines(system: System) -> Iterator[tuple[tuple[str, Any], tuple[str, Any], bool]]:
    """Yield both ends, body and point, of every spring and part of a cable, and `is_cord`."""
    for force in system.forces:
        if isinstance(force, Spring):
            yield (force.a, force.a_point), (force.b, force.b_point), force.tension_only
        elif isinstance(force, Cable):
            ends = list(zip(force.bodies, force.points, strict=True))
            for first, last in itertools.pairwise([*ends, ends[0]] if force.closed else ends):
                yield first, last, True


def _fixed_point(body: Any) -> dict[str, Any]:
    """Describe a `FixedPointBody`; the fixed point is its reference point, and it has no mass."""
    potential = body.potential
    axis = gravity = None
    if isinstance(potential, AxialGravityPotential):
        axis, gravity = [0.0, 0.0, float(np.sign(potential.weight_moment))], [0.0, 0.0, -1.0]
    elif isinstance(potential, GravityPotential):
        axis, gravity = potential.first_moment.tolist(), potential.gravity.tolist()
    inertia = _tensor(body.inertia).tolist()
    bodies = [{"name": "body", "mass": None, "inertia": inertia, "shape": None, "axis": axis}]
    return {"bodies": bodies, "joints": [], "springs": [], "gravity": gravity}


# The functions below use NumPy, because JAX would compile each operation.


def _shape_entry(shape: Any) -> Any:
    if not isinstance(shape, Mesh):
        return shape
    return {"vertices": shape.vertices.tolist(), "faces": shape.faces.tolist()}


def _tensor(inertia: Any) -> np.ndarray:
    values = np.asarray(inertia)
    return np.diag(values) if values.ndim == 1 else values


def rotation_of(orientation: Any) -> np.ndarray:
    """Return the rotation matrix (3, 3), body to space, of a unit quaternion, scalar first."""
    w, (x, y, z) = orientation[0], orientation[1:]
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * skew + 2 * skew @ skew
