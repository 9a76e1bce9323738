"""`rj.Stepper`: periods of a run as pure functions."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems

import rigidjax as rj

PERIOD = 0.02
TORQUES = np.array([3.0, -2.0, 5.0, 1.0])


def with_motor(name, joint):
    """Return a system that tests share, with a motor on a joint."""
    system, motor = systems.case(name).system, rj.Motor(joint, torque=rj.Input("u"))
    return rj.System(system.bodies, system.joints, [systems.GRAVITY, motor])


PENDULUM = with_motor("double pendulum", "hinge of lower")
MODEL = rj.Relative(PENDULUM)
START = rj.jointed_state(
    PENDULUM, {"hinge of upper": 0.4, "hinge of lower": -1.0}, {"hinge of upper": 1.0}
)
FIXED = rj.Stepper(MODEL, PERIOD, solver=diffrax.Dopri5(), dt=0.01)
ROD = with_motor("pendulum", "hinge of rod")
SPINNING = rj.jointed_state(ROD, {}, {"hinge of rod": 9.0})


def hold_signal(values):
    """Return the piecewise constant input as a signal."""
    ts = PERIOD * np.arange(len(values) + 1)
    return rj.Signal(ts, np.append(values, values[-1]), interpolation="hold")


def unknowns_after(stepper, y, values):
    """Return the unknowns after each period, one call each."""
    found = []
    for value in values:
        y = stepper.step(y, {"u": value})
        found.append(y.unknowns)
    return y, np.stack(found)


def test_periods_equal_one_run_with_a_piecewise_constant_input():
    model, tight = rj.Relative(ROD), dict(rtol=1e-11, atol=1e-11)
    stepper = rj.Stepper(model, PERIOD, **tight)
    y, found = unknowns_after(stepper, stepper.init(SPINNING), TORQUES)
    end = len(TORQUES) * PERIOD
    sol = rj.simulate(model, SPINNING, end, inputs={"u": hold_signal(TORQUES)}, **tight)
    np.testing.assert_allclose(found[-1], sol.ys[-1], rtol=0, atol=1e-10)
    assert y.t == pytest.approx(end, abs=1e-15)
    assert y.result == rj.RESULTS.successful
    assert int(y.num_steps) <= int(sol.stats["num_steps"]) + len(TORQUES)


@pytest.mark.parametrize("options", [{"rtol": 1e-11}, {"solver": diffrax.Tsit5(), "dt": 0.005}])
def test_controllers_sample_within_periods(options):
    """A PI controller with a delay, two samples a period: as in one run."""

    def control(t, view, total):
        angle = view.coordinates["hinge of rod"][0]
        return -2.0 * angle - 5.0 * total, total + 0.01 * angle

    model, inputs = rj.Relative(ROD), {"u": rj.SampledController(control, 0.01, 0.0, delay=1)}
    stepper = rj.Stepper(model, PERIOD, inputs=inputs, **options)
    y = stepper.step(stepper.step(stepper.init(SPINNING)))
    sol = rj.simulate(model, SPINNING, 2 * PERIOD, inputs=inputs, **options)
    found, expected = stepper.observe(y).coordinates, sol.coordinates
    np.testing.assert_allclose(
        found["hinge of rod"], expected["hinge of rod"][0], rtol=0, atol=1e-9
    )


def test_scan_batch_and_backends_agree():
    _, singly = unknowns_after(FIXED, FIXED.init(START), TORQUES)

    def rollout(stepper, state, torques):
        def advance(y, torque):
            y = stepper.step(y, {"u": torque})
            return y, y.unknowns

        return jax.lax.scan(advance, stepper.init(state), torques)[1]

    batch = jnp.stack([jnp.asarray(TORQUES), -jnp.asarray(TORQUES)])
    found = jax.jit(jax.vmap(lambda torques: rollout(FIXED, START, torques)))(batch)
    np.testing.assert_allclose(found[0], singly, rtol=0, atol=1e-13)
    by_xla = rj.Stepper(MODEL, PERIOD, solver=diffrax.Dopri5(), dt=0.01, backend="xla")
    other = jax.jit(lambda torques: rollout(by_xla, START, torques))(batch[1])
    np.testing.assert_allclose(found[1], other, rtol=0, atol=1e-13)


def test_policies_and_signals_of_all_periods():
    def policy(t, view):
        return -3.0 * view.coordinates["hinge of lower"][0] + 0.5 * t

    options = dict(solver=diffrax.Dopri5(), dt=0.01)
    stepper = rj.Stepper(MODEL, PERIOD, inputs={"u": policy}, **options)
    y = stepper.step(stepper.step(stepper.init(START)))
    sol = rj.simulate(MODEL, START, 2 * PERIOD, inputs={"u": policy}, **options)
    np.testing.assert_allclose(y.unknowns, sol.ys[-1], rtol=0, atol=1e-13)
    signal = hold_signal(TORQUES)
    stepper = rj.Stepper(MODEL, 2 * PERIOD, inputs={"u": signal}, **options)
    y = stepper.step(stepper.step(stepper.init(START)))
    sol = rj.simulate(MODEL, START, 4 * PERIOD, inputs={"u": signal}, **options)
    np.testing.assert_allclose(y.unknowns, sol.ys[-1], rtol=0, atol=1e-13)
    late = stepper.step(y)
    assert late.result == rj.RESULTS.signal_ended and jnp.isnan(late.unknowns).all()


def test_failures_are_those_of_single_environments():
    start = jax.vmap(lambda _: FIXED.init(START))(jnp.arange(2))
    step = jax.jit(jax.vmap(lambda y, torque: FIXED.step(y, {"u": torque})))
    y = step(start, jnp.array([1.0, jnp.nan]))
    y = step(y, jnp.array([1.0, 1.0]))
    alone = FIXED.step(FIXED.step(FIXED.init(START), {"u": 1.0}), {"u": 1.0})
    np.testing.assert_allclose(y.unknowns[0], alone.unknowns, rtol=0, atol=1e-13)
    assert jnp.isnan(y.unknowns[1]).all()
    names = [y.result == rj.RESULTS.successful, y.result == rj.RESULTS.nonfinite_state]
    assert np.array_equal(names, [[True, False], [False, True]])

    def init(scale):
        return FIXED.init(eqx.tree_at(lambda s: s.orientation, START, scale * START.orientation))

    begun = jax.jit(jax.vmap(init))(jnp.array([1.0, 3.0]))
    assert np.array_equal(begun.result == rj.RESULTS.invalid_input, [False, True])
    assert np.array_equal(jnp.isnan(begun.unknowns).any(1), [False, True])
    short = rj.Stepper(MODEL, 1.0, solver=diffrax.Dopri5(), max_steps=3)
    y = short.step(short.init(START))
    assert y.result == rj.RESULTS.max_steps_reached and jnp.isnan(y.unknowns).all()


def test_bad_arguments_when_built():
    with pytest.raises(TypeError, match="takes a formulation such as"):
        rj.Stepper(PENDULUM, 0.1)
    with pytest.raises(ValueError, match=r"Stepper\(period=...\)` must be positive, s; got -1"):
        rj.Stepper(MODEL, -1.0)
    with pytest.raises(ValueError, match="known number of seconds; got a traced value"):
        jax.eval_shape(lambda period: rj.Stepper(MODEL, period), 1.0)
    with pytest.raises(ValueError, match=r"multiple of the step; got 0.02 s and 0.015 s. Use"):
        rj.Stepper(MODEL, 0.02, dt=0.015)
    with pytest.raises(ValueError, match=r"Stepper\(rtol=...\)` has no effect with `dt=`"):
        rj.Stepper(MODEL, 0.02, dt=0.01, rtol=1e-3)
    with pytest.raises(TypeError, match=r"Stepper\(solver=...\)` takes a diffrax solver"):
        rj.Stepper(MODEL, 0.02, solver=diffrax.Dopri5)
    with pytest.raises(ValueError, match=r"fixed length: pass `Stepper\(dt=...\)`"):
        rj.Stepper(rj.NullSpace(PENDULUM), 0.02, solver=rj.solvers.EnergyMomentum())
    with pytest.raises(ValueError, match=r"inputs of `Stepper.step` make them jump"):
        index_3 = rj.Absolute(PENDULUM, index=3)
        rj.Stepper(index_3, 0.02, solver=rj.solvers.GeneralizedAlpha(), dt=0.01)
    with pytest.raises(ValueError, match="is a differential-algebraic equation"):
        rj.Stepper(rj.Absolute(PENDULUM, index=2), 0.02)
    with pytest.raises(ValueError, match="does not watch the singularities of `EulerAngles`"):
        rj.Stepper(rj.NullSpace(PENDULUM, rj.EulerAngles("ZXZ"), recharting=False), 0.02)
    with pytest.raises(ValueError, match=r"Stepper\(inputs=...\)`: there is no input called 'v'"):
        rj.Stepper(MODEL, 0.02, inputs={"v": 1.0})
    controller = rj.SampledController(lambda t, view, state: (0.0, state), 0.03)
    with pytest.raises(ValueError, match="to be a multiple of its period, 0.03 s; got 0.02 s"):
        rj.Stepper(MODEL, 0.02, inputs={"u": controller})
    with pytest.raises(TypeError, match=r"Stepper\(inputs=...\)` must be a dict of values"):
        rj.Stepper(MODEL, 0.02, inputs=[1.0])
    with pytest.raises(ValueError, match='must be "auto", "native" or "xla"'):
        rj.Stepper(MODEL, 0.02, backend="gpu")
    with pytest.raises(ValueError, match="integer of at least 1; got 0"):
        rj.Stepper(MODEL, 0.02, max_steps=0)


class Late(eqx.Module):
    """An input that a law evaluates 0.3 s later."""

    law: rj.Input

    def __call__(self, t):
        return self.law(t - 0.3)


@pytest.mark.parametrize("options", [{}, {"solver": diffrax.Dopri5(), "dt": 0.05}])
def test_laws_that_evaluate_an_input_at_another_time(options):
    """2 N for 0.5 s push 2 kg 0.3 s later: 0.225 m after 1 s, and 0.375 m without the delay."""
    ball, rail = rj.Body.sphere("ball", 0.1, mass=2.0), rj.Prismatic("ground", "ball", (1, 0, 0))
    system = rj.System(ball, rail, rj.Motor(rail, Late(rj.Input("u", default=None))))
    model = rj.Relative(system)
    with pytest.raises(ValueError, match="evaluates the input 'u' at another time than that"):
        rj.Stepper(model, 0.5, **options)
    pulse = rj.Signal([0.0, 0.5], [2.0, 0.0], interpolation="hold", extrapolation="zero")
    stepper = rj.Stepper(model, 0.5, inputs={"u": pulse}, **options)
    y = stepper.step(stepper.step(stepper.init(system.reference_state())))
    np.testing.assert_allclose(y.unknowns[0], 0.225, rtol=1e-12)


def test_bad_inputs_of_a_step():
    y = FIXED.init(START)
    with pytest.raises(ValueError, match=r"there is no input called 'U'. The inputs are"):
        FIXED.step(y, {"U": 1.0})
    with pytest.raises(ValueError, match=r"'u': ...}\)` must have shape \(\); got shape \(2,\)"):
        FIXED.step(y, {"u": jnp.zeros(2)})
    with pytest.raises(ValueError, match="must be finite numbers"):
        FIXED.step(y, {"u": np.inf})
    with pytest.raises(TypeError, match="takes a dict of values by name; got 1.0"):
        FIXED.step(y, 1.0)
    with pytest.raises(TypeError, match="Policies and signals are given to"):
        FIXED.step(y, {"u": lambda t, view: 0.0})
    bound = rj.Stepper(MODEL, 0.02, inputs={"u": 1.0})
    with pytest.raises(ValueError, match=r"was given to `Stepper\(inputs=...\)` already"):
        bound.step(y, {"u": 1.0})
    motor = rj.Motor("hinge of rod", torque=rj.Input("torque", default=None))
    system = rj.System(ROD.bodies, ROD.joints, motor)
    stepper = rj.Stepper(rj.Relative(system), 0.02, solver=diffrax.Dopri5(), dt=0.02)
    with pytest.raises(ValueError, match="no value for the input 'torque', which has no default"):
        stepper.step(stepper.init(SPINNING))
    with pytest.raises(ValueError, match="must be unit quaternions"):
        FIXED.init(eqx.tree_at(lambda s: s.orientation, START, 3 * START.orientation))
