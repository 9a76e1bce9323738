"""Order of convergence, at the end and between steps, with everything that follows a step."""

import diffrax
import jax
import numpy as np
from formulations import cases

import rigidjax as rj

TOP = cases.loaded_top()
START = rj.State(orientation=(0.5, -0.5, 0.1, 0.7), angular_velocity=(1.5, -2.0, 2.5))
# No time but the last is the end of a step; an interpolated value shares its error.
TS = np.array([0.11 * np.pi, 0.23 * np.pi, 1.0])


def attitudes(solution):
    states = jax.vmap(solution.model.decode)(solution.ts, solution.ys)
    return cases.attitude(states)[:, 0], np.asarray(states.angular_velocity)[:, 0]


def test_order_of_convergence():
    """Dopri5 is first same as last: a stale slope after the projection would cost an order."""
    model, numbers, order = rj.NullSpace(TOP), np.array([64, 90, 128, 180]), 5
    # At the ends of runs, since interpolated values are less accurate than the steps.
    ends = [attitudes(rj.simulate(model, START, t, rtol=1e-13, atol=1e-13)) for t in TS]
    exact = [np.concatenate(parts) for parts in zip(*ends, strict=True)]
    errors = []
    for number in numbers:
        solution = rj.simulate(model, START, 1.0, ts=TS, solver=diffrax.Dopri5(), dt=1.0 / number)
        assert int(solution.stats["num_steps"]) in (number, number + 1)
        assert int(solution.stats["num_rejected_steps"]) == 0
        pairs = zip(attitudes(solution), exact, strict=True)
        errors.append([np.abs(f - e).reshape(3, -1).max(1) for f, e in pairs])
        # Interpolated values lie on the manifold too.
        drift = jax.vmap(model.drift)(solution.ts, solution.ys)
        assert np.max(drift) < cases.round_off(20)
    errors = np.array(errors)
    ends = errors[:, :, -1].max(1)
    slope = -np.polyfit(np.log(numbers), np.log(ends), 1)[0]
    assert abs(slope - order) < 0.2
    between = errors[:, :, :-1].max((1, 2))
    # Interpolated values change their place within the step from one step size to the next.
    assert np.all(between < 20 * ends)
