"""Arguments that `simulate` refuses, before anything is compiled."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems
from formulations import cases

import rigidjax as rj

TOP = cases.heavy_top()
MODEL = rj.NullSpace(TOP)
START = rj.State(angular_velocity=(0.1, 0.2, 3.0))


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (ValueError, r"needs t1 > t0; got t0 = 0.0, t1 = 0.0. To run backwards", {"t1": 0.0}),
        (ValueError, r"simulate\(t1=...\)` must be finite", {"t1": np.inf}),
        (ValueError, r"simulate\(t0=...\)` must be finite", {"t0": np.nan}),
        (ValueError, r"\(t1=...\)` must have shape \(\); got shape \(2,\)", {"t1": [1.0, 2.0]}),
        (TypeError, r"simulate\(t1=...\)` must be real numbers; got 1j", {"t1": 1.0j}),
        (TypeError, r"simulate\(t0=...\)` must be real numbers; got '1'", {"t0": "1"}),
        (ValueError, r"`simulate\(ts=...\)` must have shape \(T,\); got shape \(\)", {"ts": 0.5}),
        (ValueError, r"must have shape \(T,\); got shape \(0,\)", {"ts": []}),
        (ValueError, r"simulate\(ts=...\)` must be finite", {"ts": [0.1, np.nan]}),
        (ValueError, r"`simulate\(ts=...\)` must be strictly increasing", {"ts": [0.2, 0.1]}),
        (ValueError, r"must lie between t0 = 0.0 and t1 = 1.0; got times from 0.5 to 1.5",
         {"ts": [0.5, 1.5]}),
        (ValueError, "must lie between t0 = 0.0", {"ts": [-0.1, 0.5]}),
        (ValueError, "either `ts=` or `saveat=`, not both",
         {"ts": [0.5], "saveat": diffrax.SaveAt(t1=True)}),
        (TypeError, r"`simulate\(saveat=...\)` takes a `diffrax.SaveAt`; got \[0.5\]",
         {"saveat": [0.5]}),
        (ValueError, r"takes one set of times, not `SaveAt\(subs=...\)`",
         {"saveat": diffrax.SaveAt(subs=[diffrax.SubSaveAt(t1=True)])}),
        (TypeError, r"`simulate\(event=...\)` takes a `diffrax.Event\(cond_fn, root_finder\)`; got",
         {"event": lambda t, y, args, **kwargs: y[0]}),
        (TypeError, r"`simulate\(solver=...\)` takes a diffrax solver such as .* not a class",
         {"solver": diffrax.Dopri5}),
        (TypeError, "wraps the solver itself: pass the solver inside Projected and `proj",
         {"solver": rj.solvers.Projected(diffrax.Dopri5(), MODEL, rj.projection.Explicit())}),
        (TypeError, "pass the solver inside Recharted",
         {"solver": rj.solvers.Recharted(diffrax.Dopri5(), MODEL)}),
        (TypeError, r"`simulate\(projection=...\)` takes True, False or a projection such as",
         {"projection": "explicit"}),
        (TypeError, r"`simulate\(stepsize_controller=...\)` takes a diffrax controller such as",
         {"stepsize_controller": 1e-8}),
        (ValueError, r"`simulate\(rtol=...\)` must be a number >= 0; got -1e-08", {"rtol": -1e-8}),
        (ValueError, r"`simulate\(atol=...\)` must be a number >= 0; got nan", {"atol": np.nan}),
        (ValueError, r"`simulate\(rtol=...\)` must have shape \(\)", {"rtol": [1e-8, 1e-6]}),
        (TypeError, r"`simulate\(atol=...\)` must be real numbers; got None", {"atol": None}),
        (ValueError, r"rtol = 1e-16 and atol = 1e-17 are below what float64 reaches. .* 2e-15",
         {"rtol": 1e-16, "atol": 1e-17}),
        (ValueError, r"`simulate\(rtol=...\)` has no effect with `dt=`: `Dopri8` has no",
         {"rtol": 1e-8, "dt": 0.1}),
        (ValueError, r"`simulate\(atol=...\)` has no effect with `dt=`: `Variational`",
         {"atol": 1e-8, "dt": 0.1, "solver": rj.solvers.Variational()}),
        (ValueError, r"`simulate\(rtol=...\)` has no effect with `stepsize_controller=`",
         {"rtol": 1e-8, "stepsize_controller": diffrax.PIDController(rtol=1e-6, atol=1e-6)}),
        (ValueError, r"`simulate\(dt=...\)` must be positive. Got 0", {"dt": 0.0}),
        (ValueError, r"simulate\(dt=...\)` must be finite", {"dt": np.nan}),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(error, match, options):
    t1 = options.pop("t1", 1.0)
    with pytest.raises(error, match=match):
        rj.simulate(MODEL, START, t1, **options)


@pytest.mark.parametrize(("model", "got"), [(rj.NullSpace, "_ModuleMeta"), (None, "NoneType")])
def test_objects_other_than_models_raise(model, got):
    with pytest.raises(TypeError, match=rf"takes a system or a formulation such as .* got {got}"):
        rj.simulate(model, START, 1.0)


def test_systems_get_the_formulation_that_suits_them():
    four_bar = rj.problems.four_bar()
    pendulum = systems.case("pendulum")
    for system, state, kind in (
        (four_bar.system, four_bar.state0, rj.NullSpace),
        (pendulum.system, pendulum.state, rj.Relative),
        (TOP, START, rj.NullSpace),
    ):
        sol = rj.simulate(system, state, 0.02)
        assert type(sol.model) is kind and kind.__name__ in repr(sol)
        expected = rj.simulate(kind(system), state, 0.02)
        np.testing.assert_array_equal(sol.ys, expected.ys)
    with pytest.raises(ValueError, match="unknowns belong to a formulation; give it instead"):
        rj.simulate(four_bar.system, y0=sol.ys[-1], t1=1.0)


def test_invalid_states_raise():
    with pytest.raises(TypeError, match="encodes a `State`; got list"):
        rj.simulate(MODEL, [1.0, 0.0, 0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="unit quaternions, scalar first, to 1e-6"):
        rj.simulate(MODEL, rj.State(orientation=(2.0, 0.0, 0.0, 0.0)), 1.0)


def test_one_tolerance_may_be_zero():
    solution = rj.simulate(MODEL, START, 0.01, rtol=0.0, atol=1e-6)
    assert solution.result == rj.RESULTS.successful


@pytest.mark.float32
def test_tolerance_below_single_precision_raises():
    state = rj.State(angular_velocity=np.ones(3, np.float32))
    model = jax.tree.map(lambda x: x.astype(jnp.float32), MODEL)
    with pytest.raises(ValueError, match=r"below what float32 reaches. .* 1e-06, or use double"):
        rj.simulate(model, state, 1.0)
    # The tolerance in the message is sufficient.
    assert rj.simulate(model, state, 0.01, rtol=1e-6, atol=1e-6).result == rj.RESULTS.successful


SINGLE = jax.tree.map(lambda x: x.astype(jnp.float32), MODEL)
SINGLE_START = rj.State(angular_velocity=np.array([0.1, 0.2, 3.0], np.float32))


def single(t1, **options):
    options = dict(dt=0.1, solver=diffrax.Heun(), **options)
    return rj.simulate(SINGLE, SINGLE_START, t1, **options)


@pytest.mark.float32
@pytest.mark.parametrize(
    ("times", "saveat"),
    [(np.array([0.1, 0.3, 0.7]), False), ([0.1, 0.3, 0.7], False), ([0.1, 0.3, 0.7], True)],
    ids=["array", "list", "saveat"],
)
def test_double_precision_times_of_a_single_precision_run(times, saveat):
    """0.1 is rounded up and 0.7 down: times and end are compared after that, not between."""
    assert float(np.float32(0.1)) > 0.1
    assert float(np.float32(0.7)) < 0.7

    def run(t0, times):
        saved = {"saveat": diffrax.SaveAt(ts=times)} if saveat else {"ts": times}
        return single(times[-1], t0=t0, **saved).ts

    known = run(times[0], times)
    assert known.dtype == jnp.float32
    assert np.array_equal(known, np.array(times, np.float32))
    assert np.array_equal(jax.jit(lambda ts: run(ts[0], ts))(np.array(times)), known)


@pytest.mark.float32
def test_times_equal_in_single_precision_raise():
    with pytest.raises(ValueError, match=r"ts=...\)` must be strictly increasing in float32"):
        single(1.0, ts=np.array([0.5, 0.5 + 1e-9]))
    with pytest.raises(ValueError, match="needs t1 > t0; got t0 = 0.5, t1 = 0.5"):
        single(np.float64(0.5 + 1e-9), t0=0.5)
    # Seconds since 1970.
    with pytest.raises(ValueError, match=r"precision of float32 .* to 128 s; the run takes 300 s"):
        single(1.7e9 + 300.0, t0=1.7e9)
    with pytest.raises(ValueError, match=r"to 128 s; they are 0.1 s apart. Count times from the"):
        single(1.8e9, t0=1e9, ts=1.7e9 + np.arange(3) / 10)


@pytest.mark.parametrize(
    ("match", "function"),
    [
        ("needs t1 > t0", lambda x: rj.simulate(MODEL, START, x - 1.0)),
        (r"simulate\(t1=...\)` must be finite", lambda x: rj.simulate(MODEL, START, x / 0.0)),
        (r"dt=...\)` must be positive", lambda x: rj.simulate(MODEL, START, 1.0, dt=x - 2.0)),
    ],
)
def test_traced_values_are_checked_when_they_are_known(match, function):
    run = eqx.filter_jit(lambda x: function(x).ys)
    with pytest.raises(eqx.EquinoxRuntimeError, match=match):
        jax.block_until_ready(run(jnp.array(1.0)))


def test_indices_and_solvers_that_do_not_fit_raise():
    index_2, index_3 = rj.Absolute(TOP, index=2), rj.Absolute(TOP, index=3)
    with pytest.raises(ValueError, match=r"index=2\)` is a differential-algebraic.*`Dopri8`"):
        rj.simulate(index_2, START, 1.0)
    with pytest.raises(ValueError, match=r"`Seulex` .* of index up to 1; got .*3"):
        rj.simulate(index_3, START, 1.0, solver=rj.solvers.Seulex())
    with pytest.raises(ValueError, match=r"stabilized=True\)` is a form of index=2; got index=1"):
        rj.Absolute(TOP, index=1, stabilized=True)
    with pytest.raises(ValueError, match=r"takes two rates .*; got .* for index=2"):
        rj.Absolute(TOP, index=2, baumgarte=(1.0, 1.0))
