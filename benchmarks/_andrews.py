"""Andrews' squeezer in its seven angles: the problem of the Test Set for IVP Solvers."""

import jax  # noqa: I001 (the sorter would give each constant a line of its own)
import jax.numpy as jnp
import numpy as np
from _ivp import Problem

from rigidjax.problems.andrews import (
    D, DA, DRIVE, E, EA, FA, FREE_LENGTH, INERTIAS, MASSES, RA, RR, SA, SB, SC, SD, SS,
    STIFFNESS, TA, TB, U, UA, UB, XA, XB, XC, YA, YB, YC, ZF, ZT,
)  # fmt: skip

ANGLES = np.array(
    [-0.0617138900142764496358948458001, 0.0, 0.455279819163070380255912382449,
     0.222668390165885884674473185609, 0.487364979543842550225598953530,
     -0.222668390165885884674473185609, 1.23054744454982119249735015568]
)  # fmt: skip
ACCELERATIONS = np.array([14222.443919954114, -10666.832939965585, 0.0, 0.0, 0.0, 0.0, 0.0])
MULTIPLIERS = np.array([98.56687039624109, -6.122688344255662, 0.0, 0.0, 0.0, 0.0])

# Reference at t = 0.03: Radau5 of this package at index 2 and tolerance 1e-12, with accelerations
# and multipliers from linear equations. At tolerance 2e-13, angles differ by 1e-13 and rates by
# 4e-11. The angles of the test set (PSIDE, tolerance 1e-14) differ by 9e-11, its accelerations by
# 1e-6.
END = np.array(
    [
        15.810771195153144, -15.756371058411132, 0.04082224011964822, -0.5347301163420785,
        0.5244099658799559, 0.534730116342078, 1.0480807410419353, 1139.9203022590866,
        -1424.3792951775267, 11.032911910457221, 19.293374104749848, 0.5735699148211063,
        -19.29337410474984, 0.3231791492444763, -24631.76312231224, 51850.31963559381,
        324102.60070759105, 566749.4220010175, 16743.635418348975, -566749.4220010173,
        9826.507801536916, 199.17534810454293, -29.755309974928863, 23.066543611623008,
        31.45272527577743, 22.642494786395392, 11.617392352603403,
    ]
)  # fmt: skip


def momenta(q, v):
    """Return the mass matrix times `v`, shape (7,)."""
    m, inertia = MASSES, INERTIAS
    _, theta, _, phi, _, omega, _ = q
    e, f = E - EA, ZF - FA
    sin_phi, sin_omega = jnp.sin(phi), jnp.sin(omega)
    crank = m[1] * (DA**2 - DA * RR * jnp.cos(theta)) + inertia[1]
    left = m[3] * (e**2 + ZT * e * sin_phi) + inertia[3]
    right = m[5] * (f**2 - U * f * sin_omega) + inertia[5]
    diagonal = [
        m[0] * RA**2
        + m[1] * (RR**2 - 2 * DA * RR * jnp.cos(theta) + DA**2)
        + inertia[0]
        + inertia[1],
        m[1] * DA**2 + inertia[1],
        m[2] * (SA**2 + SB**2) + inertia[2],
        m[3] * e**2 + inertia[3],
        m[3] * (ZT**2 + 2 * ZT * e * sin_phi + e**2)
        + m[4] * (TA**2 + TB**2)
        + inertia[3]
        + inertia[4],
        m[5] * f**2 + inertia[5],
        m[5] * (f**2 - 2 * U * f * sin_omega + U**2)
        + m[6] * (UA**2 + UB**2)
        + inertia[5]
        + inertia[6],
    ]
    across = [crank * v[1], crank * v[0], 0.0, left * v[4], left * v[3], right * v[6], right * v[5]]
    return jnp.stack([d * x + y for d, x, y in zip(diagonal, v, across, strict=True)])


def forces(q, v):
    """Return the motor moment, the spring force and the terms quadratic in the rates, shape (7,), N
    m.
    """
    m = MASSES
    _, theta, gamma, phi, _, omega, _ = q
    beta_, theta_, _, phi_, delta_, omega_, epsilon_ = v
    s, c = jnp.sin(gamma), jnp.cos(gamma)
    across = jnp.stack([SD * c + SC * s + XB - XC, SD * s - SC * c + YB - YC])
    length = jnp.sqrt(jnp.sum(across**2))
    pull = -STIFFNESS * (length - FREE_LENGTH) / length * across
    e, f = E - EA, ZF - FA
    return jnp.stack(
        [
            DRIVE - m[1] * DA * RR * theta_ * (theta_ + 2 * beta_) * jnp.sin(theta),
            m[1] * DA * RR * beta_**2 * jnp.sin(theta),
            pull[0] * (SC * c - SD * s) + pull[1] * (SD * c + SC * s),
            m[3] * ZT * e * delta_**2 * jnp.cos(phi),
            -m[3] * ZT * e * phi_ * (phi_ + 2 * delta_) * jnp.cos(phi),
            -m[5] * U * f * epsilon_**2 * jnp.cos(omega),
            m[5] * U * f * omega_ * (omega_ + 2 * epsilon_) * jnp.cos(omega),
        ]
    )


def closure(q):
    """Return the constraint violations of the three paths to the point E, shape (6,), m."""
    beta, theta, gamma, phi, delta, omega, epsilon = q
    sin, cos = jnp.sin, jnp.cos
    x = RR * cos(beta) - D * cos(beta + theta)
    y = RR * sin(beta) - D * sin(beta + theta)
    return jnp.stack(
        [
            x - SS * sin(gamma) - XB,
            y + SS * cos(gamma) - YB,
            x - E * sin(phi + delta) - ZT * cos(delta) - XA,
            y + E * cos(phi + delta) - ZT * sin(delta) - YA,
            x - ZF * cos(omega + epsilon) - U * sin(epsilon) - XA,
            y - ZF * sin(omega + epsilon) + U * cos(epsilon) - YA,
        ]
    )


def level(index, q, v, w):
    """Return the constraint (6,) or its time derivative of order 3 - `index`."""
    if index == 3:
        return closure(q)

    def rate(q, v):
        return jax.jvp(closure, (q,), (v,))[1]

    if index == 2:
        return rate(q, v)
    return jax.jvp(rate, (q, v), (v, w))[1]


def andrews(index: int) -> Problem:
    """Return the problem with 27 unknowns (angles, rates, accelerations, multipliers) at index 1, 2
    or 3.
    """

    def field(t, y):
        q, v, w, lam = y[:7], y[7:14], y[14:21], y[21:]
        _, pulled = jax.vjp(closure, q)
        balance = momenta(q, w) - forces(q, v) + pulled(lam)[0]
        return jnp.concatenate([v, w, balance, level(index, q, v, w)])

    indices = {1: None, 2: (1,) * 14 + (2,) * 13, 3: (1,) * 7 + (2,) * 7 + (3,) * 13}[index]
    return Problem(
        f"Andrews, index {index}",
        field,
        np.concatenate([ANGLES, np.zeros(7), ACCELERATIONS, MULTIPLIERS]),
        0.03,
        END,
        "computed here, angles within 9e-11 of the Test Set for IVP Solvers",
        mass=np.array([1.0] * 14 + [0.0] * 13),
        index=indices,
        rates=tuple((i, i + 7) for i in range(14)),
    )
