"""Evaluations over a part of the runs take no later samples, whose residuals are zero."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Gyroscope, Measurements, Parameter, Simulation
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.search.evaluation import evaluate
from rigidjax.identification.search.problem import make_problem

TS = np.linspace(0.0, 1.0, 11)


@pytest.mark.parametrize("sensor", [Gyroscope(), Gyroscope(delay=0.05)])
def test_samples_beyond_the_horizon(sensor):
    model = rj.NullSpace(rj.FixedPointBody(np.array([0.02, 0.017, 0.006])))
    state = rj.State(angular_velocity=jnp.array([[1.0, 9.0, -4.0]]))
    parameter = Parameter("inertia", lambda e: e.model.system.inertia)
    data = Measurements(TS, {sensor: np.ones((11, 3))}, {sensor: 0.1})
    settings = Simulation(rtol=1e-10, atol=1e-10)
    settings = settings.with_defaults(jnp.float64, solver=diffrax.Dopri5())
    problem, *_ = make_problem(model, stack_runs(data), [state], [parameter], settings)
    shared, per_run = problem.start_coordinates()
    whole = evaluate(problem, shared, per_run, jnp.asarray(1.0))
    part = evaluate(problem, shared, per_run, jnp.asarray(0.4))
    assert part.okay.all() and whole.okay.all()
    count = part.residuals.shape[1] // len(TS)
    kept = 5 * count
    for name in ("residuals", "jacobian"):
        found, expected = getattr(part, name)[0], getattr(whole, name)[0]
        assert np.allclose(found[:kept], expected[:kept], rtol=1e-7, atol=1e-8)
        assert np.abs(expected[kept:]).max() > 1e-3 and not np.any(found[kept:])
    assert np.array_equal(evaluate(problem, shared, per_run).residuals, whole.residuals)
