"""End states to 25 digits: of tops by `tops.py`, and of Lang's Example C by `two_bodies.py`."""

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

# Results of `tops.integrate` with 40 digits and order 40, which agree to all 25 digits with those
# of 52 digits and order 56. Free bodies start with the identity; another initial orientation
# multiplies the result from the left.
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

# Results of `two_bodies.integrate` with 45 digits and 16 columns, confirmed with 53 digits and
# 20 columns.
ENDS: dict[str, SystemEndState] = {
    "two_bodies": SystemEndState(
        (
            (
                "-0.4731820945776323898573522",
                "-2.607944373719349855397311",
                "-1.27679420588548102038209",
            ),
            (
                "-3.698791929405180341176703",
                "2.027353997849082034172598",
                "10.94899678851501672976911",
            ),
        ),
        (
            (
                "0.5292158748990052941513806",
                "0.8460236377953891381949037",
                "0.0644516342911256047262909",
                "-0.004533087638639652960529619",
            ),
            (
                "0.6409312693606258054023771",
                "0.4502968610074561291066813",
                "-0.2715083590620979869757965",
                "-0.5592164660326227719997836",
            ),
        ),
        (
            (
                "131.8277919398899458833593",
                "-62.77558015132678293428208",
                "-102.1683867960174262161884",
            ),
            (
                "-8.282088505988593940883374",
                "-248.6667533190851016092193",
                "13.14905055422471966914894",
            ),
        ),
        (
            (
                "-66.69381762782339986071043",
                "79.41387962478744852894996",
                "-4.28775640006149993853421",
            ),
            (
                "-33.17951233171258683796059",
                "59.58248749899548828902709",
                "-0.9504259292139776878887106",
            ),
        ),
    ),
    "two_bodies_slow": SystemEndState(
        (
            (
                "0.0812903384292061744928211",
                "0.2457831054030038554643285",
                "-0.1326808956453368514871774",
            ),
            (
                "1.106573562236286809904651",
                "-12.28742228756629845970943",
                "-2.196100629176965617967578",
            ),
        ),
        (
            (
                "-0.8293728292287296813991838",
                "0.5555429951350767647255554",
                "-0.05205120100889739775635077",
                "0.02834366184902412558525924",
            ),
            (
                "-0.310062293135236669888655",
                "-0.1222000089438743698262769",
                "0.2889467235824208969031475",
                "-0.897462156929649954922069",
            ),
        ),
        (
            (
                "0.9868015540123499081051606",
                "10.82051157801357220462101",
                "-17.12521399575031186584962",
            ),
            (
                "8.842227006708498741100605",
                "15.15896628747787560624377",
                "-19.07612296082620067440551",
            ),
        ),
        (
            (
                "2.741066302076236021101268",
                "2.219249903762816360708314",
                "-4.595069732345912294679999",
            ),
            (
                "-0.4360147791863542536097158",
                "0.5866404751674851353832477",
                "1.29326804149940965269537",
            ),
        ),
    ),
}
