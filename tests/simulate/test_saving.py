"""Saved values (times, steps, dense output, quantities), events, controllers and adjoints."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from formulations import cases

import rigidjax as rj

TOP = cases.heavy_top()
MODEL = rj.Absolute(TOP, rj.Directors())
START = rj.State(orientation=(0.96, 0.28, 0.0, 0.0), angular_velocity=(0.1, -0.2, 4.0))
TS = np.linspace(0.1, 0.9, 5)


@pytest.fixture(scope="module")
def everything():
    saveat = diffrax.SaveAt(t0=True, t1=True, ts=TS, steps=True, dense=True)
    # The longer the steps, the more of the round-off of the weights of dense output is seen at
    # their ends: at 1e-9 it is 1.00e-14 to 1.05e-14 of the unknowns, whatever the start.
    return rj.simulate(MODEL, START, 1.0, saveat=saveat, rtol=1e-10, atol=1e-10)


def test_all_kinds_of_saveat_together(everything):
    times = np.asarray(everything.ts)
    used = np.isfinite(times)
    steps = int(everything.stats["num_accepted_steps"])
    assert everything.result == rj.RESULTS.successful
    # The start, the end of every step, and the times between; the end is a step and t1.
    assert np.sum(used) == 1 + steps + len(TS)
    assert times[used][0] == 0.0
    assert times[used][-1] == 1.0
    assert np.all(np.diff(times[used]) >= 0)
    assert np.all(np.isin(TS, times))
    drift = jax.vmap(MODEL.drift)(times[used], everything.ys[used])
    assert np.max(drift) < 1e-14


def test_dense_output_agrees_with_what_was_saved(everything):
    used = np.flatnonzero(np.isfinite(everything.ts))
    states = jax.vmap(MODEL.decode)(everything.ts[used], everything.ys[used])
    dense = jax.vmap(everything.evaluate)(everything.ts[used])
    # Between steps what is saved is projected, dense output is not: their difference is the drift
    # of the interpolant, which is of the order of the tolerance.
    assert cases.error(cases.attitude(dense), cases.attitude(states)) < 1e-8
    assert cases.error(dense.angular_velocity, states.angular_velocity) < 1e-7
    at_steps = used[~np.isin(np.asarray(everything.ts)[used], TS)]
    ends = jax.vmap(everything.interpolation.evaluate)(everything.ts[at_steps])
    # Sums of the interpolant in the order that JAX chooses: some 100 units of round-off.
    assert cases.error(ends, everything.ys[at_steps]) < 200 * np.finfo(float).eps


def test_dense_output_without_saved_times(everything):
    saveat = diffrax.SaveAt(dense=True)
    alone = rj.simulate(MODEL, START, 1.0, saveat=saveat, rtol=1e-10, atol=1e-10, max_steps=512)
    for t in TS:
        found, expected = (run.evaluate(jnp.asarray(t)) for run in (alone, everything))
        assert cases.error(found.angular_velocity, expected.angular_velocity) < 1e-13
    with pytest.raises(ValueError, match="No samples were saved"):
        _ = alone.states


@pytest.fixture(scope="module")
def saved_run():
    return rj.simulate(MODEL, START, 1.0, ts=TS, rtol=1e-10, atol=1e-10)


def test_saved_times_do_not_depend_on_what_else_is_saved(saved_run, everything):
    assert np.array_equal(saved_run.ts, TS)
    index = [int(np.flatnonzero(np.asarray(everything.ts) == t)[0]) for t in TS]
    assert cases.error(saved_run.ys, everything.ys[np.array(index)]) < 1e-13
    for key in ("num_steps", "num_accepted_steps", "num_rejected_steps", "num_rhs"):
        assert int(saved_run.stats[key]) == int(everything.stats[key])


def test_saved_functions_receive_projected_unknowns(saved_run):
    """As for `ts`, interpolated unknowns violate the constraints and are projected."""

    def function(t, y, args):
        return jnp.concatenate([y, jnp.stack(MODEL.drift(t, y))])

    found = rj.simulate(
        MODEL, START, 1.0, saveat=diffrax.SaveAt(ts=TS, fn=function), rtol=1e-10, atol=1e-10
    ).ys
    assert np.max(found[:, -2:]) < 1e-13
    assert cases.error(found[:, :-2], saved_run.ys) < 1e-12


def test_derivatives_with_unreached_times():
    def run_until_failure(inertia):
        body = rj.FixedPointBody(inertia, TOP.potential)
        solution = rj.simulate(
            rj.Absolute(body, rj.Directors()), START, 1.0, ts=TS, solver=diffrax.Heun(), dt=0.05,
            max_steps=5, throw=False,
        )  # fmt: skip
        there = jnp.isfinite(solution.ts)
        return jnp.sum(jnp.where(there[:, None], solution.ys, 0.0)), there

    gradient, there = jax.grad(run_until_failure, has_aux=True)(jnp.asarray(cases.PRINCIPAL))
    assert np.array_equal(there, [True, False, False, False, False])
    assert np.all(np.isfinite(gradient)) and np.min(np.abs(gradient)) > 1e-8


def test_quantities_of_a_solution(saved_run):
    states = saved_run.states
    assert states.orientation.shape == (5, 1, 4)
    assert states.position.shape == states.velocity.shape == states.angular_velocity.shape
    assert states.position.shape == (5, 1, 3)
    assert saved_run.ys.shape == (5, 18)
    R, omega = cases.attitude(states)[:, 0], np.asarray(states.angular_velocity)[:, 0]
    inertia = np.array(cases.PRINCIPAL)
    energy = 0.5 * np.sum(omega**2 * inertia, -1) + 108.79 * R[:, 2, 2]
    assert np.allclose(saved_run.energy, energy, rtol=1e-14)
    # Interpolated values: less accurate than the steps.
    assert np.ptp(energy) < 1e-5
    assert np.array_equal(saved_run.linear_momentum, np.zeros((5, 3)))
    spin = np.einsum("tij,tj->ti", R, inertia * omega)
    assert np.allclose(saved_run.angular_momentum, spin, rtol=1e-13, atol=1e-13)
    assert np.ptp(spin[:, 2]) < 1e-6
    assert saved_run.position_drift.shape == saved_run.velocity_drift.shape == (5,)
    assert np.max(saved_run.position_drift) < 1e-14
    assert saved_run.multipliers.shape == (5, 6)
    expected = jax.vmap(MODEL.multipliers)(saved_run.ts, saved_run.ys)
    assert cases.error(saved_run.multipliers, expected) < 1e-13
    assert set(saved_run.stats) == {
        "num_steps", "num_accepted_steps", "num_rejected_steps", "num_rhs",
        "backend", "derivative_error",
    }  # fmt: skip


def test_unsaved_quantities_raise(saved_run):
    with pytest.raises(ValueError, match=r"needs dense output: pass `saveat=diffrax.SaveAt\(den"):
        saved_run.evaluate(jnp.array(0.5))
    nothing = eqx.tree_at(lambda s: (s.ts, s.ys), saved_run, (None, None))
    with pytest.raises(ValueError, match="No samples were saved: pass `ts=`"):
        nothing.energy  # noqa: B018
    other = eqx.tree_at(lambda s: s.ys, saved_run, saved_run.ys[:, :3])
    with pytest.raises(ValueError, match=r"`SaveAt\(fn=...\)` did not save the unknowns"):
        other.states  # noqa: B018


def test_saved_function_of_the_unknowns():
    """Concrete or traced values that it closes over are arguments like others."""

    def energies(scale):
        saveat = diffrax.SaveAt(ts=TS, fn=lambda t, y, args: scale * MODEL.energy(t, y))
        return rj.simulate(MODEL, START, 1.0, saveat=saveat, rtol=1e-9, atol=1e-9).ys

    plain = energies(1.0)
    assert plain.shape == (5,)
    # Unprojected values of the interpolant: of the order of the tolerance.
    assert np.ptp(plain) < 1e-4
    scaled, slope = jax.jvp(energies, (2.0,), (1.0,))
    # A run that is differentiated has steps of its own, both within the tolerance.
    assert cases.error(scaled, 2.0 * plain) < 1e-8
    assert cases.error(slope, 0.5 * scaled) < 1e-10


def test_vector_field_receives_arguments_and_initial_time():
    """`args` and `t0` reach the vector field and the events."""

    class Driven(eqx.Module):
        def __call__(self, t, R, omega):
            return jnp.stack([jnp.zeros(()), jnp.zeros(()), 2.0 * t])

    model = rj.NullSpace(rj.FixedPointBody((1.0, 1.0, 1.0), moment=Driven()))
    seen = diffrax.Event(lambda t, y, args, **kwargs: t - args, optx.Newton(1e-12, 1e-12))
    solution = rj.simulate(
        model, rj.State(), 5.0, t0=1.0, args=2.0, event=seen, rtol=1e-10, atol=1e-10
    )
    assert solution.result == rj.RESULTS.event_occurred
    assert abs(float(solution.ts[0]) - 2.0) < 1e-12
    # The angular velocity is t^2 - 1.
    assert abs(float(solution.states.angular_velocity[0, 0, 2]) - 3.0) < 1e-8


def test_explicit_controller():
    controller = diffrax.PIDController(rtol=1e-7, atol=1e-7, dtmax=0.02, pcoeff=0.2, icoeff=0.5)
    model = rj.NullSpace(TOP)
    solution = rj.simulate(model, START, 1.0, stepsize_controller=controller)
    assert int(solution.stats["num_steps"]) >= 50
    stepto = diffrax.StepTo(ts=np.linspace(0.0, 1.0, 31))
    fixed = rj.simulate(model, START, 1.0, stepsize_controller=stepto, solver=diffrax.Tsit5())
    assert int(fixed.stats["num_steps"]) == 30
    assert cases.error(fixed.ys, solution.ys) < 1e-6


def test_progress_meter(capsys):
    model = rj.NullSpace(TOP)
    rj.simulate(model, START, 0.5, rtol=1e-5, atol=1e-5, progress=True)
    jax.effects_barrier()
    assert "100.00%" in capsys.readouterr().out
    rj.simulate(model, START, 0.5, rtol=1e-5, atol=1e-5)
    jax.effects_barrier()
    assert capsys.readouterr().out == ""


def test_simulate_equals_plain_diffrax():
    """`simulate` only assembles arguments."""
    model = rj.NullSpace(TOP)
    solver = rj.solvers.Projected(diffrax.Dopri8(), model, rj.projection.Explicit())
    by_hand = diffrax.diffeqsolve(
        diffrax.ODETerm(model.vector_field), solver, 0.0, 1.0, None, model.encode(START),
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8),
    )  # fmt: skip
    solution = rj.simulate(model, START, 1.0)
    assert int(by_hand.stats["num_steps"]) == int(solution.stats["num_steps"])
    assert cases.error(by_hand.ys, solution.ys) < 1e-14
