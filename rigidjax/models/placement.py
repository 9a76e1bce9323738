"""Rigid placements of frames, by NumPy."""

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..bodies import Body


class Placement(NamedTuple):
    """Origin and axes of a frame in another: `position`, (3,) m; `rotation`, (3, 3)."""

    position: np.ndarray
    rotation: np.ndarray

    def then(self, other: "Placement") -> "Placement":
        """Return the placement of a frame that is given in this one."""
        return Placement(
            self.position + self.rotation @ other.position, self.rotation @ other.rotation
        )

    def inverse(self) -> "Placement":
        """Return the placement of the outer frame in this one."""
        return Placement(-self.rotation.T @ self.position, self.rotation.T)

    def of_point(self, point: np.ndarray) -> np.ndarray:
        """Return a point of this frame in the outer one."""
        return self.position + self.rotation @ point

    @property
    def quaternion(self) -> np.ndarray:
        """Unit quaternion (4,), scalar first, of the rotation."""
        return Rotation.from_matrix(self.rotation).as_quat(canonical=True, scalar_first=True)


IDENTITY = Placement(np.zeros(3), np.eye(3))


def from_roll_pitch_yaw(position: np.ndarray, angles: np.ndarray) -> Placement:
    """Return the placement with rotation Rz(yaw) Ry(pitch) Rx(roll), angles in rad."""
    r, p, y = angles
    (cr, cp, cy), (sr, sp, sy) = np.cos([r, p, y]), np.sin([r, p, y])
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return Placement(np.asarray(position, float), rotation)


def roll_pitch_yaw(rotation: np.ndarray) -> np.ndarray:
    """Return angles, (3,) rad, of a rotation Rz(yaw) Ry(pitch) Rx(roll), accurate at any pitch."""
    R = rotation
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    # Angles of the rotation that is left after the yaw; at a pitch of pi/2 any yaw will do.
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def from_quaternion(position: np.ndarray, quaternion: np.ndarray) -> Placement:
    """Return the placement of a quaternion (4,), scalar first, of any length."""
    rotation = Rotation.from_quat(quaternion, scalar_first=True).as_matrix()
    return Placement(np.asarray(position, float), rotation)


def placement_of(part: Any) -> Placement:
    """Return the placement of a body of a system in space, or of a frame on its body."""
    position = part.position if isinstance(part, Body) else part.point
    return from_quaternion(np.asarray(position), np.asarray(part.orientation))


def about_axis(point: np.ndarray, axis: np.ndarray, angle: float) -> Placement:
    """Return the placement that a rotation about an axis through a point gives to a frame."""
    rotation = Rotation.from_rotvec(axis * angle).as_matrix()
    return Placement(point - rotation @ point, rotation)
