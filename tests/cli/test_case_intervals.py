"""Intervals that a case and the command line request."""

import pytest
from cli.case_files import TEXT, case_of
from cli.program import assert_refused

from rigidjax.cli.case.case import read_case
from rigidjax.cli.case.settings import IntervalMethods, add_methods


def test_methods_of_intervals(tmp_path):
    table = '[intervals]\nprofile = ["damping"]\nposterior = 50\nseed = 3\n'
    methods = read_case(case_of(tmp_path, TEXT + table)).intervals
    assert methods == IntervalMethods(("damping",), 50, 3)
    more = add_methods(methods, ("posterior",), ("I3",))
    assert more == IntervalMethods(("damping", "I3"), 50, 3)
    assert add_methods(IntervalMethods(), ("posterior",), ()).posterior == 1000
    assert add_methods(methods, ("profile",), ()).profile is None
    with pytest.raises(ValueError, match="`--intervals jackknife` must be profile or posterior"):
        add_methods(methods, ("jackknife",), ())


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
