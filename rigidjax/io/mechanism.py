"""What a mechanism consists of, as plain text and numbers, for files and for pictures."""

from typing import Any

import numpy as np

from ..bodies import Mesh
from ..bodies.potentials import AxialGravityPotential, GravityPotential
from ..forces import Gravity, Spring
from ..formulations import AbstractFormulation
from ..joints import AbstractJoint
from ..mechanics import System
from ..mechanics.stacked.joint_points import known_origins, with_origins

GROUND = -1


def describe_mechanism(model: AbstractFormulation | Any) -> dict[str, Any]:
    """Bodies, joints, springs and gravity of a model as lists, numbers and strings.

    **Arguments:** `model`, a formulation, a `System` or a `FixedPointBody`, its leaves without a
    batch.
    **Returns:** a dictionary that `json` can write. `bodies`: `name`, `mass` (kg, `None` for a
    body with a fixed point), `inertia` (3, 3), kg m^2, about the reference point, `shape` (a name,
    `None`, or `vertices` and `faces` of a mesh), `axis` (towards the centre of mass from a fixed
    point, or `None`). `joints`: `name`, `kind`, `parent`
    and `child` (rows of the bodies, -1 the ground), and on each of both `point` (3,), m, and
    `frame` (3, 3), columns, in components of the body. `springs`: ends in the same way.
    `gravity`: (3,), m/s^2, or `None`.
    """
    system = model.system if isinstance(model, AbstractFormulation) else model
    if not isinstance(system, System):
        return _fixed_point(system)
    rows = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": GROUND}
    positions = [np.asarray(body.position) for body in system.bodies] + [np.zeros(3)]
    rotations = [rotation_of(np.asarray(body.orientation)) for body in system.bodies] + [np.eye(3)]

    def on(name: str, point: Any) -> list[float]:
        i = rows[name]
        return (rotations[i].T @ (np.asarray(point) - positions[i])).tolist()

    ends = system.joined_bodies

    def joint_of(joint: AbstractJoint) -> dict[str, Any]:
        joint = with_origins(joint, *known_origins(joint, system))
        first, second = joint.points()
        frame = np.asarray(joint.frame())
        of_parent, of_child = ends[joint.name]
        parent, child = rows[of_parent], rows[of_child]
        return {
            "name": joint.name,
            "kind": type(joint).__name__,
            "parent": parent,
            "child": child,
            "parent_point": on(of_parent, first),
            "parent_frame": (rotations[parent].T @ frame).tolist(),
            "child_point": on(of_child, second),
            "child_frame": (rotations[child].T @ frame).tolist(),
        }

    mounted = {frame.name: frame for frame in system.frames}
    body_of = system.body_of

    def end(name: str, point: Any) -> list[float]:
        if point is not None:
            return on(body_of.get(name, name), point)
        return np.asarray(mounted[name].point).tolist() if name in mounted else [0.0, 0.0, 0.0]

    fields = [force.vector for force in system.forces if isinstance(force, Gravity)]
    return {
        "bodies": [
            {
                "name": body.name,
                "mass": float(body.mass),
                "inertia": _tensor(body.inertia).tolist(),
                "shape": _described(body.shape),
                "axis": None,
            }
            for body in system.bodies
        ],
        "joints": [joint_of(joint) for joint in system.joints if not joint.at_centre],
        "springs": [
            {
                "parent": rows[body_of.get(force.a, force.a)],
                "child": rows[body_of.get(force.b, force.b)],
                "parent_point": end(force.a, force.a_point),
                "child_point": end(force.b, force.b_point),
            }
            for force in system.forces
            if isinstance(force, Spring)
        ],
        "gravity": np.sum(fields, axis=0).tolist() if fields else None,
    }


def _fixed_point(body: Any) -> dict[str, Any]:
    """The same of a `FixedPointBody`: its reference point is the fixed one, and it has no mass."""
    potential = body.potential
    axis = gravity = None
    if isinstance(potential, AxialGravityPotential):
        axis, gravity = [0.0, 0.0, float(np.sign(potential.weight_moment))], [0.0, 0.0, -1.0]
    elif isinstance(potential, GravityPotential):
        axis, gravity = potential.first_moment.tolist(), potential.gravity.tolist()
    inertia = _tensor(body.inertia).tolist()
    bodies = [{"name": "body", "mass": None, "inertia": inertia, "shape": None, "axis": axis}]
    return {"bodies": bodies, "joints": [], "springs": [], "gravity": gravity}


# In NumPy: JAX would compile each of these for a few numbers.


def _described(shape):
    if not isinstance(shape, Mesh):
        return shape
    return {"vertices": shape.vertices.tolist(), "faces": shape.faces.tolist()}


def _tensor(inertia):
    values = np.asarray(inertia)
    return np.diag(values) if values.ndim == 1 else values


def rotation_of(orientation: Any) -> np.ndarray:
    """The rotation matrix (3, 3), body to space, of a unit quaternion, scalar first."""
    w, (x, y, z) = orientation[0], orientation[1:]
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * skew + 2 * skew @ skew
