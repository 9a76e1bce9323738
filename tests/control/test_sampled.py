"""Sampled control against discrete-time references, its derivatives and wrong periods."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import rigidjax as rj
from rigidjax.io.names import unknown_names

PERIOD = 0.01
TIGHT = {"rtol": 1e-11, "atol": 1e-13}


class Gains(eqx.Module):
    """Linear state feedback; `names` of the joints."""

    K: jax.Array
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, t, view, count):
        q = [view.coordinates[name] for name in self.names]
        v = [view.rates[name] for name in self.names]
        return -self.K @ jnp.concatenate([*q, *v]), count + 1


def lqr(A, B, period):
    """Return the sampled system and its optimal gains with unit weights."""
    n, m = B.shape
    both = scipy.linalg.expm(period * np.block([[A, B], [np.zeros((m, n + m))]]))
    Ad, Bd = both[:n, :n], both[:n, n:]
    P = scipy.linalg.solve_discrete_are(Ad, Bd, np.eye(n), np.eye(m))
    return Ad, Bd, np.linalg.solve(np.eye(m) + Bd.T @ P @ Bd, Bd.T @ P @ Ad)


SLIDER = rj.Body("mass", 2.0, (1.0, 1.0, 1.0))
SLIDE = rj.Prismatic("ground", "mass", axis=(1, 0, 0), name="slide")


def slider(torque, **options):
    return rj.Relative(rj.System(SLIDER, SLIDE, rj.Motor("slide", torque), **options))


def test_linear_system_equals_the_matrix_exponential():
    """The values of the controller act two periods after their samples."""
    model, delay = slider(rj.Input("force")), 2
    Ad, Bd, K = lqr(np.array([[0, 1.0], [0, 0]]), np.array([[0], [0.5]]), PERIOD)
    controller = rj.SampledController(
        lambda t, view, s: (Gains(jnp.asarray(K), ("slide",))(t, view, s)[0][0], s),
        PERIOD,
        0,
        delay=delay,
    )
    x, queue, path, forces = np.array([1.0, 0.0]), [0.0] * delay, [], []
    for _ in range(101):
        queue.append(float((-K @ x)[0]))
        path.append(x)
        forces.append(queue.pop(0))
        x = Ad @ x + Bd[:, 0] * forces[-1]
    ts = PERIOD * np.arange(101)
    start = rj.jointed_state(model.system, {"slide": 1.0})
    run = rj.simulate(model, start, 1.0, ts=ts, inputs={"force": controller}, **TIGHT)
    np.testing.assert_allclose(run.coordinates["slide"][:, 0], np.array(path)[:, 0], atol=1e-11)
    np.testing.assert_allclose(run.inputs["force"], forces, atol=1e-10)


def double_pendulum(q, v, u):
    """Accelerations of two point masses on massless rods, relative angles from hanging."""
    m, length, g = 1.0, 1.0, 9.81
    a, b, da, db = q[0], q[0] + q[1], v[0], v[0] + v[1]
    c, s = np.cos(a - b), np.sin(a - b)
    mass = m * length**2 * np.array([[2, c], [c, 1.0]])
    # Generalised forces on the absolute angles: the second motor reacts on the first rod.
    forces = [
        u[0] - u[1] - m * length**2 * s * db**2 - 2 * m * g * length * np.sin(a),
        u[1] + m * length**2 * s * da**2 - m * g * length * np.sin(b),
    ]
    dda, ddb = np.linalg.solve(mass, forces)
    return np.array([dda, ddb - dda])


def double_pendulum_system():
    u = rj.Input("u", 2)
    one = rj.Body("one", 1.0, (1e-9,) * 3, position=(0, 0, -1))
    two = rj.Body("two", 1.0, (1e-9,) * 3, position=(0, 0, -2))
    joints = [
        rj.Revolute("ground", "one", (0, 0, 0), axis=(0, -1, 0), name="first"),
        rj.Revolute("one", "two", (0, 0, -1), axis=(0, -1, 0), name="second"),
    ]
    motors = [rj.Motor("first", u[0]), rj.Motor("second", u[1])]
    return rj.System([one, two], joints, [rj.Gravity((0, 0, -9.81)), *motors])


def integrate_in_pieces(K, q0, duration):
    """Return the state after every sample, by SciPy from sample to sample."""

    def field(t, x, u):
        return np.concatenate([x[2:], double_pendulum(x[:2], x[2:], u)])

    x, path = np.array([*q0, 0.0, 0.0]), []
    options = {"rtol": 1e-12, "atol": 1e-13, "first_step": PERIOD / 2}
    for _ in range(round(duration / PERIOD)):
        x = scipy.integrate.solve_ivp(field, (0, PERIOD), x, "DOP853", args=(-K @ x,), **options)
        x = x.y[:, -1]
        path.append(x)
    return np.array(path)


def test_a_minute_of_sampled_control_equals_scipy():
    system, names, q0 = double_pendulum_system(), ("first", "second"), [0.8, -0.5]
    # Optimal gains at rest, with unit weights.
    K = np.array([[-0.03, 0.02, 1.07, 0.03], [0.02, -0.07, 0.03, 1.0]])
    start = rj.jointed_state(system, dict(zip(names, q0, strict=True)))
    controller = rj.SampledController(Gains(jnp.asarray(K), names), PERIOD, 0)
    ts = np.concatenate([np.arange(0.1, 3, 0.1), [10.0, 60.0]])
    model = rj.Relative(system)
    run = rj.simulate(model, start, 60.0, ts=ts, inputs={"u": controller}, **TIGHT)
    samples = np.round(ts / PERIOD).astype(int) - 1
    expected = integrate_in_pieces(K, q0, 60.0)[samples]
    q = np.concatenate([run.coordinates[name] for name in names], axis=1)
    np.testing.assert_allclose(q, expected[:, :2], atol=1e-8)
    assert run.ys[-1, -1] == 6000  # the state of the controller counts its samples
    assert run.stats["num_rejected_steps"] == 0 and run.stats["num_steps"] == 6000


def test_each_sample_is_taken_once():
    """A controller that counts its samples: at the start, at saved times, beside transitions."""
    t0, counter = 0.3, rj.SampledController(lambda t, view, n: (n, n + 1.0), 0.1, 0.0)
    model = slider(rj.Input("force"))
    start = rj.jointed_state(model.system, {}, {"slide": 1.0})
    inputs, after = {"force": counter}, t0 + np.array([0, 0.05, 0.1, 0.15, 0.3, 0.35, 1.0])
    for options in ({}, {"dt": 0.05}):
        run = rj.simulate(model, start, t0 + 1, t0=t0, ts=after, inputs=inputs, **options)
        np.testing.assert_array_equal(run.ts, after)
        np.testing.assert_array_equal(run.inputs["force"], [0, 0, 1, 1, 3, 3, 10])

    def speed_up(t, state):
        return eqx.tree_at(lambda s: s.velocity, state, state.velocity * 1.01)

    @jax.vmap
    def last(at):
        kick = rj.Transition(lambda t, view: at - t, speed_up)
        run = rj.simulate(
            model, start, t0 + 1, t0=t0, ts=[t0 + 0.95], inputs=inputs, transitions=[kick],
            max_transitions=2,
        )  # fmt: skip
        return run.inputs["force"][0], run.transitions.count

    samples = t0 + 0.1 * np.arange(1, 10)
    times = np.concatenate([samples, np.nextafter(samples, 0), np.nextafter(samples, 2)])
    values, counts = last(times)
    np.testing.assert_array_equal(values, 9.0)
    np.testing.assert_array_equal(counts, 1)


def test_transitions_at_a_sample():
    """Functions of a sampled value fall through zero at a sample, and each acts once there."""
    model = slider(rj.Input("force"))
    controller = rj.SampledController(lambda t, view, s: (0.55 - t, s), 0.1)

    def speed_up(t, state):
        return eqx.tree_at(lambda s: s.velocity, state, state.velocity + jnp.array([1.0, 0, 0]))

    kicks = [rj.Transition(lambda t, view: view.inputs["force"], speed_up)] * 2
    sol = rj.simulate(
        model, rj.jointed_state(model.system, {}), 1.0, inputs={"force": controller},
        transitions=kicks, max_transitions=3, **TIGHT,
    )  # fmt: skip
    assert sol.transitions.count == 2
    np.testing.assert_allclose(sol.transitions.times[:2], 0.6, rtol=1e-11)
    forces = 0.55 - 0.1 * np.arange(10)
    distance = 2 * 0.4 + np.sum(0.5 * forces * 0.1 * (1.0 - 0.1 * np.arange(10) - 0.05))
    np.testing.assert_allclose(sol.coordinates["slide"][-1, 0], distance, rtol=1e-10)


def test_an_impact_beside_a_sample_acts_once():
    """Steps as short as round-off lie between the impact and the sample."""
    model, zero = slider(rj.Input("force")), rj.SampledController(lambda t, view, s: (0.0, s), 0.1)
    start = rj.jointed_state(model.system, {}, {"slide": 1.0})

    @jax.vmap
    def bounce(limit):
        stop = rj.Transition(rj.JointStop("slide", limit, "upper"), rj.Restitution(1.0))
        run = rj.simulate(
            model, start, 1.0, inputs={"force": zero}, transitions=[stop], max_transitions=2
        )
        return run.transitions.count, run.coordinates["slide"][-1, 0]

    limits = np.concatenate([0.1 * np.arange(1, 10), np.nextafter(0.1 * np.arange(1, 10), 0)])
    counts, ends = bounce(limits)
    np.testing.assert_array_equal(counts, 1)
    np.testing.assert_allclose(ends, 2 * limits - 1, atol=1e-12)


@pytest.mark.parametrize("ulps", [1, 28])
def test_the_end_of_a_run_just_before_a_sample_is_saved(ulps):
    model, zero = slider(rj.Input("force")), rj.SampledController(lambda t, view, s: (0.0, s), 0.1)
    start, end = rj.jointed_state(model.system, {}, {"slide": 1.0}), 0.1 - ulps * np.spacing(0.1)
    run = rj.simulate(model, start, end, ts=[0.05, end], inputs={"force": zero})
    np.testing.assert_allclose(run.coordinates["slide"][:, 0], [0.05, 0.1], rtol=1e-12)


def test_rounded_values():
    model = slider(rj.Input("force"))
    start = rj.jointed_state(model.system, {"slide": 1.0})
    controller = rj.SampledController(
        lambda t, view, s: (-view.coordinates["slide"][0], s), 0.1, 1, quantum=0.25
    )
    ts = np.linspace(0, 2, 21)
    run = rj.simulate(model, start, 2.0, ts=ts, inputs={"force": controller})
    assert unknown_names(run.model)[-2:] == ["force.held1", "force.state1"]
    values = -0.25 * np.round(np.asarray(run.coordinates["slide"][:, 0]) / 0.25)
    np.testing.assert_allclose(run.inputs["force"], values, atol=1e-12)


def test_wrong_controllers():
    def hold(t, view, s):
        return 0.0, s

    with pytest.raises(ValueError, match="must be positive, s; got -0.1"):
        rj.SampledController(hold, -0.1)
    with pytest.raises(ValueError, match=r"quantum=...\)` must be positive"):
        rj.SampledController(hold, 0.1, quantum=0.0)
    with pytest.raises(ValueError, match="an integer of at least 0; got 0.5"):
        rj.SampledController(hold, 0.1, delay=0.5)
    with pytest.raises(TypeError, match=r"must be a function function\(t, view, state\)"):
        rj.SampledController(lambda t, view: 0.0, 0.1)
    with pytest.raises(TypeError, match="is a pytree of real numbers and arrays; got 'x'"):
        rj.SampledController(hold, 0.1, "x")
    with pytest.raises(ValueError, match="must be a known number"):
        jax.jit(lambda p: rj.SampledController(hold, p).delay)(0.1)
    model = slider(rj.Input("force"))
    start = rj.jointed_state(model.system, {"slide": 1.0})

    def run(function, period, state=None, t1=1.0, **options):
        controller = rj.SampledController(function, period, state)
        return rj.simulate(model, start, t1, inputs={"force": controller}, **options)

    with pytest.raises(ValueError, match="the duration to be a multiple of its period, 0.3 s"):
        run(hold, 0.3)
    with pytest.raises(ValueError, match=r"the period to be a multiple of its step `dt`, 0.03 s"):
        run(hold, 0.1, dt=0.03)
    with pytest.raises(ValueError, match="needs known `t0`, `t1` and `dt`"):
        jax.jit(lambda t1: run(hold, 0.1, t1=t1).ys)(1.0)
    with pytest.raises(ValueError, match=r"must return a pair \(value, state\)"):
        run(lambda t, view, s: 0.0, 0.1)
    with pytest.raises(ValueError, match="must return a state of the structure"):
        run(lambda t, view, s: (0.0, (s, s)), 0.1, 0.0)
    with pytest.raises(TypeError, match="'force' needs known numbers, but JAX traces it"):
        run(lambda t, view, s: (float(t), s), 0.1)
    with pytest.raises(ValueError, match=r"of the input 'force' must return shape \(\)"):
        run(lambda t, view, s: (jnp.zeros(2), s), 0.1)
