"""Andrews' squeezing mechanism: benchmark A03."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..bodies import Body
from ..forces import Spring, Torque
from ..joints import Revolute
from ..mechanics import System
from .linkages import turn_about_third_axis
from .problem import Problem

# Lengths, m, with the names of the test set.
XA, YA, XB, YB, XC, YC = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
D, DA, E, EA, RR, RA = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
SS, SA, SB, SC, SD = 0.035, 0.01874, 0.01043, 0.018, 0.02
ZT, TA, TB, U, UA, UB, ZF, FA = 0.04, 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.01421
MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.0705, 0.00706, 0.05498)
INERTIAS = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
STIFFNESS, FREE_LENGTH, DRIVE = 4530.0, 0.07785, 0.033

_AXIS = (0.0, 0.0, 1.0)


class PlanarConfiguration(NamedTuple):
    """Configuration of the mechanism in its plane.

    **Attributes:** `centers` of mass of the seven bodies, (7, 2) m; `angles` of the bodies about
    the third axis, (7,) rad; `points` by name, (2,) m.
    """

    centers: np.ndarray
    angles: np.ndarray
    points: dict[str, np.ndarray]


def andrews(beta: float = -0.0620) -> Problem:
    r"""Build Andrews' squeezer: seven bodies in a plane, ten hinges, a spring, a motor; 0.05 s.

    A constant moment of 0.033 N m turns the crank from rest. The bodies are laminae. Their moments
    of inertia about the normal are those of the test set; the moments about in-plane axes, which do
    not affect the motion, are half as large.

    **Arguments:** `beta`, initial angle of the crank, rad; the other angles close the loops.
    **Source:** IFToMM library of computational benchmark problems, A03; the data are those of the
    Test Set for IVP Solvers, whose angle is -0.0617138900142764496.
    """
    configuration = configure(solve_angles(beta))
    bodies = [
        Body(
            f"K{i + 1}",
            MASSES[i],
            (INERTIAS[i] / 2, INERTIAS[i] / 2, INERTIAS[i]),
            (*configuration.centers[i], 0.0),
            turn_about_third_axis(configuration.angles[i]),
        )
        for i in range(7)
    ]
    points = {name: (*point, 0.0) for name, point in configuration.points.items()}
    hinges = (
        ("ground", "K1", "O"),
        ("K1", "K2", "F"),
        ("ground", "K3", "B"),
        ("ground", "K5", "A"),
        ("ground", "K7", "A"),
        ("K5", "K4", "H"),
        ("K7", "K6", "G"),
        ("K2", "K3", "E"),
        ("K3", "K4", "E"),
        ("K3", "K6", "E"),
    )
    joints = [Revolute(a, b, points[point], _AXIS) for a, b, point in hinges]
    forces = [
        Torque("K1", (0.0, 0.0, DRIVE)),
        Spring("ground", "K3", points["C"], points["D"], STIFFNESS, length=FREE_LENGTH),
    ]
    system = System(bodies, joints, forces)
    return Problem(
        "andrews",
        "Andrews' squeezing mechanism",
        system,
        system.reference_state(),
        0.05,
        "IFToMM benchmark A03",
    )


def configure(q: Float[np.ndarray, "7"]) -> PlanarConfiguration:
    r"""Return the configuration at the angles of the test set.

    **Arguments:** `q`, $(\beta, \Theta, \gamma, \Phi, \delta, \Omega, \varepsilon)$, rad.
    """
    beta, theta, gamma, phi, delta, omega, epsilon = q
    angles = np.array([beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon])
    e = [np.array([math.cos(a), math.sin(a)]) for a in angles]
    n = [np.array([-math.sin(a), math.cos(a)]) for a in angles]
    A, B = np.array([XA, YA]), np.array([XB, YB])
    F = RR * e[0]
    H, G = A + ZT * e[4], A - U * n[6]
    centers = [
        RA * e[0],
        F - DA * e[1],
        B - SA * n[2] + SB * e[2],
        H - (E - EA) * n[3],
        A + TA * e[4] + TB * n[4],
        G + (ZF - FA) * e[5],
        A - UA * n[6] - UB * e[6],
    ]
    points = {
        "O": np.zeros(2),
        "A": A,
        "B": B,
        "C": np.array([XC, YC]),
        "D": B - SC * n[2] + SD * e[2],
        "E": F - D * e[1],
        "F": F,
        "G": G,
        "H": H,
    }
    return PlanarConfiguration(np.stack(centers), angles, points)


def gaps(q: Float[np.ndarray, "7"]) -> Float[np.ndarray, "6"]:
    """Return the distances of the points E of K3, K4 and K6 from the point E of K2, (6,) m."""
    configuration = configure(q)
    a = configuration.angles
    n = lambda i: np.array([-math.sin(a[i]), math.cos(a[i])])  # noqa: E731
    e = lambda i: np.array([math.cos(a[i]), math.sin(a[i])])  # noqa: E731
    p = configuration.points
    ends = (p["B"] - SS * n(2), p["H"] - E * n(3), p["G"] + ZF * e(5))
    return np.concatenate([p["E"] - end for end in ends])


def solve_angles(beta: float) -> Float[np.ndarray, "7"]:
    """Return the seven angles that close the loops for a crank angle near the initial one, rad."""
    q = np.array([beta, 0.0, 0.4552798, 0.2226684, 0.4873650, -0.2226684, 1.2305474])
    for _ in range(20):
        g, step = gaps(q), 1e-6
        slopes = [
            (gaps(q + step * row) - gaps(q - step * row)) / (2 * step) for row in np.eye(7)[1:]
        ]
        change = np.linalg.solve(np.stack(slopes, axis=1), g)
        q[1:] -= change
        if np.max(np.abs(change)) < 1e-15:
            break
    if not np.max(np.abs(gaps(q))) < 1e-15:
        raise ValueError(f"`andrews(beta={beta:g})`: the loops cannot be closed at this angle.")
    return q
