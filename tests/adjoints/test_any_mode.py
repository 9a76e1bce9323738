"""Derivatives of whole runs: forward = reverse = differences, whatever is saved and wrapped."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.adjoints import explicit
from rigidjax.adjoints.traced_solve import is_supported
from rigidjax.solvers import Radau5
from rigidjax.solvers.wrappers.perturbed import LinearizedField, Perturbed, Probe

THETA = jnp.array([50.0, 42.0, 10.0, 108.8, 0.1, 0.2, 5.0])
WEIGHTS = jnp.array([1.0, -2.0, 3.0])


def run(theta, t1=0.4, **options):
    """Body rates of a heavy top; `theta`: moments, weight moment, start rates."""
    body = rj.FixedPointBody(theta[:3], rj.AxialGravityPotential(theta[3]), physical=False)
    model = rj.NullSpace(body, options.pop("rotation", None))
    start = rj.State(orientation=[0.8, 0.6, 0.0, 0.0], angular_velocity=theta[4:])
    settings = dict(solver=diffrax.Dopri5(), max_steps=128)
    settings |= {} if "dt" in options else dict(rtol=1e-7, atol=1e-7)
    return rj.simulate(model, start, t1, **{**settings, **options})


def scalar(theta, t1=0.4, **options):
    states = run(theta, t1, **options).states
    return jnp.sum(states.angular_velocity[:, 0] @ WEIGHTS) + jnp.sum(states.orientation[:, 0, 1])


CASES = {
    "end": {},
    "times": dict(ts=jnp.array([0.0, 0.05, 0.051, 0.2, 0.4])),
    "no projection": dict(projection=False, ts=jnp.array([0.1, 0.3])),
    "fixed step": dict(dt=0.03),
    "moving charts": dict(rotation=rj.RodriguesParameters(), ts=jnp.array([0.2, 0.4]), t1=0.4),
    "many stages": dict(solver=diffrax.Dopri8()),
    "implicit": dict(solver=diffrax.Kvaerno3(), rtol=1e-5, atol=1e-5),
}


@pytest.mark.exhaustive(
    "fixed step", "implicit", "many stages", "moving charts", "no projection", "times"
)
@pytest.mark.parametrize("case", CASES)
def test_reverse_equals_forward_and_differences(case):
    options = CASES[case]
    forward = jax.jit(jax.jacfwd(lambda theta: scalar(theta, **options)))(THETA)
    reverse = jax.jit(jax.grad(lambda theta: scalar(theta, **options)))(THETA)
    # Round-off over at most 128 steps, gradients of order one.
    tolerance = 1e-11 if case != "implicit" else 1e-6  # the Newton iterations stop at 1e-5
    np.testing.assert_allclose(reverse, forward, atol=tolerance, rtol=tolerance)
    if case == "fixed step":
        # With a fixed step the run is a smooth function: differences are good to 1e-8.
        value = jax.jit(lambda theta: scalar(theta, **options))
        h = 1e-4
        differences = [(value(THETA + h * e) - value(THETA - h * e)) / (2 * h) for e in jnp.eye(7)]
        np.testing.assert_allclose(reverse, jnp.stack(differences), rtol=1e-7, atol=1e-8)


def test_closed_over_values_are_differentiated():
    def solve(theta):
        term = diffrax.ODETerm(lambda t, y, args: -theta * y)
        controller = diffrax.PIDController(rtol=1e-8, atol=1e-8)
        solution = diffrax.diffeqsolve(
            term,
            diffrax.Tsit5(),
            0.0,
            1.0,
            None,
            jnp.array([1.0]),
            stepsize_controller=controller,
            adjoint=rj.AnyMode(),
            max_steps=256,
        )
        return solution.ys[-1, 0]

    expected = -np.exp(-1.5)
    np.testing.assert_allclose(jax.jit(jax.grad(solve))(1.5), expected, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(solve))(1.5), expected, rtol=1e-7)


@pytest.mark.exhaustive(but=("solver1-False",))
@pytest.mark.parametrize(
    "solver, closes", [(diffrax.Tsit5(), True), (diffrax.Tsit5(), False), (Radau5(), False)]
)
def test_backwards_in_time(solver, closes):
    """Values and derivatives of a run from 0 to -1, alone and in a batch."""
    ts = jnp.array([-0.3, -1.0])

    def end(theta):
        field = lambda t, y, args: -(theta if closes else args) * (1 + t) * y  # noqa: E731
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field), solver, 0.0, -1.0, None, jnp.array([1.0]), theta,
            stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-9),
            saveat=diffrax.SaveAt(ts=ts), adjoint=rj.AnyMode(), max_steps=256,
        ).ys[:, 0]  # fmt: skip

    theta = jnp.array(1.5)
    exponent = -(ts + ts * ts / 2)
    value = np.exp(theta * exponent)
    rates = jax.jit(lambda theta: (jax.jacrev(end)(theta), jax.jacfwd(end)(theta)))(theta)
    values = jax.jit(jax.vmap(end))(theta[None])
    np.testing.assert_allclose(values[0], value, rtol=1e-7)
    np.testing.assert_allclose(rates, [exponent * value] * 2, rtol=1e-7)


def test_cases_supported_by_the_discrete_adjoint():
    # Everything else falls back to diffrax's checkpointed reverse mode.
    end = diffrax.SaveAt(t1=True)
    term = diffrax.ODETerm(lambda t, y, args: y)
    base = dict(
        solver=diffrax.Dopri5(),
        saveat=end,
        terms=term,
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
        event=None,
        max_steps=16,
    )
    assert is_supported(base)
    assert not is_supported({**base, "solver": diffrax.Kvaerno5()})
    assert not is_supported({**base, "saveat": diffrax.SaveAt(dense=True)})
    assert not is_supported({**base, "saveat": diffrax.SaveAt(steps=True)})
    assert not is_supported({**base, "event": diffrax.Event(lambda t, y, args, **kw: y[0])})
    assert not is_supported({**base, "max_steps": None})


def test_field_and_its_tangent_are_evaluated_together():
    calls = []

    def field(t, y, args):
        calls.append(t)
        return -args * y**2

    rate, y, v = jnp.asarray(2.0), jnp.asarray([1.0, 3.0]), jnp.asarray([0.1, 0.2])
    tree, marks = (diffrax.ODETerm(field), rate), (False, True)
    perturbed = Perturbed(tree, marks, jnp.asarray(0.0))

    def both(y):
        return LinearizedField(perturbed, True)(jnp.asarray(0.5), Probe(y, v), rate)

    out = both(y)
    assert len(calls) == 1
    np.testing.assert_allclose(out.y, -2.0 * y**2)
    np.testing.assert_allclose(out.v, -4.0 * y * v)
    _, tangent = jax.jvp(both, (y,), (v,))
    np.testing.assert_allclose(tangent.y, -4.0 * y * v)
    assert not np.any(tangent.v)  # The probe chooses steps only.


def test_cotangents_are_computed_for_wanted_arrays_alone(monkeypatch):
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    counts = []
    backward = explicit._ExplicitRun.backward

    def count_and_transpose(run, *args):
        counts.append(len(jax.tree.leaves(run.theta)))
        return backward(run, *args)

    monkeypatch.setattr(explicit._ExplicitRun, "backward", count_and_transpose)
    of_weight = jax.grad(lambda w: scalar([*THETA[:3].tolist(), w, *THETA[4:].tolist()]))(THETA[3])
    of_all = jax.grad(scalar)(THETA)
    np.testing.assert_allclose(of_weight, of_all[3], rtol=1e-6)
    assert 0 < counts[0] < counts[1]
