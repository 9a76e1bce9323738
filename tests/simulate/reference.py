"""An independent program: Euler's equations and the quaternion by SciPy's DOP853, rtol 1e-12."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation


def rotation_matrix(p):
    return Rotation.from_quat(np.roll(np.asarray(p), -1, axis=-1)).as_matrix()


def rigid_body(inertia, moment, p0, omega0, ts):
    """Rotation matrices (T, 3, 3) and angular velocities (T, 3) at the times `ts`, from `ts[0]`.

    `moment(t, R, omega)` is a NumPy function, in body components as `omega`.
    """
    I = np.diag(inertia) if np.ndim(inertia) == 1 else np.asarray(inertia)
    inverse = np.linalg.inv(I)

    def field(t, y):
        p, w = y[:4] / np.linalg.norm(y[:4]), y[4:]
        p_dot = 0.5 * np.array(
            [
                -p[1] * w[0] - p[2] * w[1] - p[3] * w[2],
                p[0] * w[0] + p[2] * w[2] - p[3] * w[1],
                p[0] * w[1] + p[3] * w[0] - p[1] * w[2],
                p[0] * w[2] + p[1] * w[1] - p[2] * w[0],
            ]
        )
        torque = moment(t, rotation_matrix(p), w) - np.cross(w, I @ w)
        return np.concatenate([p_dot, inverse @ torque])

    y0 = np.concatenate([p0, omega0])
    solution = solve_ivp(
        field, (ts[0], ts[-1]), y0, method="DOP853", t_eval=ts, rtol=1e-12, atol=1e-13
    )
    assert solution.success
    return rotation_matrix(solution.y[:4].T), solution.y[4:].T
