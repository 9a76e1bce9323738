"""Integration of a body with a fixed point in decimal digits beyond those of a float64.

    python -m tools.exact.tops

recomputes the end states in `tools/exact/references.py`. `integrate` sums Taylor series
in integer fixed-point arithmetic. It shares no code with the solvers of the package.
"""

from fractions import Fraction

import mpmath

from .references import REFERENCES, EndState, Top


def integrate(top: Top, *, digits: int = 40, order: int = 40, output_digits: int = 25) -> EndState:
    r"""Integrate $p' = p\Omega/2$, $I\Omega' = m g L (R_{32}, -R_{31}, 0) - \Omega\times I\Omega$.

    The steps of a Taylor series of `order` have equal length. Their number is doubled until the
    last two terms of each step are below the precision.

    **Arguments:** `digits`, decimal digits after the point; `output_digits`, significant digits of
    the result.
    **Returns:** the state at `top.t1`.
    """
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


def main() -> None:
    """Recompute every stored end state in two ways and print which digits differ."""
    for name, (top, stored) in REFERENCES.items():
        recomputed = integrate(top), integrate(top, digits=52, order=56)
        print(name, "confirmed" if recomputed == (stored, stored) else f"differs: {recomputed}")


if __name__ == "__main__":
    main()
