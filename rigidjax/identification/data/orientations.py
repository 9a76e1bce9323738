"""Conversion of orientations in files to unit quaternions, scalar first, body to space."""

from collections.abc import Callable

import numpy as np

from ...rotations import EulerAngles

# Deviation of rounded numbers from a rotation that is accepted.
_TOLERANCE = 1e-3


def num_columns(convention: str | None, sensor: str) -> int:
    """Return the number of columns of an orientation in a convention.

    **Arguments:** `convention`: `"wxyz"` or `"xyzw"`, a quaternion with the scalar first or last;
    `"matrix"`, R11, R12, ..., R33, body to space; or an intrinsic Euler sequence such as `"ZYX"`,
    angles in its order. `sensor`, its name, for messages.
    **Errors:** `ValueError` for `None`, which asks for a convention, and for an unknown one.
    """
    if convention is None:
        raise ValueError(
            f"Say how the columns of the {sensor} write an orientation: "
            'orientation="wxyz" or "xyzw" for a quaternion with the scalar first or last, "matrix" '
            'for R11, R12, ..., R33, or an intrinsic Euler sequence such as "ZYX".'
        )
    if convention in ("wxyz", "xyzw"):
        return 4
    if convention == "matrix":
        return 9
    if isinstance(convention, str) and convention.islower() and len(convention) == 3:
        raise ValueError(
            f"The orientation {convention!r} of the {sensor} would be rotations about space axes; "
            f"write the same as the intrinsic sequence {convention[::-1].upper()!r}, with the "
            "columns in reverse."
        )
    try:
        EulerAngles(convention)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"The orientation of the {sensor} must be 'wxyz', 'xyzw', 'matrix', or an intrinsic "
            f"Euler sequence in upper case such as 'ZYX'; got {convention!r}."
        ) from error
    return 3


def as_quaternions(
    values: np.ndarray, convention: str, place: Callable[[int], str], sensor: str
) -> np.ndarray:
    """Return unit quaternions (T, 4), scalar first, of orientations (T, n) in a convention.

    Rows with NaN stay NaN. **Arguments:** `values`, angles in rad; `place(k)`, the location of row
    k.
    **Errors:** `ValueError` for a quaternion that is not of unit length, or a matrix that is not a
    rotation, to within 1e-3.
    """
    # Imported here because it takes long.
    from scipy.spatial.transform import Rotation

    finite = np.isfinite(values).all(axis=1)
    quaternions = np.full((len(values), 4), np.nan)
    rows = values[finite]
    if convention in ("wxyz", "xyzw"):
        converted = rows if convention == "wxyz" else np.roll(rows, 1, axis=1)
        norm = np.linalg.norm(converted, axis=1, keepdims=True)
        wrong, what = np.abs(norm[:, 0] - 1), "a quaternion of unit length"
        converted = converted / np.where(norm > 0, norm, 1.0)
    elif convention == "matrix":
        R = rows.reshape(-1, 3, 3)
        wrong = np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max(axis=(1, 2), initial=0.0)
        wrong, what = np.where(np.linalg.det(R) > 0, wrong, np.inf), "a rotation matrix"
        R = np.where((wrong > _TOLERANCE)[:, None, None], np.eye(3), R)
        converted = Rotation.from_matrix(R).as_quat(scalar_first=True)
    else:
        wrong, what = np.zeros(len(rows)), ""
        converted = Rotation.from_euler(convention, rows).as_quat(scalar_first=True)
    bad = np.flatnonzero(wrong > _TOLERANCE)
    if bad.size:
        k = int(np.flatnonzero(finite)[bad[0]])
        raise ValueError(
            f"{place(k)}: the {sensor} must be {what} to within {_TOLERANCE:g}; got {values[k]} as "
            f"{convention!r}."
        )
    quaternions[finite] = converted
    return quaternions
