"""Intervals that a case and the command line request."""

import pytest
from cli.case_files import TEXT, case_of
from cli.program import assert_refused

from rigidjax.cli.case.case import read_case
from rigidjax.cli.case.settings import IntervalMethods


def test_methods_of_intervals(tmp_path):
    table = '[intervals]\nprofile = ["damping"]\nposterior = 50\nseed = 3\n'
    methods = read_case(case_of(tmp_path, TEXT + table)).intervals
    assert dict(methods) == {"profile": ("damping",), "posterior": 50, "seed": 3}
    more = methods.add(("posterior",), ("I3",))
    assert dict(more) == {"profile": ("damping", "I3"), "posterior": 50, "seed": 3}
    assert IntervalMethods().add(("posterior",), ()).posterior == 1000
    assert methods.add(("profile",), ()).profile is True
    with pytest.raises(ValueError, match="`--intervals jackknife` must be profile or posterior"):
        methods.add(("jackknife",), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("profile = 3", r"\[intervals\]: `profile` must be true, false or an array of labels"),
        ("posterior = 1", r"\[intervals\]: `posterior` must be 2 or more; got 1"),
        ("samples = 10", r"\[intervals\]: there is no `samples` here"),
    ],
)
def test_invalid_methods_of_intervals(tmp_path, line, message):
    case = case_of(tmp_path, f"{TEXT}[intervals]\n{line}\n")
    assert_refused(message, "identify", case)
