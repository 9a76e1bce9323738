"""End states of problems without closed form, integrated with 40 digits.

They were computed by `integrate`: Taylor series in integer fixed-point arithmetic. It shares no
code with the rest of the package. `python -m rigidjax.problems.exact.references` recomputes the
stored digits.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np


class Top(NamedTuple):
    r"""Data of a reference solution of a body with a fixed point, SI units.

    All values are exact binary64 numbers, and products of them are exact. `weight_moment` contains
    the factors of $m g L$ in $V = m g L\,R_{33}$; it is empty for a free body. The initial
    orientation is a rotation about the first axis by pi times `turn`, which a binary64 quaternion
    cannot represent exactly.
    """

    inertia: tuple[float, float, float]
    omega: tuple[float, float, float]
    t1: float
    weight_moment: tuple[float, ...] = ()
    turn: Fraction = Fraction(0)


class EndState(NamedTuple):
    """Orientation (quaternion, scalar first) and angular velocity (body components, rad/s).

    Values are decimal strings, because they have more digits than a float64.
    """

    orientation: tuple[str, ...]
    omega: tuple[str, ...]

    def to_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Convert to float64 arrays (4,) and (3,)."""
        return np.array(self.orientation, np.float64), np.array(self.omega, np.float64)


class SystemEndState(NamedTuple):
    """End state of several bodies, one row for each, as decimal strings.

    It consists of `position` (m) and `velocity` (m/s) of the centres of mass in space components,
    `orientation` (quaternion, scalar first), and `angular_velocity` (body components, rad/s).
    """

    position: tuple[tuple[str, ...], ...]
    orientation: tuple[tuple[str, ...], ...]
    velocity: tuple[tuple[str, ...], ...]
    angular_velocity: tuple[tuple[str, ...], ...]

    def to_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Convert to float64 arrays (L, 3), (L, 4), (L, 3) and (L, 3)."""
        x, p, v, w = (np.array(rows, np.float64) for rows in self)
        return x, p, v, w


def integrate(top: Top, *, digits: int = 40, order: int = 40, output_digits: int = 25) -> EndState:
    r"""Integrate $p' = p\Omega/2$, $I\Omega' = m g L (R_{32}, -R_{31}, 0) - \Omega\times I\Omega$.

    The steps of a Taylor series of `order` have equal length. Their number is doubled until the
    last two terms of each step are below the precision. Needs `mpmath`, for the cosine of the
    initial angle.

    **Arguments:** `digits`, decimal digits after the point; `output_digits`, significant digits of
    the result.
    **Returns:** the state at `top.t1`.
    """
    import mpmath

    bits = int(digits * 3.33) + 32
    with mpmath.workprec(bits + 32):
        half = mpmath.pi * top.turn.numerator / (2 * top.turn.denominator)
        start = [int(mpmath.ldexp(f(half), bits)) for f in (mpmath.cos, mpmath.sin)]
        y = [*start, 0, 0, *(_to_fixed_point(Fraction(w), bits) for w in top.omega)]
        speed = max(abs(w) for w in top.omega)
        steps = max(1, int(top.t1 * speed))
        end = None
        while end is None:
            end = _integrate(top, y, bits, order, steps, 2 ** (32 - 8))
            steps = 2 * steps
        values = [mpmath.nstr(mpmath.ldexp(mpmath.mpf(v), -bits), output_digits) for v in end]
    return EndState(tuple(values[:4]), tuple(values[4:]))


def _to_fixed_point(value: Fraction, bits: int) -> int:
    return (value.numerator << bits) // value.denominator


def _integrate(
    top: Top, y: list[int], bits: int, order: int, steps: int, smallest: int
) -> list[int] | None:
    """Return the end state in fixed point, or `None` if a series is too short for the step."""
    i1, i2, i3 = (Fraction(x) for x in top.inertia)
    weight = Fraction(0)
    if top.weight_moment:
        weight = Fraction(1)
        for factor in top.weight_moment:
            weight *= Fraction(factor)
    h = Fraction(top.t1) / steps
    spins = [(i2 - i3) / i1, (i3 - i1) / i2, (i1 - i2) / i3]
    coefficients = [*spins, 2 * weight / i1, -2 * weight / i2]
    half_step = _to_fixed_point(h / 2, bits)
    scaled = [_to_fixed_point(c * h, bits) for c in coefficients]
    for _ in range(steps):
        terms = _taylor(y, half_step, scaled, bits, order)
        if max(abs(v) for series in terms for v in series[-2:]) > smallest:
            return None
        y = [sum(series) for series in terms]
    return y


def _taylor(
    y: list[int], half_step: int, scaled: list[int], bits: int, order: int
) -> tuple[list[int], ...]:
    """Return the terms of the Taylor series at the end of the step, `order` + 1 per component."""
    p0, p1, p2, p3 = ([v] for v in y[:4])
    w1, w2, w3 = ([v] for v in y[4:])
    n1, n2, n3, g1, g2 = scaled
    for k in range(order):

        def product(a, b, k=k):
            return sum(a[j] * b[k - j] for j in range(k + 1)) >> bits

        rate0 = -product(p1, w1) - product(p2, w2) - product(p3, w3)
        rate1 = product(p0, w1) + product(p2, w3) - product(p3, w2)
        rate2 = product(p0, w2) + product(p3, w1) - product(p1, w3)
        rate3 = product(p0, w3) + product(p1, w2) - product(p2, w1)
        spin1, spin2, spin3 = n1 * product(w2, w3), n2 * product(w3, w1), n3 * product(w1, w2)
        if g1:
            spin1 += g1 * (product(p2, p3) + product(p0, p1))
            spin2 += g2 * (product(p1, p3) - product(p0, p2))
        for series, rate in ((p0, rate0), (p1, rate1), (p2, rate2), (p3, rate3)):
            series.append((rate * half_step >> bits) // (k + 1))
        for series, rate in ((w1, spin1), (w2, spin2), (w3, spin3)):
            series.append((rate >> bits) // (k + 1))
    return p0, p1, p2, p3, w1, w2, w3


# Slug ft^2 in kg m^2, from the international pound and foot and standard gravity.
_SLUG_SQUARE_FOOT = 1.3558179483314004
_BRICK_INERTIA = (
    0.0018942 * _SLUG_SQUARE_FOOT,
    0.0062110 * _SLUG_SQUARE_FOOT,
    0.0071947 * _SLUG_SQUARE_FOOT,
)

# Results of `integrate` with 40 digits and order 40, which agree to all 25 digits with those of 52
# digits and order 56. Free bodies start with the identity; another initial orientation multiplies
# the result from the left.
REFERENCES: dict[str, tuple[Top, EndState]] = {
    # Lang, Example A, and with the 500 rad/s of his Figure 10
    "heavy_top": (
        Top((50.0, 42.0, 10.0), (0.0, 0.0, 20.0), 10.0, (11.09, 9.81), Fraction(1, 3)),
        EndState(
            (
                "0.1982417241079020918060645",
                "-0.2745027313400349891021615",
                "-0.5252812409567930139291001",
                "0.7806587520860049646224779",
            ),
            (
                "-0.4772860474842862680051684",
                "-0.9037988852351022961764126",
                "19.99593172409285668397119",
            ),
        ),
    ),
    "heavy_top_fast": (
        Top((50.0, 42.0, 10.0), (0.0, 0.0, 500.0), 1.0, (11.09, 9.81), Fraction(1, 3)),
        EndState(
            (
                "0.2132398132608484161470529",
                "0.1126150777971089994028946",
                "0.4873019313529214870770524",
                "-0.8392755530771417496695541",
            ),
            (
                "-0.02011410199103541260389599",
                "-0.032599078430257837254049",
                "499.9999998380387616616124",
            ),
        ),
    ),
    # Lang, Example B, with disturbances of 0.1, 1e-3 and 1e-5 rad/s
    "tennis_racket_1e-1": (
        Top((41.6, 11.6, 50.0), (50.0, 0.1, 0.1), 4.0),
        EndState(
            (
                "-0.8170904688902191256864311",
                "-0.5765080928441605908875268",
                "0.00005634357008328343667385468",
                "-0.00125752111420584797890214",
            ),
            (
                "50.00008237711544122496088",
                "0.05947816405752448883692252",
                "0.06815778081354638508965166",
            ),
        ),
    ),
    "tennis_racket_1e-3": (
        Top((41.6, 11.6, 50.0), (50.0, 1e-3, 1e-3), 4.0),
        EndState(
            (
                "-0.0001165991920815381744856462",
                "-0.0002250048307247953950174101",
                "-0.2064691181864167896308167",
                "-0.9784530847275090542837834",
            ),
            (
                "-49.99999301685938741498853",
                "-0.02342680735620990698464815",
                "0.02132848114895342128634504",
            ),
        ),
    ),
    "tennis_racket_1e-5": (
        Top((41.6, 11.6, 50.0), (50.0, 1e-5, 1e-5), 4.0),
        EndState(
            (
                "0.04158230737383085230540368",
                "-0.9991350816781099549978131",
                "0.0000046847884080709819835417",
                "-0.00001586182709562358618800113",
            ),
            (
                "49.99999997299201872662226",
                "-0.00145561999328097414822353",
                "0.001324997653694308629600794",
            ),
        ),
    ),
    # Betsch-Siebert 5.1
    "free_body": (
        Top((6.0, 8.0, 3.0), (10.0, 20.0, 20.0), 1.0),
        EndState(
            (
                "0.9824624330385534646488438",
                "0.06750476412557185446363653",
                "0.1527046080647452789076479",
                "0.08301793278629195032964013",
            ),
            (
                "11.40708654904118946280234",
                "19.65821124640305632248782",
                "19.38821036532631739053093",
            ),
        ),
    ),
    # NASA/TM-2015-218675, check case 2
    "tumbling_brick": (
        Top(_BRICK_INERTIA, (math.radians(10.0), math.radians(20.0), math.radians(30.0)), 30.0),
        EndState(
            (
                "-0.8811956077252472600350403",
                "0.4700900722184324332227777",
                "0.01175806386436379713705878",
                "0.04869674384969361717780915",
            ),
            (
                "0.2203449929153193335766299",
                "-0.3035115723352073856803024",
                "0.543190669993672973100671",
            ),
        ),
    ),
}


def main() -> None:
    """Recompute every stored end state in two ways and print which digits differ."""
    for name, (top, stored) in REFERENCES.items():
        recomputed = integrate(top), integrate(top, digits=52, order=56)
        print(name, "confirmed" if recomputed == (stored, stored) else f"differs: {recomputed}")


if __name__ == "__main__":
    main()
