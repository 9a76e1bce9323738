"""An independent reference: Euler's equations and the quaternion by SciPy's DOP853, rtol 1e-12."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation


def rotation_matrix(p):
    return Rotation.from_quat(np.roll(np.asarray(p), -1, axis=-1)).as_matrix()


def quaternion_rate(p, w):
    """Return the rate of a quaternion `p`, scalar first, by rates `w` in body components."""
    return 0.5 * np.array(
        [
            -p[1] * w[0] - p[2] * w[1] - p[3] * w[2],
            p[0] * w[0] + p[2] * w[2] - p[3] * w[1],
            p[0] * w[1] + p[3] * w[0] - p[1] * w[2],
            p[0] * w[2] + p[1] * w[1] - p[2] * w[0],
        ]
    )


def rigid_body(inertia, moment, p0, omega0, ts):
    """Rotation matrices (T, 3, 3) and angular velocities (T, 3) at the times `ts`, from `ts[0]`.

    `moment(t, R, omega)` is a NumPy function, in body components as `omega`.
    """
    I = np.diag(inertia) if np.ndim(inertia) == 1 else np.asarray(inertia)
    inverse = np.linalg.inv(I)

    def field(t, y):
        p, w = y[:4] / np.linalg.norm(y[:4]), y[4:]
        torque = moment(t, rotation_matrix(p), w) - np.cross(w, I @ w)
        return np.concatenate([quaternion_rate(p, w), inverse @ torque])

    y0 = np.concatenate([p0, omega0])
    solution = solve_ivp(
        field, (ts[0], ts[-1]), y0, method="DOP853", t_eval=ts, rtol=1e-12, atol=1e-13
    )
    assert solution.success
    return rotation_matrix(solution.y[:4].T), solution.y[4:].T


def heavy_top_derivatives(inertia, weight_moment, p0, omega0, t1, step=1e-30):
    """Derivatives of (R, Omega) at `t1`, shape (12, 6), with respect to moments and start rates.

    By complex steps through DOP853, which have no round-off and no truncation. The control of the
    step size does not see the imaginary parts: small steps are prescribed.
    """

    def euler_map(p):
        a, b, c, d = p
        n = a * a + b * b + c * c + d * d
        rows = [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
        return np.array(rows) / n

    def field(t, y, I):
        p, w = y[:4], y[4:]
        R = euler_map(p)
        moment = weight_moment * np.array([R[2, 1], -R[2, 0], 0.0])
        return np.concatenate([quaternion_rate(p, w), (moment - np.cross(w, I * w)) / I])

    theta, columns = np.concatenate([inertia, omega0]).astype(complex), []
    for direction in np.eye(6):
        I, w0 = np.split(theta + 1j * step * direction, 2)
        solution = solve_ivp(
            field, (0.0, t1), np.concatenate([p0, w0]), args=(I,), method="DOP853",
            rtol=1e-13, atol=1e-14, max_step=0.02,
        )  # fmt: skip
        assert solution.success
        y = solution.y[:, -1]
        columns.append(np.concatenate([euler_map(y[:4]).ravel(), y[4:]]).imag / step)
    return np.stack(columns, axis=1)
