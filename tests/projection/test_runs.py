"""Projections in use: consistent initial values, drift in runs, index 3."""

import diffrax
import jax.numpy as jnp
import numpy as np
from formulations import cases

import rigidjax as rj
from rigidjax.projection import Explicit

TOP = rj.FixedPointBody(cases.TENSOR, rj.GravityPotential((0.4, -0.3, 1.2), (0.5, -1.0, -9.0)))
MODEL = rj.Absolute(TOP, rj.Directors())
P0 = np.array([1.0, -2.0, 3.0, 4.0]) / np.sqrt(30.0)
START = rj.State(orientation=P0, angular_velocity=(1.53, -2.07, 2.51))
ZERO = jnp.zeros(())


def run(projection):
    return rj.simulate(MODEL, START, 2.0, dt=0.01, solver=diffrax.Heun(), projection=projection)


def test_drift_of_runs():
    """Second order, 200 steps: without a projection the constraints drift by about 1e-4."""
    free_run = run(False)
    drifts = [np.max(free_run.position_drift), np.max(free_run.velocity_drift)]
    assert min(drifts) > 1e-5
    projected = run(Explicit())
    assert np.max(projected.position_drift) < 3e-15
    assert np.max(projected.velocity_drift) < 1e-14
    # The projection changes the trajectory by no more than the error of the method.
    change = cases.error(cases.attitude(projected.states), cases.attitude(free_run.states))
    assert 1e-6 < change < 0.05


def test_consistent_initial_values():
    """Numbers from a table with three digits, which are the unknowns of no state."""
    exact = MODEL.encode(START)
    table = jnp.round(exact, 3)
    there_and_back = lambda y: MODEL.pack(MODEL.decode(ZERO, y).normalized())  # noqa: E731
    assert cases.error(there_and_back(table), table) > 1e-4
    y, result = Explicit()(MODEL, ZERO, table)
    assert result == diffrax.RESULTS.successful
    assert np.max(np.asarray(MODEL.drift(ZERO, y))) < 3e-15
    assert cases.error(there_and_back(y), y) < 3e-15
    # Off by the rounding of the table, positions first and then velocities.
    assert 1e-5 < float(jnp.max(jnp.abs(y - exact))) < 2e-3
    # Velocities that contradict the constraints are removed at the projected position.
    a, a_dot = y[:9], y[9:]
    M = MODEL.rotation.mass_matrix(a, TOP.inertia)
    normal = jnp.linalg.solve(M, MODEL.rotation.constraint_jacobian(a).T @ jnp.arange(1.0, 7.0))
    moved = Explicit()(MODEL, ZERO, y.at[9:].add(normal))[0]
    # The unit matrix has a part of 1.5e-8 in its metric.
    assert cases.error(moved[9:], a_dot) < 1e-6


def test_radau_in_directors():
    """Velocities have large normal errors: in the metric of the unit matrix 7e-4, second order."""
    top = rj.problems.heavy_top()
    model, other = rj.Absolute(top.system, rj.Directors(), index=3), rj.NullSpace(top.system)
    options = dict(rtol=1e-7, atol=1e-7, solver=rj.solvers.Radau5())
    found = rj.simulate(model, top.state0, 1.0, **options).states
    expected = rj.simulate(other, top.state0, 1.0, rtol=1e-11, atol=1e-11).states
    assert cases.error(cases.attitude(found), cases.attitude(expected)) < 5e-6
    assert cases.error(found.angular_velocity, expected.angular_velocity) < 5e-6
