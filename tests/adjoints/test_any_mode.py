"""The adjoint of whole runs in plain diffrax: backwards in time, and what it evaluates."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.adjoints import explicit
from rigidjax.adjoints.traced_solve import is_supported
from rigidjax.solvers.wrappers.perturbed import LinearizedField, Perturbed, Probe

THETA = jnp.array([50.0, 42.0, 10.0, 108.8, 0.1, 0.2, 5.0])
WEIGHTS = jnp.array([1.0, -2.0, 3.0])


def scalar(theta):
    """A sum at the end of a run of a heavy top; `theta`: moments, weight moment, start rates."""
    body = rj.FixedPointBody(theta[:3], rj.AxialGravityPotential(theta[3]), physical=False)
    start = rj.State(orientation=[0.8, 0.6, 0.0, 0.0], angular_velocity=theta[4:])
    options = dict(solver=diffrax.Dopri5(), max_steps=128, rtol=1e-7, atol=1e-7)
    states = rj.simulate(rj.NullSpace(body), start, 0.4, **options).states
    return jnp.sum(states.angular_velocity[:, 0] @ WEIGHTS) + jnp.sum(states.orientation[:, 0, 1])


def test_backwards_in_time():
    """Values and derivatives of a run from 0 to -1, by a value that the field closes over."""
    ts = jnp.array([-0.3, -1.0])

    def end(theta):
        field = lambda t, y, args: -theta * (1 + t) * y  # noqa: E731
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, -1.0, None, jnp.array([1.0]),
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
    controller = diffrax.PIDController(rtol=1e-6, atol=1e-6)
    base = {
        "solver": diffrax.Dopri5(), "saveat": end, "terms": term, "event": None, "max_steps": 16,
        "stepsize_controller": controller,
    }  # fmt: skip
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
