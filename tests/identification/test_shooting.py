"""Multiple shooting: elimination of segments, derivatives, and the fits that it leads to."""

import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import Measurements, identify
from rigidjax.identification.shooting.shooting import solve_step


def test_elimination_is_least_squares():
    """The step of two runs of four segments, against one dense least-squares problem."""
    rng = np.random.default_rng(0)
    B, K, N, S, P, n, G, R, Q = 2, 4, 9, 2, 1, 3, 5, 3, 2
    r, J = rng.normal(size=(B, K, N)), rng.normal(size=(B, K, N, S + P + n))
    gaps = rng.normal(size=(B, K - 1, G))
    before, behind = rng.normal(size=(2, B, K - 1, G, S + P + n))
    prior = tuple(rng.normal(size=s) for s in ((R,), (R, S), (B, Q), (B, Q, P)))
    damping = rng.uniform(0.1, 1, S), rng.uniform(0.1, 1, (B, P)), rng.uniform(0.1, 1, (B, K, n))
    size = S + B * P + B * K * n

    def placed(b, k, block):
        out = np.zeros((len(block), size))
        first = S + B * P + (b * K + k) * n
        out[:, :S], out[:, S + b * P : S + (b + 1) * P] = block[:, :S], block[:, S : S + P]
        out[:, first : first + n] = block[:, S + P :]
        return out

    rows = [placed(b, k, J[b, k]) for b in range(B) for k in range(K)]
    rows += [
        placed(b, k, before[b, k]) + placed(b, k + 1, behind[b, k])
        for b in range(B)
        for k in range(K - 1)
    ]
    known = np.zeros((R + B * Q, size))
    known[:R, :S] = prior[1]
    for b in range(B):
        known[R + b * Q : R + (b + 1) * Q, S + b * P : S + (b + 1) * P] = prior[3][b]
    rows += [known, np.diag(np.concatenate([d.ravel() for d in damping]))]
    residuals = (r, gaps, prior[0], prior[2])
    right = np.concatenate([*(x.ravel() for x in residuals), np.zeros(size)])
    expected = np.linalg.lstsq(np.concatenate(rows), -right)[0]
    steps = solve_step((r, J), (gaps, before, behind), prior, damping)
    found = np.concatenate([x.ravel() for x in steps])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def run(length=20, mask=None):
    rng = np.random.default_rng(1)
    values = {rj.Gyroscope(): rng.normal(size=(length, 3))}
    masks = None if mask is None else {rj.Gyroscope(): mask}
    return Measurements(np.arange(length) * 0.1, values, mask=masks, name="first")


@pytest.mark.parametrize(
    "measured, segments, message",
    [
        (run(), 0, "must be a number of segments"),
        (run(), 2.0, "must be a number of segments"),
        (run(), 20, "has 20 times, enough for at most 19 segments"),
        (run(), 12, "segment 1 of the run first has 3 scalar samples"),
        (run(mask=np.arange(20) < 9), 2, "segment 2 of the run first has 0 scalar samples"),
    ],
)
def test_invalid_arguments_raise(measured, segments, message):
    with pytest.raises(ValueError, match=message):
        identify(cases.model(), measured, cases.parameters(), segments=segments)
