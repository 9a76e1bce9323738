"""How a run can end: named results, never silence, never garbage."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

SPHERE = rj.FixedPointBody((2.0, 2.0, 2.0))
TS = np.linspace(0.0, 10.0, 41)
AXIS = np.array([0.36, 0.48, 0.8])
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def run(model, orientation, omega, **options):
    state = rj.State(orientation=orientation, angular_velocity=omega)
    steps = {} if "dt" in options else {"rtol": 1e-6, "atol": 1e-6}
    return rj.simulate(model, state, 10.0, ts=TS, **steps, **options)


def test_singularity_without_recharting():
    """The third axis leans by a quarter turn and is turned back."""
    half, omega, time = np.sqrt(0.5), (-1.0, 0.0, 0.0), 0.5 * np.pi
    orientation = (half, half, 0.0, 0.0)
    model = rj.NullSpace(SPHERE, rj.EulerAngles("ZXZ"), recharting=False)
    solution = run(model, orientation, omega, throw=False)
    assert solution.result == rj.RESULTS.singular_parametrization
    reached = np.isfinite(solution.ts)
    # Everything up to the singularity, nothing beyond it.
    assert np.array_equal(solution.ts[reached], TS[TS < time])
    states = jax.vmap(model.decode)(solution.ts[reached], solution.ys[reached])
    assert np.all(np.isfinite(solution.ys[reached]))
    assert np.allclose(states.angular_velocity[:, 0], omega, rtol=0, atol=1e-4)
    with pytest.raises(
        rj.SimulationError, match="reached a singularity of its parametrization. Let"
    ):
        run(model, orientation, omega)


def test_singularity_of_absolute_coordinates_and_fixed_steps():
    model = rj.Absolute(SPHERE, rj.RodriguesParameters(), recharting=False)
    solution = run(model, UPRIGHT, AXIS, dt=0.0625, solver=diffrax.Heun(), throw=False)
    assert solution.result == rj.RESULTS.singular_parametrization
    reached = np.isfinite(solution.ts)
    assert np.all(np.isfinite(solution.ys[reached]))
    # Fixed steps of a method of order 2 come to it a little late or early.
    assert abs(solution.ts[reached][-1] - np.pi) < 0.5


def test_initial_state_at_the_singularity_raises():
    rotation, orientation = rj.RodriguesParameters(), (0.0, 0.6, 0.0, 0.8)
    model = rj.NullSpace(SPHERE, rotation, recharting=False)
    solution = run(model, orientation, AXIS, throw=False, max_steps=100)
    assert solution.result == rj.RESULTS.singular_parametrization
    moving = run(rj.NullSpace(SPHERE, rotation), orientation, AXIS)
    assert moving.result == rj.RESULTS.successful


def test_user_events_with_singularity_detection():
    def spins_fast(t, y, args, **kwargs):
        return t > 1.0

    model = rj.NullSpace(SPHERE, rj.RotationVector(), recharting=False)
    solution = run(model, UPRIGHT, AXIS, event=diffrax.Event(spins_fast))
    assert solution.result == rj.RESULTS.event_occurred
    assert bool(solution.event_mask)
    last = np.max(solution.ts[np.isfinite(solution.ts)])
    assert 0.9 < last < 5.0
    late = diffrax.Event(lambda t, y, args, **kwargs: t > 20.0)
    solution = run(model, UPRIGHT, AXIS, event=late, throw=False)
    assert solution.result == rj.RESULTS.singular_parametrization
    assert not bool(solution.event_mask)


@pytest.mark.parametrize("derivative", [jax.jacfwd, jax.grad], ids=["forward", "reverse"])
def test_derivative_of_a_run_that_fails(derivative):
    """The error is also raised if only a derivative is requested."""
    model = rj.NullSpace(cases.heavy_top())

    def end(speed, t1):
        state = rj.State(angular_velocity=speed * jnp.array([0.1, 0.0, 50.0]))
        return rj.simulate(model, state, t1, max_steps=20).ys[-1, 0]

    compiled = eqx.filter_jit(derivative(end))
    assert np.isfinite(compiled(1.0, 0.01))
    with pytest.raises(eqx.EquinoxRuntimeError, match="The maximum number of solver steps"):
        jax.block_until_ready(compiled(1.0, 10.0))


def test_non_finite_state_is_reported():
    def moment(t, R, omega):
        return jnp.where(t > 0.5, jnp.nan, 0.0) * omega

    model = rj.NullSpace(rj.FixedPointBody((1.0, 2.0, 3.0), moment=moment))
    state = rj.State(angular_velocity=(1.0, 2.0, 3.0))
    options = dict(dt=0.1, solver=diffrax.Heun())
    with pytest.raises(rj.SimulationError, match="The state is no longer finite. Use smaller"):
        rj.simulate(model, state, 1.0, **options)
    solution = rj.simulate(model, state, 1.0, **options, throw=False)
    assert solution.result == rj.RESULTS.nonfinite_state
    # Before the moment fails all is well.
    assert rj.simulate(model, state, 0.5, **options).result == rj.RESULTS.successful


def test_failed_projection_is_reported():
    model = rj.Absolute(cases.heavy_top(), rj.Directors())
    state = rj.State(angular_velocity=(0.1, 0.0, 5.0))
    solution = rj.simulate(
        model, state, 1.0, dt=0.1, solver=diffrax.Heun(), throw=False,
        projection=rj.projection.MassMetric(max_steps=1),
    )  # fmt: skip
    assert solution.result == rj.RESULTS.nonlinear_max_steps_reached


def test_summary_names_the_rotor_that_dictates_the_steps():
    wheel = rj.Revolute("hub", "rotor", (0, 0, 0), (1, 0, 0), name="wheel")
    bodies = [rj.Body("hub", 100.0, (20.0, 18.0, 12.0)), rj.Body("rotor", 2.0, (0.01,) * 3)]
    system = rj.System(bodies, [rj.Free("hub"), wheel])
    start = rj.jointed_state(system, {}, {"wheel": 100.0})
    texts = [repr(rj.simulate(form(system), start, 1.0)) for form in (rj.NullSpace, rj.Relative)]
    assert "each revolution of 'rotor' on 'wheel' (100 rad/s, 0.8" in texts[0]
    assert "each revolution" not in texts[1]
