"""Projections in use: consistent initial values, drift in runs, derivatives, arguments."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax.projection import Explicit, MassMetric

TOP = rj.FixedPointBody(cases.TENSOR, rj.GravityPotential((0.4, -0.3, 1.2), (0.5, -1.0, -9.0)))
MODEL = rj.Absolute(TOP, rj.Directors())
P0 = np.array([1.0, -2.0, 3.0, 4.0]) / np.sqrt(30.0)
START = rj.State(orientation=P0, angular_velocity=(1.53, -2.07, 2.51))
PROJECTIONS = {"explicit": Explicit(), "mass metric": MassMetric()}
ZERO = jnp.zeros(())

every_projection = pytest.mark.parametrize("name", PROJECTIONS)


def run(projection):
    return rj.simulate(MODEL, START, 2.0, dt=0.01, solver=diffrax.Heun(), projection=projection)


@pytest.fixture(scope="module")
def free_run():
    return run(False)


@pytest.mark.exhaustive("mass metric")
@every_projection
def test_drift_of_runs(free_run, name):
    """Second order, 200 steps: without a projection the constraints drift by about 1e-4."""
    drifts = [np.max(free_run.position_drift), np.max(free_run.velocity_drift)]
    assert min(drifts) > 1e-5
    projected = run(PROJECTIONS[name])
    assert np.max(projected.position_drift) < 3e-15
    assert np.max(projected.velocity_drift) < 1e-14
    # The projection changes the trajectory by no more than the error of the method.
    change = cases.error(cases.attitude(projected.states), cases.attitude(free_run.states))
    assert 1e-6 < change < 0.05


@pytest.mark.exhaustive("mass metric")
@every_projection
def test_consistent_initial_values(name):
    """Numbers from a table with three digits, which are the unknowns of no state."""
    exact = MODEL.encode(START)
    table = jnp.round(exact, 3)
    there_and_back = lambda y: MODEL.pack(MODEL.decode(ZERO, y).normalized())  # noqa: E731
    assert cases.error(there_and_back(table), table) > 1e-4
    y, result = PROJECTIONS[name](MODEL, ZERO, table)
    assert result == diffrax.RESULTS.successful
    assert np.max(np.asarray(MODEL.drift(ZERO, y))) < 3e-15
    assert cases.error(there_and_back(y), y) < 3e-15
    # Off by the rounding of the table, positions first and then velocities.
    assert 1e-5 < float(jnp.max(jnp.abs(y - exact))) < 2e-3
    # Velocities that contradict the constraints are removed at the projected position.
    a, a_dot = y[:9], y[9:]
    M = MODEL.rotation.mass_matrix(a, TOP.inertia)
    normal = jnp.linalg.solve(M, MODEL.rotation.constraint_jacobian(a).T @ jnp.arange(1.0, 7.0))
    moved = PROJECTIONS["explicit"](MODEL, ZERO, y.at[9:].add(normal))[0]
    # The unit matrix has a part of 1.5e-8 in its metric.
    assert cases.error(moved[9:], a_dot) < 1e-6


@pytest.fixture(scope="module")
def derivatives():
    """Return derivatives of both projections, at perturbed and at consistent unknowns."""
    rng = np.random.default_rng(47)
    shift, v, w = (jnp.asarray(rng.normal(size=18)) for _ in range(3))
    y = MODEL.encode(START)
    h = 1e-5

    def evaluate(name, y):
        project = lambda y: PROJECTIONS[name](MODEL, ZERO, y)[0]  # noqa: E731
        moved = y + 0.05 * shift
        first = lambda y: jax.jvp(project, (y,), (v,))  # noqa: E731
        (_, slope), (_, second) = jax.jvp(first, (moved,), (v,))
        (gradient,) = jax.vjp(project, moved)[1](w)
        values, slopes = jax.vmap(first)(jnp.stack([moved + h * v, moved - h * v]))
        return {
            "first": (slope, (values[0] - values[1]) / (2 * h)),
            "second": (second, (slopes[0] - slopes[1]) / (2 * h)),
            "reverse": (gradient @ v, w @ slope),
        }, jax.jacfwd(project)(y)

    return {name: jax.jit(evaluate, static_argnums=0)(name, y) for name in PROJECTIONS}
