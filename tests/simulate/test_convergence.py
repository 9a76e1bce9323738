"""Orders of convergence, at the end and between steps, with everything that follows a step."""

import diffrax
import jax
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

TOP = cases.loaded_top()
START = rj.State(orientation=(0.5, -0.5, 0.1, 0.7), angular_velocity=(1.5, -2.0, 2.5))
# No time but the last is the end of a step; an interpolated value shares its error.
TS = np.array([0.11 * np.pi, 0.23 * np.pi, 1.0])


def attitudes(solution):
    states = jax.vmap(solution.model.decode)(solution.ts, solution.ys)
    return cases.attitude(states)[:, 0], np.asarray(states.angular_velocity)[:, 0]


@pytest.fixture(scope="module")
def reference_ends():
    """At the ends of runs: what is interpolated is less accurate than the steps."""
    model = rj.NullSpace(TOP)
    ends = [attitudes(rj.simulate(model, START, t, rtol=1e-13, atol=1e-13)) for t in TS]
    return [np.concatenate(parts) for parts in zip(*ends, strict=True)]


@pytest.mark.exhaustive(but=("NullSpace-Quaternion-zero-body-solver0-True-5",))
@pytest.mark.parametrize(
    ("model", "solver", "projection", "order"),
    [
        # First same as last: a stale slope after the projection would cost an order.
        (rj.NullSpace(TOP), diffrax.Dopri5(), True, 5),
        (rj.Absolute(TOP, rj.Directors()), diffrax.Dopri5(), True, 5),
        (rj.Absolute(TOP), diffrax.Dopri5(), rj.projection.MassMetric(), 5),
        (rj.Absolute(TOP), diffrax.Bosh3(), False, 3),
        (rj.NullSpace(TOP, rj.ConformalRotationVector()), diffrax.Dopri5(), True, 5),
        (rj.Absolute(TOP, rj.EulerAngles("ZXZ")), diffrax.Heun(), True, 2),
        (rj.NullSpace(TOP, rj.Directors()), diffrax.Kvaerno3(), True, 3),
    ],
    ids=lambda value: cases.model_name(value) if hasattr(value, "system") else None,
)
def test_order_of_convergence(model, solver, projection, order, reference_ends):
    numbers = np.array([64, 90, 128, 180])
    if order == 2:
        numbers = 2 * numbers
    errors = []
    iterates = isinstance(solver, diffrax.AbstractImplicitSolver)
    newton = {"rtol": 1e-11, "atol": 1e-11} if iterates else {}
    for number in numbers:
        solution = rj.simulate(
            model, START, 1.0, ts=TS, solver=solver, dt=1.0 / number, projection=projection,
            **newton,
        )  # fmt: skip
        assert int(solution.stats["num_steps"]) in (number, number + 1)
        assert int(solution.stats["num_rejected_steps"]) == 0
        found = attitudes(solution)
        errors.append(
            [
                np.abs(f - e).reshape(3, -1).max(1)
                for f, e in zip(found, reference_ends, strict=True)
            ]
        )
        if projection:
            # Also what was interpolated lies on the manifold.
            drift = jax.vmap(model.drift)(solution.ts, solution.ys)
            assert np.max(drift) < cases.round_off(20)
    errors = np.array(errors)
    ends = errors[:, :, -1].max(1)
    slope = -np.polyfit(np.log(numbers), np.log(ends), 1)[0]
    assert abs(slope - order) < 0.2
    between = errors[:, :, :-1].max((1, 2))
    # Interpolated values change their place within the step from one step size to the next.
    assert np.all(between < 20 * ends)
