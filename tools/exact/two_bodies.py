r"""Integration of Lang's Example C in decimal digits beyond those of a float64.

    python -m tools.exact.two_bodies

recomputes the end states in `tools/exact/references.py`. `integrate` solves the
Newton-Euler equations of both bodies, in which a linear 3x3 system determines the force in the ball
joint, by extrapolation of the modified midpoint rule (Gragg, Bulirsch, Stoer). It shares no code
with the solvers of the package.
"""

from typing import Any

import mpmath

from rigidjax.problems.two_bodies import ARMS, INERTIA, MASSES, RATES, STIFFNESS

from .references import ENDS, SystemEndState

# The divisor of the initial angular velocities, and the end time (s).
ARGUMENTS = {"two_bodies": (1, "0.5"), "two_bodies_slow": (10, "4")}


def integrate(
    slower: int,
    t1: str,
    *,
    inertia: tuple[Any, ...] = INERTIA,
    stiffness: Any = STIFFNESS,
    digits: int = 45,
    columns: int = 16,
    output_digits: int = 25,
) -> SystemEndState:
    """Integrate Example C.

    All data are decimal; the initial orientation is a rotation by pi/3 about the first axis.

    **Arguments:** `slower`, the divisor of the initial angular velocities; `t1`, s; `inertia` of
    each body, kg m^2, and `stiffness` of the spring, N/m, numbers or decimal strings; `digits`,
    decimal digits of the arithmetic, ten more than those of the tolerance of a step; `columns` of
    the extrapolation, half its order; `output_digits`, significant digits of the result.
    **Returns:** the state at `t1`.
    """
    with mpmath.workdps(digits):
        mpf = lambda x: mpmath.mpf(str(x))  # noqa: E731
        data = (
            [mpf(x) for x in inertia],
            [mpf(x) for x in MASSES],
            [[mpf(x) for x in arm] for arm in ARMS],
            mpf(stiffness),
        )
        half, zero = mpmath.pi / 6, mpf(0)
        turn = [mpmath.cos(half), mpmath.sin(half), zero, zero]
        rates = [mpf(x) / slower for body in RATES for x in body]
        y = [zero] * 6 + turn + turn + rates
        t, end, h = zero, mpf(t1), mpf("0.001")
        tolerance = mpf(10) ** (10 - digits)
        while t < end:
            h = min(h, end - t)
            new, error = _extrapolate(y, h, data, columns)
            if error <= tolerance:
                t, y = (end if h == end - t else t + h), new
            exponent = mpf(1) / (2 * columns - 1)
            h = h * min(mpf(2), max(mpf("0.2"), mpf("0.85") * (tolerance / error) ** exponent))
        x, v, p, w = _motion(y, data)
        text = lambda rows: tuple(  # noqa: E731
            tuple(mpmath.nstr(value, output_digits) for value in row) for row in rows
        )
        return SystemEndState(text(x), text(p), text(v), text(w))


def _extrapolate(y: list[Any], h: Any, data: Any, columns: int) -> tuple[list[Any], Any]:
    """Extrapolate midpoint rules of 2, 4, ..., 2 `columns` parts; return the step and its error."""
    previous: list[Any] = []
    start = _rate(y, data)
    for j in range(1, columns + 1):
        row = [_midpoint(y, start, h, 2 * j, data)]
        for k in range(1, j):
            factor = 1 / (h * 0 + j) ** 2 * (j - k) ** 2
            row.append(
                [
                    new + (new - old) * factor / (1 - factor)
                    for new, old in zip(row[k - 1], previous[k - 1], strict=True)
                ]
            )
        previous = row
    error = max(abs(a - b) for a, b in zip(previous[-1], previous[-2], strict=True))
    return previous[-1], error


def _midpoint(y: list[Any], start: list[Any], h: Any, parts: int, data: Any) -> list[Any]:
    step = h / parts
    before, now = y, [a + step * b for a, b in zip(y, start, strict=True)]
    for _ in range(parts - 1):
        rate = _rate(now, data)
        before, now = now, [a + 2 * step * b for a, b in zip(before, rate, strict=True)]
    return now


def _rate(y: list[Any], data: Any) -> list[Any]:
    """Return the rates of x1, v1, p1, p2, Omega1, Omega2."""
    inertia, (m1, m2), arms, stiffness = data
    x, v, p, w = y[:3], y[3:6], (y[6:10], y[10:14]), (y[14:17], y[17:20])
    R = [_matrix(q) for q in p]
    momenta = [[i * s for i, s in zip(inertia, spin, strict=True)] for spin in w]
    gyro = [_cross(spin, momentum) for spin, momentum in zip(w, momenta, strict=True)]
    # Acceleration of the joint point of each body without the joint force, space components.
    free = []
    for k in range(2):
        turned = _cross([-g / i for g, i in zip(gyro[k], inertia, strict=True)], arms[k])
        pulled = _cross(w[k], _cross(w[k], arms[k]))
        free.append(_multiply(R[k], [a + b for a, b in zip(turned, pulled, strict=True)]))
    spring = [-stiffness * a for a in x]
    free[0] = [a + f / m1 for a, f in zip(free[0], spring, strict=True)]
    # The force `lam` acts on body 1, its opposite on body 2.
    mobility = [[(1 / m1 + 1 / m2) * (i == j) for j in range(3)] for i in range(3)]
    for k in range(2):
        block = _mobility(R[k], inertia, arms[k])
        mobility = [[a + b for a, b in zip(*rows, strict=True)]
                    for rows in zip(mobility, block, strict=True)]  # fmt: skip
    lam = _solve(mobility, [b - a for a, b in zip(*free, strict=True)])
    spins = []
    for k, sign in ((0, 1), (1, -1)):
        moment = _cross(arms[k], _multiply_transposed(R[k], lam))
        spins += [(sign * m - g) / i for m, g, i in zip(moment, gyro[k], inertia, strict=True)]
    acceleration = [(f + force) / m1 for f, force in zip(spring, lam, strict=True)]
    return v + acceleration + _quaternion_rate(p[0], w[0]) + _quaternion_rate(p[1], w[1]) + spins


def _motion(y: list[Any], data: Any) -> tuple[Any, Any, Any, Any]:
    """Return positions, velocities, quaternions and angular velocities of both bodies."""
    arms = data[2]
    x1, v1, p, w = y[:3], y[3:6], (y[6:10], y[10:14]), (y[14:17], y[17:20])
    R = [_matrix(q) for q in p]
    arm = [_multiply(R[k], arms[k]) for k in range(2)]
    swing = [_multiply(R[k], _cross(w[k], arms[k])) for k in range(2)]
    x2 = [x + a - b for x, a, b in zip(x1, *arm, strict=True)]
    v2 = [v + a - b for v, a, b in zip(v1, *swing, strict=True)]
    return (x1, x2), (v1, v2), p, w


def _mobility(R: list[list[Any]], inertia: list[Any], arm: list[Any]) -> list[list[Any]]:
    """Return -R a I^-1 a R^T, the rotational part of the mobility of the joint point."""
    columns = []
    for j in range(3):
        moment = _cross(arm, [R[j][i] for i in range(3)])
        turned = [m / i for m, i in zip(moment, inertia, strict=True)]
        columns.append(_multiply(R, _cross(turned, arm)))
    return [[columns[j][i] for j in range(3)] for i in range(3)]


def _cross(a: list[Any], b: list[Any]) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _multiply(R: list[list[Any]], v: list[Any]) -> list[Any]:
    return [R[i][0] * v[0] + R[i][1] * v[1] + R[i][2] * v[2] for i in range(3)]


def _multiply_transposed(R: list[list[Any]], v: list[Any]) -> list[Any]:
    return [R[0][i] * v[0] + R[1][i] * v[1] + R[2][i] * v[2] for i in range(3)]


def _matrix(p: list[Any]) -> list[list[Any]]:
    a, b, c, d = p
    return [
        [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
    ]


def _quaternion_rate(p: list[Any], w: list[Any]) -> list[Any]:
    a, b, c, d = p
    x, y, z = (s / 2 for s in w)
    return [
        -b * x - c * y - d * z,
        a * x + c * z - d * y,
        a * y + d * x - b * z,
        a * z + b * y - c * x,
    ]


def _solve(A: list[list[Any]], b: list[Any]) -> list[Any]:
    """Solve a linear 3x3 system by Cramer's rule."""
    columns = [[A[i][j] for i in range(3)] for j in range(3)]
    dot = lambda u, v: u[0] * v[0] + u[1] * v[1] + u[2] * v[2]  # noqa: E731
    c0, c1, c2 = columns
    volume = dot(c0, _cross(c1, c2))
    return [
        dot(b, _cross(c1, c2)) / volume,
        dot(c0, _cross(b, c2)) / volume,
        dot(c0, _cross(c1, b)) / volume,
    ]


def main() -> None:
    """Recompute every stored end state in two ways and print which digits differ."""
    for name, (slower, t1) in ARGUMENTS.items():
        recomputed = integrate(slower, t1), integrate(slower, t1, digits=53, columns=20)
        confirmed = recomputed == (ENDS[name], ENDS[name])
        print(name, "confirmed" if confirmed else f"differs: {recomputed}")


if __name__ == "__main__":
    main()
