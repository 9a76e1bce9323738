"""End states of problems without closed form, from `tools/exact/tops.py` with 40 digits."""

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


# Slug ft^2 in kg m^2, from the international pound and foot and standard gravity.
_SLUG_SQUARE_FOOT = 1.3558179483314004
_BRICK_INERTIA = (
    0.0018942 * _SLUG_SQUARE_FOOT,
    0.0062110 * _SLUG_SQUARE_FOOT,
    0.0071947 * _SLUG_SQUARE_FOOT,
)

# Results with 40 digits and order 40, which agree to all 25 digits with those of 52
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
