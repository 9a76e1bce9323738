"""Kinematics of mechanisms with loops, by NumPy."""

import numpy as np
from scipy.spatial.transform import Rotation

from .description import IDENTITY, CouplingData, Description, JointRecord, Placement
from .joint_graph import order_after_leaders

# Violations that are rounding, relative to the size of the mechanism (at least 1 m).
_ROUNDING = 64 * np.finfo(float).eps
# Singular values of the constraints below this part of the largest belong to redundant ones.
_RANK = 1e-10
_ITERATIONS = 100
# Shortest step, as a part of the full one, and largest violation (m or rad), of an iteration.
_SHORTEST = 1e-6
_LARGEST = 1e6
_TURNING = ("spherical", "floating")


class LoopKinematics:
    """Kinematics of the trees of a description and constraints of its loops, by NumPy.

    Displacements of links are rigid motions of space from the reference configuration of the file.
    Twists are velocity of the point at the origin and angular velocity, space components.
    """

    def __init__(self, description: Description):
        self.description = description
        above = {joint.child: joint for joint in description.joints if not joint.closes_loop}
        links = order_after_leaders({child: joint.parent for child, joint in above.items()})
        self.joints = [above[link] for link in links if link in above]
        self.loops = [
            joint for joint in description.joints if joint.closes_loop and joint.kind != "floating"
        ]
        self.columns: dict[str, slice] = {}
        self.size = 0
        for joint in self.joints:
            count = 0 if joint.stays else len(_elements(joint)) + 3 * (joint.kind in _TURNING)
            self.columns[joint.name] = slice(self.size, self.size + count)
            self.size += count
        for coupling in description.couplings:
            for name in (coupling.joint, coupling.by):
                columns = self.columns.get(name, slice(0, 0))
                if columns.stop - columns.start != 1:
                    raise ValueError(
                        f"{description.report.path}:{coupling.line}: the joint {name!r} of a "
                        "coupling closes a loop or has several coordinates; loops of such a "
                        "mechanism cannot be closed."
                    )
        points = [joint.point for joint in description.joints]
        extent = np.abs(np.array(points) - points[0]).max()
        self.tolerance = _ROUNDING * max(1.0, float(extent))

    def displacements(self, q: np.ndarray) -> tuple[dict[str, Placement], dict[str, np.ndarray]]:
        """Return displacements of links and their twists per rate of each coordinate, (6, n)."""
        links = ["ground", *(link.name for link in self.description.links)]
        at = dict.fromkeys(links, IDENTITY)
        twists = dict.fromkeys(links, np.zeros((6, self.size)))
        for joint in self.joints:
            columns, parent = self.columns[joint.name], at[joint.parent]
            at[joint.child], twists[joint.child] = parent, twists[joint.parent]
            if not joint.stays:
                own, of_joint = _motion(joint, q[columns])
                at[joint.child] = parent.then(own)
                twists[joint.child] = twists[joint.parent].copy()
                twists[joint.child][:, columns] = _transform(parent, of_joint)
        return at, twists

    def constraints(self, q: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the violations of all loops and couplings, and their Jacobians."""
        at, twists = self.displacements(q)
        values, jacobians = [], []
        for joint in self.loops:
            value, by_twist = _loop(joint, self._displacement_of_child(joint, at))
            relative = twists[joint.child] - twists[joint.parent]
            values.append(value)
            jacobians.append(by_twist @ _transform(at[joint.parent].inverse(), relative))
        for coupling in self.description.couplings:
            row = np.zeros((1, self.size))
            row[0, self.columns[coupling.joint]] = 1.0
            driven, by = (q[self.columns[name]] for name in (coupling.joint, coupling.by))
            row[0, self.columns[coupling.by]] = -coupling.polynomial.deriv()(by)
            values.append(driven - coupling.polynomial(by))
            jacobians.append(row)
        return values, jacobians

    def _displacement_of_child(self, joint: JointRecord, at: dict[str, Placement]) -> Placement:
        """Return the displacement of a closing joint's child side from its parent's."""
        gap = IDENTITY if joint.gap is None else joint.gap
        return at[joint.parent].inverse().then(at[joint.child]).then(gap)

    def violation(self, q: np.ndarray) -> float:
        """Return the largest violation, m or rad."""
        return float(np.abs(np.concatenate(self.constraints(q)[0])).max())

    def solve(self) -> np.ndarray:
        """Return the closed coordinates of least norm, by successive quadratic programs.

        Where no step makes the violation smaller, they are not closed; see `check`.
        """
        q, now = np.zeros(self.size), 0.0
        for _ in range(_ITERATIONS):
            r, J = (np.concatenate(parts) for parts in self.constraints(q))
            now = np.abs(r).max()
            if now > _LARGEST:
                break
            step = full = np.linalg.lstsq(J, J @ q - r, rcond=_RANK)[0] - q
            # The step reduces the violation to first order; far from the solution only in part.
            while (
                now > 1e-6
                and np.abs(step).max() >= max(1e-9, _SHORTEST * np.abs(full).max())
                and self.violation(q + step) >= now
            ):
                step = 0.5 * step
            if np.abs(step).max() < _SHORTEST * np.abs(full).max():
                break
            q = q + step
            if np.abs(full).max() <= 1e-10 and now <= 1e-10:
                break
        for _ in range(5 if now <= _LARGEST else 0):
            r, J = (np.concatenate(parts) for parts in self.constraints(q))
            q = q - np.linalg.lstsq(J, r, rcond=_RANK)[0]
        return q

    def check(self, q: np.ndarray) -> None:
        """Raise `ValueError` for loops that coordinates do not close."""
        sizes = [np.abs(value).max(initial=0.0) for value in self.constraints(q)[0]]
        worst = int(np.argmax(sizes))
        path = self.description.report.path
        records: list[JointRecord | CouplingData] = [*self.loops, *self.description.couplings]
        record = records[worst]
        if sizes[worst] > 16 * self.tolerance:
            name = record.name if isinstance(record, JointRecord) else record.joint
            before = np.abs(self.constraints(np.zeros(self.size))[0][worst]).max()
            raise ValueError(
                f"{path}:{record.line}: the joint {name!r} does not close: its sides are "
                f"{before:.3g} m or rad apart in the file, and no motion of the other joints was "
                f"found that brings them closer than {sizes[worst]:.3g} m or rad."
            )
        at, _ = self.displacements(q)
        for joint in self.loops:
            apart = self._displacement_of_child(joint, at).rotation
            turns = joint.kind in ("revolute", "cylindrical", "screw", "planar")
            if turns and joint.axes[0] @ apart @ joint.axes[0] < 0:
                raise ValueError(
                    f"{path}:{joint.line}: the joint {joint.name!r} does not close: the nearest "
                    "configuration that was found has its sides turned by half a revolution."
                )


def _basis(axis: np.ndarray) -> np.ndarray:
    """Return two unit vectors perpendicular to an axis and each other, shape (2, 3)."""
    return np.linalg.svd(axis[None])[2][1:]


def _elements(joint: JointRecord) -> list[tuple[np.ndarray, float, float]]:
    """Return the successive motions of a joint: axis, rotation and advance per unit coordinate."""
    axes = joint.axes
    if joint.kind in ("revolute", "universal"):
        return [(axis, 1.0, 0.0) for axis in axes]
    if joint.kind == "prismatic":
        return [(axes[0], 0.0, 1.0)]
    if joint.kind == "cylindrical":
        return [(axes[0], 0.0, 1.0), (axes[0], 1.0, 0.0)]
    if joint.kind == "screw":
        return [(axes[0], 1.0, joint.pitch / (2 * np.pi))]
    if joint.kind == "planar":
        return [*((axis, 0.0, 1.0) for axis in _basis(axes[0])), (axes[0], 1.0, 0.0)]
    if joint.kind == "floating":
        return [(axis, 0.0, 1.0) for axis in np.eye(3)]
    return []


def _motion(joint: JointRecord, q: np.ndarray) -> tuple[Placement, np.ndarray]:
    """Return the displacement of the child by a joint, and the twist per coordinate, (6, k)."""
    at, twists = IDENTITY, []
    elements = _elements(joint)
    for value, (axis, turn, advance) in zip(q[: len(elements)], elements, strict=True):
        own = np.concatenate([advance * axis + np.cross(joint.point, turn * axis), turn * axis])
        twists.append(_transform(at, own[:, None]))
        at = at.then(_rotation(joint.point, turn * value * axis, advance * value * axis))
    if joint.kind in _TURNING:
        vector = q[-3:]
        # Angular velocity per rate of the rotation vector.
        omega = np.linalg.inv(_rate_of_rotation_vector(vector))
        own = np.concatenate([np.cross(joint.point, omega.T).T, omega])
        twists.append(_transform(at, own))
        at = at.then(_rotation(joint.point, vector, np.zeros(3)))
    return at, np.concatenate(twists, axis=1) if twists else np.zeros((6, 0))


def _rotation(point: np.ndarray, vector: np.ndarray, shift: np.ndarray) -> Placement:
    """Return the displacement by a rotation vector about a point, then by a shift."""
    rotation = Rotation.from_rotvec(vector).as_matrix()
    return Placement(point - rotation @ point + shift, rotation)


def _transform(placement: Placement, twists: np.ndarray) -> np.ndarray:
    """Return twists (6, n) in the outer space of a displacement."""
    omega = placement.rotation @ twists[3:]
    v = placement.rotation @ twists[:3] + np.cross(placement.position, omega.T).T
    return np.concatenate([v, omega])


def _rate_of_rotation_vector(vector: np.ndarray) -> np.ndarray:
    """Return the Jacobian of a rotation vector's rate in the angular velocity, space components."""
    angle = float(np.linalg.norm(vector))
    hat = np.cross(vector, np.eye(3)).T
    # (1 - (angle / 2) / tan(angle / 2)) / angle^2.
    if angle < 1e-3:
        factor = 1 / 12 + angle**2 / 720
    else:
        factor = (1 - 0.5 * angle / np.tan(0.5 * angle)) / angle**2
    return np.eye(3) - 0.5 * hat + factor * hat @ hat


def _loop(joint: JointRecord, apart: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Return the violation of a closing joint, and its Jacobian in the relative twist.

    `apart`, displacement of the child's side from the parent's, in the reference configuration.
    """
    moved, Q = apart.of_point(joint.point), apart.rotation
    point = moved - joint.point
    # Derivatives with respect to the twist (v, omega): v + omega x moved, and omega x (Q b).
    of_point = np.concatenate([np.eye(3), -np.cross(moved, np.eye(3)).T], axis=1)
    turning = Rotation.from_matrix(Q).as_rotvec()
    of_turning = np.concatenate([np.zeros((3, 3)), _rate_of_rotation_vector(turning)], axis=1)

    def along(fixed: np.ndarray, moving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turned = Q @ moving
        of = np.concatenate([np.zeros((len(fixed), 3)), np.cross(turned, fixed)], axis=1)
        return fixed @ turned, of

    kind, axes = joint.kind, joint.axes
    across = _basis(axes[0]) if axes else np.zeros((0, 3))
    rows = {"prismatic": across, "cylindrical": across, "screw": across}.get(kind, np.eye(3))
    if kind == "planar":
        rows = axes[0][None]
    parts = [(rows @ point, rows @ of_point)]
    if kind in ("fixed", "prismatic"):
        parts.append((turning, of_turning))
    elif kind == "universal":
        parts.append(along(axes[0][None], axes[1]))
    elif kind != "spherical":
        parts.append(along(across, axes[0]))
    if kind == "screw":
        per_angle = joint.pitch / (2 * np.pi)
        sine = 0.5 * np.array([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]]) @ axes[0]
        angle = np.arctan2(2 * sine, np.trace(Q) - 1)
        of_angle = np.concatenate([np.zeros(3), axes[0]])
        advance = axes[0] @ point - per_angle * angle
        parts.append((advance[None], (axes[0] @ of_point - per_angle * of_angle)[None]))
    return np.concatenate([p for p, _ in parts]), np.concatenate([d for _, d in parts])
