"""Projections behind the steps of methods at index 3, whose velocities have large normal errors."""

import pytest
from formulations import cases

import rigidjax as rj

TOP, CHAIN = rj.problems.heavy_top(), rj.problems.chain(2, "spherical")


def error(problem, solver, tolerance, t1):
    """Return relative errors of attitudes and angular velocities at the end, in directors."""
    model = rj.Absolute(problem.system, rj.Directors(), index=3)
    options = dict(rtol=tolerance, atol=tolerance)
    found = rj.simulate(model, problem.state0, t1, solver=solver, **options).states
    expected = rj.simulate(
        rj.NullSpace(problem.system), problem.state0, t1, rtol=1e-11, atol=1e-11
    ).states
    return max(
        cases.error(cases.attitude(found), cases.attitude(expected)),
        cases.error(found.angular_velocity, expected.angular_velocity),
    )


@pytest.mark.exhaustive
def test_radau_in_directors():
    """In the metric of the unit matrix 7e-4: an error of second order."""
    assert error(TOP, rj.solvers.Radau5(), 1e-7, 1.0) < 5e-6
