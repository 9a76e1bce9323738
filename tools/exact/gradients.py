r"""Derivatives of a small motion to 30 digits, and the program that they were computed with.

A body turns about a fixed point under a moment that is constant in its axes. The file
`tests/identification/reference_gradients.json` has the derivatives of its quaternion and its
angular velocity at the end with respect to its moments of inertia, the moment and the start rates,
for the exact motion and for steps of QUAT.EM:

- "motion": $p' = \frac12 p\,\Omega$, $J \Omega' = \mu - \Omega \times J\Omega$ by Taylor series;
- "steps": $q_1 - q_0 = \frac h2 q_{1/2} W$, $F J\Omega_1 - F^T J\Omega_0 = h\mu$ with
  $W = \frac12(\Omega_0 + \Omega_1)$ and the half rotation $F$, by Newton's method
  (Betsch-Siebert (51) and (53)).

Derivatives are central differences of 1e-18 in 80-digit arithmetic: their own error is of the order
of 1e-36. Nothing is shared with the package. `python tools/exact/gradients.py`
computes all digits again, in two ways, and writes the file.
"""

import json
import pathlib

import mpmath
from mpmath import mpf

FILE = pathlib.Path(__file__).parents[2] / "tests" / "identification" / "reference_gradients.json"
# All are binary fractions: exact in every precision.
INERTIA, MOMENT, RATES = (0.5, 0.375, 0.25), (0.25, -0.125, 0.5), (1.0, -1.5, 2.0)
END, NUM_STEPS = 0.5, 10
POINT = (*INERTIA, *MOMENT, *RATES)
DIGITS, STEP, WRITTEN = 80, 18, 30


def product(p, q):
    """Product of two quaternions, scalar first."""
    a, b, c, d = p
    e, f, g, h = q
    return [
        a * e - b * f - c * g - d * h,
        a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    ]


def motion(x, order=48, steps=12):
    """Quaternion and angular velocity at the end, by Taylor series of equal steps."""
    J, mu, w = x[:3], x[3:6], list(x[6:])
    p = [mpf(1), mpf(0), mpf(0), mpf(0)]
    spins = [(J[1] - J[2]) / J[0], (J[2] - J[0]) / J[1], (J[0] - J[1]) / J[2]]
    h = mpf(END) / steps
    for _ in range(steps):
        P, W = [[value] for value in p], [[value] for value in w]
        for k in range(order):

            def cauchy(a, b, k=k):
                return mpmath.fsum(a[j] * b[k - j] for j in range(k + 1))

            one = [
                -cauchy(P[1], W[0]) - cauchy(P[2], W[1]) - cauchy(P[3], W[2]),
                cauchy(P[0], W[0]) + cauchy(P[2], W[2]) - cauchy(P[3], W[1]),
                cauchy(P[0], W[1]) + cauchy(P[3], W[0]) - cauchy(P[1], W[2]),
                cauchy(P[0], W[2]) + cauchy(P[1], W[1]) - cauchy(P[2], W[0]),
            ]
            two = [
                spins[i] * cauchy(W[(i + 1) % 3], W[(i + 2) % 3]) + (mu[i] / J[i] if k == 0 else 0)
                for i in range(3)
            ]
            for series, rate in zip(P, one, strict=True):
                series.append(rate / (2 * (k + 1)))
            for series, rate in zip(W, two, strict=True):
                series.append(rate / (k + 1))
        p, w = ([_sum(series, h) for series in group] for group in (P, W))
    return [*p, *w]


def _sum(series, h):
    total = mpf(0)
    for coefficient in reversed(series):
        total = total * h + coefficient
    return total


def steps(x, difference=40):
    """Return the gradient after steps of QUAT.EM, whose Newton matrix uses differences of
    10^-`difference`.
    """
    J, mu, w = x[:3], x[3:6], list(x[6:])
    q, h = [mpf(1), mpf(0), mpf(0), mpf(0)], mpf(END) / NUM_STEPS

    def half(W):
        return [mpf(1), *(h * value / 4 for value in W)]

    def rotate(f, v):
        back = [f[0], -f[1], -f[2], -f[3]]
        norm = mpmath.fsum(a * a for a in f)
        return [a / norm for a in product(product(f, [0, *v]), back)[1:]]

    def residual(W, before):
        f = half(W)
        back = [f[0], -f[1], -f[2], -f[3]]
        last = rotate(f, [J[i] * (2 * W[i] - before[i]) for i in range(3)])
        first = rotate(back, [J[i] * before[i] for i in range(3)])
        return [last[i] - first[i] - h * mu[i] for i in range(3)]

    for _ in range(NUM_STEPS):
        W, small = list(w), mpf(10) ** -difference
        for _ in range(100):
            r = residual(W, w)
            columns = []
            for j in range(3):
                moved = [value + small * (i == j) for i, value in enumerate(W)]
                there = residual(moved, w)
                columns.append([(a - b) / small for a, b in zip(there, r, strict=True)])
            change = mpmath.lu_solve(mpmath.matrix(columns).T, mpmath.matrix(r))
            W = [value - change[i] for i, value in enumerate(W)]
            if max(abs(c) for c in change) < mpf(10) ** (10 - mpmath.mp.dps):
                break
        else:
            raise ArithmeticError("Newton's method did not converge.")
        f = half(W)
        norm = mpmath.fsum(a * a for a in f)
        q = [a / norm for a in product(q, product(f, f))]
        w = [2 * a - b for a, b in zip(W, w, strict=True)]
    return [*q, *w]


def column(function, k, digits=DIGITS, step=STEP):
    """Derivative of the seven numbers at the end by component `k` of the point."""
    with mpmath.workdps(digits):
        size, ends = mpf(10) ** -step, []
        for sign in (1, -1):
            x = [mpf(value) + sign * size * (i == k) for i, value in enumerate(POINT)]
            ends.append(function(x))
        return [(a - b) / (2 * size) for a, b in zip(*ends, strict=True)]


def main() -> None:
    """Write the file; raise if another order, step and precision give other digits."""
    ways = {
        "motion": (motion, lambda x: motion(x, 60, 18)),
        "steps": (steps, lambda x: steps(x, 48)),
    }
    out = {}
    for name, (function, other) in ways.items():
        columns = [column(function, k) for k in range(len(POINT))]
        again = [column(other, k, 100, 22) for k in range(len(POINT))]
        gap = max(
            abs(a - b)
            for x, y in zip(columns, again, strict=True)
            for a, b in zip(x, y, strict=True)
        )
        print(f"{name}: two ways differ by {mpmath.nstr(gap, 3)}")
        if gap > mpf(10) ** -WRITTEN:
            raise ArithmeticError(f"The digits of {name!r} are not confirmed.")
        out[name] = [[mpmath.nstr(value, WRITTEN) for value in x] for x in columns]
    FILE.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
