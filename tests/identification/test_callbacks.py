"""Minimisations that tell every iteration, as the command line has them."""

import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification.search.least_squares import on_iteration


@pytest.mark.exhaustive
def test_callback_does_not_change_the_fit():
    """To round-off, which XLA distributes otherwise; one cost for each iteration of each stage."""
    body = rj.FixedPointBody([2.0, 1.2, 0.9])
    model, ts = rj.NullSpace(body), np.linspace(0.0, 2.0, 21)
    state = rj.State(angular_velocity=[1.0, 2.0, 0.5])
    rates = rj.simulate(model, state, 2.0, ts=ts).states.angular_velocity[:, 0]
    run = rj.Measurements(ts, {rj.Gyroscope(): rates}, noise={rj.Gyroscope(): 0.01})
    inertia = rj.Parameter(
        "inertia",
        lambda e: e.model.system.inertia,
        rj.identification.PrincipalInertia(fixed=("I1",)),
        start=[2.0, 1.5, 1.0],
    )
    reported = []
    with on_iteration(reported.append):
        one = rj.identify(model, run, inertia, state0=state)
    other = rj.identify(model, run, inertia, state0=state)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9)
    assert one.iterations == other.iterations
    begins, told = [[at for at in reported if (at.number > 0) == later] for later in (False, True)]
    assert reported[0] is begins[0] and np.isnan(begins[0].cost)
    for k, horizon in enumerate((0.1, 0.3, 1.0)):
        found = [at for at in told if at.horizon == horizon][: one.iterations[k]]
        assert [at.number for at in found] == list(range(1, one.iterations[k] + 1))
        np.testing.assert_array_equal([at.cost for at in found], one.cost[k][: len(found)])
