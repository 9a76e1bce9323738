"""Runs of `simulate` as kernels: equal to XLA step by step, and their derivatives."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems
from rule_cases import equations

import rigidjax as rj

T1 = 0.3
BODY = rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25]), potential=lambda R: 5.0 * R[2, 2])
START = rj.State(
    orientation=jnp.array([[0.8, 0.6, 0.0, 0.0]]), angular_velocity=jnp.array([[0.1, 0.0, 20.0]])
)
TOP = rj.NullSpace(BODY)

RUNS = {
    "Dopri5": dict(solver=diffrax.Dopri5()),
    "Dopri8 at times": dict(ts=jnp.linspace(0.0, T1, 7)),
}


def test_loops_over_stages_are_unrolled():
    """Stages of a field without control flow are unrolled in the jaxpr."""

    def run(state0):
        return rj.simulate(TOP, state0, T1, solver=diffrax.Dopri5(), projection=False).ys

    program = jax.make_jaxpr(run)(START).jaxpr
    (solve,) = (e.params["solve"] for e in equations(program) if "solve" in e.params)
    loops = sum(e.primitive.name in ("while", "scan") for e in equations(solve.jaxpr.jaxpr))
    assert loops == 1  # over the steps


def test_tangents_of_large_fields_have_a_lane_each():
    """For one body, and for implicit methods, the lane of a point computes all its tangents."""
    pendulum, bent = systems.model("double pendulum"), systems.case("double pendulum").state

    def is_stacked(model, state0, solver):
        def run(state0):
            return rj.simulate(model, state0, 0.1, solver=solver).ys

        program = jax.make_jaxpr(run)(state0).jaxpr
        (solve,) = (e.params["solve"] for e in equations(program) if "solve" in e.params)
        return solve.stacks_tangents

    assert is_stacked(TOP, START, diffrax.Dopri5())
    assert not is_stacked(pendulum, bent, diffrax.Dopri5())
    assert is_stacked(pendulum, bent, rj.solvers.Radau5())


@pytest.mark.parametrize("name", RUNS)
def test_same_steps_and_results_as_xla(name):
    """Fixed steps and saved times are equal, adaptive steps up to round-off.

    Round-off in the error estimate changes the length of the next step. With Dopri8, whose first
    estimate is 1e-13, initial states that differ by 1e-15 change the second step by a relative
    1e-5, also in XLA. The tolerance is ten times this sensitivity of XLA's own times.
    """
    options = RUNS[name]
    adaptive = "ts" not in options
    if adaptive:
        options = dict(options, saveat=diffrax.SaveAt(steps=True, t0=True), max_steps=200)

    def run(backend, change=0.0):
        rates = START.angular_velocity * (1 + change)
        state = eqx.tree_at(lambda s: s.angular_velocity, START, rates)
        return rj.simulate(TOP, state, T1, backend=backend, **options)

    native, xla = run("native"), run("xla")
    assert native.stats["backend"] == "native"
    assert xla.stats["backend"] == "xla"
    reached = np.isfinite(np.asarray(xla.ts))
    last = reached.sum() - 1
    for count in ("num_steps", "num_rejected_steps"):
        assert int(native.stats[count]) == int(xla.stats[count])
    if not adaptive:
        assert np.array_equal(native.ts, xla.ts)
        np.testing.assert_allclose(native.ys, xla.ys, atol=1e-10)
        return

    def apart(sol):
        return np.max(np.abs(sol.ts - xla.ts)[reached])

    own = max(apart(run("xla", change)) for change in (-2e-15, -1e-15, 1e-15, 2e-15))
    assert 0 < own < 1e-4 * T1
    assert apart(native) < 10 * own
    np.testing.assert_allclose(native.ys[last], xla.ys[last], atol=1e-10)


@pytest.fixture(scope="module")
def members():
    """Return moments and rates of a batch that is no multiple of the lanes, and of a single run."""
    rng = np.random.default_rng(20260101)
    moments = jnp.array([0.5, 0.5, 0.25]) * (1 + 0.1 * rng.random((5, 3)))
    rates = jnp.array([0.1, 0.0, 20.0]) * (1 + 0.9 * rng.random((5, 3)))

    def run(backend):
        def end(moments, rates):
            model = eqx.tree_at(lambda m: m.system.inertia, TOP, moments)
            state = eqx.tree_at(lambda s: s.angular_velocity, START, rates[None])
            sol = rj.simulate(model, state, T1, solver=diffrax.Bosh3(), rtol=1e-5, backend=backend)
            return sol.ys[-1], sol.stats["num_steps"]

        return end

    return run, moments, rates


def test_batch_elements_equal_single_runs(members):
    run, moments, rates = members
    ends, steps = jax.jit(jax.vmap(run("native")))(moments, rates)
    one = jax.jit(run("native"))
    for k in range(len(moments)):
        alone, count = one(moments[k], rates[k])
        assert int(steps[k]) == int(count)
        np.testing.assert_allclose(ends[k], alone, atol=1e-11)
    assert len(set(np.asarray(steps).tolist())) > 1


def test_only_varying_values_have_tangents(members):
    run, moments, rates = members
    end = lambda m: run("native")(m, rates[0])[0]  # noqa: E731
    program = jax.make_jaxpr(lambda m: jax.jvp(end, (m,), (m,)))(moments[0])
    (given,) = {
        e.params["with_tangent"] for e in equations(program.jaxpr) if "with_tangent" in e.params
    }
    # The moments, of the body and of its mechanics, in the vector field, in the projection, and in
    # the model that the projection holds.
    assert sum(given) == 6
    assert len(given) > 10


def test_field_off_the_constraints_agrees_with_xla(rng):
    """Stages of a step are there, and error estimates, so steps, come from how the field goes on.

    Quaternions are no unit vectors, so that bodies are stretched, and joints are open. Loops that
    are not quite closed are redundant to the square of the change.
    """
    problem = rj.problems.four_bar(thickness=0.05)
    model = rj.Absolute(problem.system)

    def field(y):
        return model.vector_field(0.0, y)

    y = model.encode(problem.state0)
    y = y + 1e-6 * rng.normal(size=y.shape)
    native, xla = jax.jit(rj.native.jit(field))(y), jax.jit(field)(y)
    # Mass matrices and loops multiply round-off by up to 1e5.
    np.testing.assert_allclose(native, xla, atol=1e-10 * np.max(np.abs(xla)))


def test_failed_batch_element_has_its_result():
    def run(rates):
        state = eqx.tree_at(lambda s: s.angular_velocity, START, rates[None])
        sol = rj.simulate(
            TOP, state, T1, solver=diffrax.Dopri5(), backend="native", max_steps=40, throw=False
        )
        return sol.result == rj.RESULTS.successful, sol.ys[-1]

    rates = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, 500.0], [0.1, 0.0, 2.0]])
    okay, ends = jax.jit(jax.vmap(run))(rates)
    assert okay.tolist() == [True, False, True]
    assert np.isfinite(ends[np.array([0, 2])]).all()


def test_auto_states_the_reasons():
    law = rj.Torque("rod", lambda t, R, rates: jnp.array([0.0, 0.0, jax.scipy.special.erf(t)]))
    system = rj.System(rj.Body("rod", 1.0, (0.1, 0.1, 0.1)), (), law)
    sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 1.0, rtol=1e-10, atol=1e-10)
    assert sol.stats["backend"] == "xla"
    assert any("`erf`" in reason for reason in sol.stats["backend"].why_not)
    # The integral of erf from 0 to 1, over the moment of inertia.
    expected = 10.0 * (jax.scipy.special.erf(1.0) - (1.0 - np.exp(-1.0)) / np.sqrt(np.pi))
    np.testing.assert_allclose(sol.states.angular_velocity[-1, 0, 2], expected, rtol=1e-9)
    sol = rj.simulate(TOP, START, T1, solver=diffrax.Kvaerno3(), rtol=1e-4, atol=1e-4)
    assert sol.stats["backend"] == "xla"
    assert sol.stats["backend"].why_not


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match='"auto", "native" or "xla"; got \'gpu\''):
        rj.simulate(TOP, START, T1, backend="gpu")
    with pytest.raises(ValueError, match="cannot run this as a kernel: .*callback"):
        rj.simulate(TOP, START, T1, backend="native", progress=True)
    with pytest.raises(ValueError, match="runs with `rj.AnyMode"):
        rj.simulate(TOP, START, T1, backend="native", adjoint=diffrax.ForwardMode())
