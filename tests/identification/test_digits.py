"""Values with as many digits as their standard deviations justify."""

import pytest

from rigidjax.io.document import estimate_text, interval_text, std_text


@pytest.mark.parametrize(
    "value, std, text",
    [
        (1.30008, 6.6e-5, "1.300080"),
        (0.017, 1.2e-3, "0.0170"),
        (-12345.678, 250.0, "-1.235e+04"),
        (12345.678, 12.0, "12346"),
        (1.0, 0.2, "1.00"),
        (2.5e-9, 3e-12, "2.5000e-09"),
        (4e-13, 3e-10, "0"),
        (0.0, 0.1, "0"),
        (3.0, float("inf"), "3"),
        (3.0, 0.0, "3"),
        (0.4, 30.0, "0"),
        (2.0, 30.0, "2"),
        (1.0, 1e-30, "1.0000000000000000"),
    ],
)
def test_digits_follow_the_standard_deviation(value, std, text):
    assert estimate_text(value, std) == text
    if std > 1e-17 and std < 1e300:
        # The omitted part is less than the last digit of the printed deviation.
        assert abs(float(text) - value) <= 0.5 * float(std_text(std))


def test_intervals_have_the_digits_of_their_width():
    assert interval_text((1.29995, 1.30021)) == "1.29995 to 1.30021"
    assert interval_text((0.0177, 0.01999)) == "0.0177 to 0.0200"
    assert interval_text((-0.5, 0.5)) == "-0.50 to 0.50"
    assert interval_text((float("-inf"), float("inf"))) == "not determined"
