"""Stiff and differential-algebraic initial value problems with known end values.

`M y' = f(t, y)`: the right-hand sides accept an array module `xp`, by default `jax.numpy`, so that
every program evaluates the same formulas.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np


class Problem(NamedTuple):
    r"""$M \dot y = f(t, y)$ from `y0` at `t0` to `t1`.

    **Attributes:** `mass`, the diagonal of $M$, or `None` for ones; `index` of each unknown, 0 for
    ordinary differential equations; `rates`, pairs (i, j) with $\dot y_i = y_j$; `floor`, shape
    (n,) or a scalar, the absolute over the relative tolerance; `observe`, a function of the
    unknowns whose result is compared, `None` for the unknowns; `end`, the reference at `t1`;
    `source` of `end`.
    """

    name: str
    field: Callable[[Any, Any], Any]
    y0: np.ndarray
    t1: float
    end: np.ndarray
    source: str
    mass: np.ndarray | None = None
    index: tuple[int, ...] | None = None
    rates: tuple[tuple[int, int], ...] = ()
    floor: Any = 1.0
    t0: float = 0.0
    observe: Callable[[Any], Any] | None = None


def scaled_errors(problem: Problem, y: Any) -> np.ndarray:
    """Return the errors at the end over `floor` + |y|, in units of the relative tolerance, (n,)."""
    seen = np.asarray(y if problem.observe is None else problem.observe(jnp.asarray(y)))
    return np.abs(seen - problem.end) / (problem.floor + np.abs(problem.end))


# Ordinary differential equations.


def van_der_pol(mu: float) -> Problem:
    r"""Return the oscillator in the time t / mu: $\ddot y = \mu^2 ((1 - y^2) \dot y - y)$, with
    stiffness $\mu^2$.
    """
    ends = {
        # Test Set for IVP Solvers.
        1e3: (1.706167732170483, -0.8928097010247975),
        # Radau5 of this package at rtol 1e-11 and 1e-12, which agree to 2e-13; steps shorter than
        # round-off in t keep any program from much less.
        1e6: (1.7055462175353284, -0.8934763625465819),
    }
    return Problem(
        f"van der Pol, {mu:.0e}".replace("e+0", "e"),
        lambda t, y: jnp.stack([y[1], mu**2 * ((1.0 - y[0] ** 2) * y[1] - y[0])]),
        np.array([2.0, 0.0]),
        2.0,
        np.array(ends[mu]),
        "Test Set for IVP Solvers" if mu == 1e3 else "computed here",
        floor=1e-2,
    )


def robertson_rates(y: Any) -> tuple[Any, Any, Any]:
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return -a + b, a - b - c, c


# SciPy's Radau at rtol 1e-12; t = 1e4.
ROBERTSON_END = np.array([0.10730042853796966, 4.800166972579936e-07, 0.8926990914453344])


def robertson() -> Problem:
    """Return Robertson's reactions."""
    return Problem(
        "Robertson",
        lambda t, y: jnp.stack(robertson_rates(y)),
        np.array([1.0, 0.0, 0.0]),
        1e4,
        ROBERTSON_END,
        "SciPy's Radau at rtol 1e-12",
        floor=1e-4,
    )


def robertson_dae() -> Problem:
    """Return Robertson's reactions with the third one replaced by conservation of mass: index 1."""

    def field(t, y):
        a, b, _ = robertson_rates(y)
        return jnp.stack([a, b, jnp.sum(y) - 1.0])

    return robertson()._replace(
        name="Robertson, index 1", field=field, mass=np.array([1.0, 1.0, 0.0])
    )


def hires() -> Problem:
    """Return the high irradiance response of plants, eight reactions."""

    def field(t, y):
        y1, y2, y3, y4, y5, y6, y7, y8 = y
        return jnp.stack(
            [
                -1.71 * y1 + 0.43 * y2 + 8.32 * y3 + 0.0007,
                1.71 * y1 - 8.75 * y2,
                -10.03 * y3 + 0.43 * y4 + 0.035 * y5,
                8.32 * y2 + 1.71 * y3 - 1.12 * y4,
                -1.745 * y5 + 0.43 * y6 + 0.43 * y7,
                -280 * y6 * y8 + 0.69 * y4 + 1.71 * y5 - 0.43 * y6 + 0.69 * y7,
                280 * y6 * y8 - 1.81 * y7,
                -280 * y6 * y8 + 1.81 * y7,
            ]
        )

    end = [
        0.000737131257332532, 0.00014424857263161162, 5.8887297409669355e-05,
        0.001175651343283084, 0.0023863561988303125, 0.006238968252739652,
        0.0028499983951850326, 0.0028500016048149694,
    ]  # fmt: skip
    y0 = np.array([1.0, 0, 0, 0, 0, 0, 0, 0.0057])
    source = "SciPy's Radau at rtol 1e-12"
    return Problem("HIRES", field, y0, 321.8122, np.array(end), source, floor=1e-2)


def akzo() -> Problem:
    """Return the Chemical Akzo Nobel problem: six concentrations, the last one algebraic, index
    1.
    """
    k1, k2, k3, k4, big_k, diffusion, ks, pressure, henry = (
        18.7, 0.58, 0.09, 0.42, 34.4, 3.3, 115.83, 0.9, 737.0
    )  # fmt: skip

    def field(t, y):
        root = jnp.sqrt(y[1])
        r1, r2, r3 = k1 * y[0] ** 4 * root, k2 * y[2] * y[3], k2 / big_k * y[0] * y[4]
        r4, r5 = k3 * y[0] * y[3] ** 2, k4 * y[5] ** 2 * root
        inflow = diffusion * (pressure / henry - y[1])
        return jnp.stack(
            [
                -2.0 * r1 + r2 - r3 - r4,
                -0.5 * r1 - r4 - 0.5 * r5 + inflow,
                r1 - r2 + r3,
                -r2 + r3 - 2.0 * r4,
                r2 - r3 + r5,
                ks * y[0] * y[3] - y[5],
            ]
        )

    end = [
        0.1150794920661702, 0.1203831471567715e-2, 0.1611562887407974, 0.3656156421249283e-3,
        0.1708010885264404e-1, 0.4873531310307455e-2,
    ]  # fmt: skip
    return Problem(
        "Akzo Nobel, index 1",
        field,
        np.array([0.444, 0.00123, 0.0, 0.007, 0.0, ks * 0.444 * 0.007]),
        180.0,
        np.array(end),
        "Test Set for IVP Solvers",
        mass=np.array([1.0] * 5 + [0.0]),
    )


# Mechanical systems with multipliers.

GRAVITY = 9.81
# At t = 3, from the equation of the angle, DOP853 at rtol 1e-13.
PENDULUM_END = np.array(
    [-0.17665178992281566, -0.9842734097378967, -4.325368674538757, 0.7762925533433003,
     14.483583224293097]
)  # fmt: skip


def pendulum(index: int) -> Problem:
    """Return a point mass on a massless link of 1 m, released from the horizontal.

    The unknowns are y = (x, z, x', z', multiplier); at index 0 the multiplier is eliminated.
    """

    def multiplier(y):
        return (y[2] ** 2 + y[3] ** 2 - GRAVITY * y[1]) / (2.0 * (y[0] ** 2 + y[1] ** 2))

    def field(t, y):
        x, z, u, w = y[:4]
        lam = multiplier(y) if index == 0 else y[4]
        rates = [u, w, -2.0 * x * lam, -2.0 * z * lam - GRAVITY]
        level = {
            0: [],
            1: [u * u + w * w - 2.0 * lam * (x * x + z * z) - GRAVITY * z],
            2: [x * u + z * w],
            3: [x * x + z * z - 1.0],
        }[index]
        return jnp.stack(rates + level)

    size = 4 if index == 0 else 5
    return Problem(
        f"pendulum, index {index}",
        field,
        np.array([1.0, 0.0, 0.0, 0.0, 0.0])[:size],
        3.0,
        PENDULUM_END[:size],
        "equation of the angle, SciPy's DOP853 at rtol 1e-13",
        mass=None if index == 0 else np.array([1.0, 1.0, 1.0, 1.0, 0.0]),
        index={0: None, 1: None, 2: (1, 1, 1, 1, 2), 3: (1, 1, 2, 2, 3)}[index],
    )


def arevalo() -> Problem:
    r"""Return a particle on a circle under a tangential force, index 3; $x = \sin t^2, y = \cos
    t^2$.

    **Source:** Arevalo, Lotstedt, BIT 35 (1995).
    """

    def field(t, y):
        x, z, u, w, lam = y
        return jnp.stack([u, w, 2.0 * z + x * lam, -2.0 * x + z * lam, x * x + z * z - 1.0])

    def exact(t):
        s, c = np.sin(t**2), np.cos(t**2)
        return np.array([s, c, 2 * t * c, -2 * t * s, -4 * t**2])

    return Problem(
        "Arevalo, index 3",
        field,
        exact(1.0),
        5.0,
        exact(5.0),
        "closed form",
        mass=np.array([1.0, 1.0, 1.0, 1.0, 0.0]),
        index=(1, 1, 2, 2, 3),
        t0=1.0,
    )


def knife_edge() -> Problem:
    """Return a blade that slides down a slope and turns: a nonholonomic constraint, index 2.

    The unknowns are y = (x, y, angle, their rates, multiplier).

    **Source:** Bloch, Nonholonomic Mechanics and Control, 1.6.
    """
    m, theta, turn, pull = 1.25, 0.13, np.pi / 3, GRAVITY * np.sin(np.pi / 4)

    def field(t, y):
        _, _, angle, u, v, omega, lam = y
        s, c = jnp.sin(angle), jnp.cos(angle)
        forces = [m * pull + s * lam, -c * lam, 0.0 * omega]
        return jnp.stack([u, v, omega, *forces, u * s - v * c])

    def exact(t):
        a = turn * t
        s, c = np.sin(a), np.cos(a)
        x, y = pull / (2 * turn**2) * s**2, pull / (2 * turn**2) * (a - s * c)
        rates = pull / turn * s * c, pull / turn * s**2, turn
        return np.array([x, y, a, *rates, -2 * m * pull * s])

    return Problem(
        "knife edge, index 2",
        field,
        exact(0.0),
        5.0,
        exact(5.0),
        "closed form",
        mass=np.array([1.0, 1.0, 1.0, m, m, theta, 0.0]),
        index=(1,) * 6 + (2,),
    )


def car_axis() -> Problem:
    """Return two wheels on an axis over a bumpy road, index 3: positions, rates, two
    multipliers.
    """
    length, rest, mass, eps, gravity = 1.0, 0.5, 10.0, 1e-2, 1.0
    half = mass * eps**2 / 2

    def field(t, y):
        xl, yl, xr, yr, ul, vl, ur, vr, l1, l2 = y
        yb = 0.1 * jnp.sin(10.0 * t)
        xb = jnp.sqrt(length**2 - yb**2)
        left = jnp.sqrt(xl**2 + yl**2)
        right = jnp.sqrt((xr - xb) ** 2 + (yr - yb) ** 2)
        a, b = (rest - left) / left, (rest - right) / right
        dx, dy = xl - xr, yl - yr
        return jnp.stack(
            [
                ul, vl, ur, vr,
                a * xl + l1 * xb + 2 * l2 * dx,
                a * yl + l1 * yb + 2 * l2 * dy - half * gravity,
                b * (xr - xb) - 2 * l2 * dx,
                b * (yr - yb) - 2 * l2 * dy - half * gravity,
                xb * xl + yb * yl,
                dx**2 + dy**2 - length**2,
            ]
        )  # fmt: skip

    end = [
        0.04934557842754028, 0.49698946023017115, 1.0417425248854215, 0.37391102726536124,
        -0.07705836840409723, 0.007446866587237785, 0.017556815753723223, 0.7703410437792519,
        -0.004736886590848933, -0.0011046803312573436,
    ]  # fmt: skip
    return Problem(
        "car axis, index 3",
        field,
        np.array([0, 0.5, 1, 0.5, -0.5, 0, -0.5, 0, 0, 0]),
        3.0,
        np.array(end),
        "Test Set for IVP Solvers (GAMD, quadruple precision)",
        mass=np.array([1.0] * 4 + [half] * 4 + [0.0] * 2),
        index=(1,) * 4 + (2,) * 4 + (3,) * 2,
    )
