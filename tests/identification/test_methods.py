"""Robust losses, noise that is estimated, several starts, Gauss-Newton."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import Cauchy, Huber, Measurements, Parameter, Positive, identify
from rigidjax.identification.search.trust_region import reduce_problem

STIFFNESS, DAMPING = 4.0, 0.3
TS = np.linspace(0.0, 3.0, 61)
ANGLE, RATE = rj.JointCoordinate("hinge"), rj.JointRate("hinge")
NOISE = {ANGLE: 2e-3, RATE: 3e-2}


def stiffness_of(experiment):
    return experiment.model.system.forces[0].stiffness


def damping_of(experiment):
    return experiment.model.system.forces[0].damping


def model(stiffness=STIFFNESS, damping=DAMPING):
    body = rj.Body("bob", 1.0, (0.3, 0.3, 0.5), (0.5, 0.0, 0.0))
    hinge = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    return rj.NullSpace(rj.System(body, [hinge], [rj.TorsionSpring("hinge", stiffness, damping)]))


STATE0 = rj.consistent_state(
    model().system,
    rj.State((0.5, 0.0, 0.0), velocity=(0.0, 1.0, 0.0), angular_velocity=(0.0, 0.0, 2.0)),
)
PARAMETERS = (
    Parameter("stiffness", stiffness_of, Positive(), unit="N m"),
    Parameter("damping", damping_of, Positive(), unit="N m s"),
)


def closed_form(stiffness=STIFFNESS, damping=DAMPING):
    """Angle and rate of the hinge: a damped oscillator about the joint."""
    inertia = 0.5 + 1.0 * 0.25
    root = np.sqrt(stiffness / inertia - (0.5 * damping / inertia) ** 2)
    decay = 0.5 * damping / inertia
    angle = 2.0 / root * np.exp(-decay * TS) * np.sin(root * TS)
    rate = 2.0 * np.exp(-decay * TS) * (np.cos(root * TS) - decay / root * np.sin(root * TS))
    return angle[:, None], rate[:, None]


def measure(noise=None, outliers=0, seed=0):
    rng = np.random.default_rng(seed)
    values = {
        s: v + NOISE[s] * rng.standard_normal(v.shape)
        for s, v in zip((ANGLE, RATE), closed_form(), strict=True)
    }
    for k in rng.choice(len(TS), outliers, replace=False):
        values[ANGLE][k] += 0.5
    return Measurements(TS, {s: v.reshape(-1, *s.value_shape) for s, v in values.items()}, noise)


def start(stiffness=3.0, damping=0.5):
    return model(stiffness, damping)


@pytest.mark.exhaustive
def test_factorisation_does_not_modify_its_input(rng):
    """Least squares avoids LAPACK's `dormqr`, which XLA runs concurrently with readers of R."""
    J, r, damping = rng.normal(size=(20, 3)), rng.normal(size=20), 0.1
    step = jax.jit(lambda J, r: reduce_problem(J, r, len(r)).step(damping))
    assert "ormqr" not in step.lower(J, r).as_text()
    size = np.linalg.norm(J, axis=0)
    rows = np.concatenate([J, np.sqrt(damping) * np.diag(size)])
    expected = np.linalg.lstsq(rows, np.concatenate([-r, np.zeros(3)]), rcond=None)[0]
    np.testing.assert_allclose(step(J, r), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", [Huber(1.2), Cauchy(1.7)])
def test_losses_against_their_formulas(loss):
    """The root squared is twice the loss, whose derivative is the influence."""
    r = jnp.array([-30.0, -2.0, -1e-3, 0.0, 1e-6, 0.3, 1.2, 5.0])
    psi, derivative = loss.influence(np.asarray(r))

    def rho(r):
        return 0.5 * loss.root(r) ** 2

    assert np.allclose(jax.vmap(jax.grad(rho))(r), psi, rtol=1e-9, atol=1e-15)
    smooth = np.abs(np.abs(np.asarray(r)) - 1.2) > 1e-6
    second = jax.vmap(jax.grad(jax.grad(rho)))(r)
    assert np.allclose(second[smooth], derivative[smooth], rtol=1e-6, atol=1e-12)
    assert np.allclose(loss.slope(jnp.zeros(1)), 1.0)


def test_invalid_arguments_raise():
    data = measure(NOISE)
    with pytest.raises(ValueError, match=r"method=...\).*gauss-newton.*got 'newton'"):
        identify(start(), data, PARAMETERS, state0=STATE0, method="newton")  # pyright: ignore
    with pytest.raises(TypeError, match=r"loss=...\)` must be a loss .*Huber.*got 'huber'"):
        identify(start(), data, PARAMETERS, state0=STATE0, loss="huber")  # pyright: ignore
    with pytest.raises(ValueError, match=r"starts=...\)` must be a number of starts.*got 0"):
        identify(start(), data, PARAMETERS, state0=STATE0, starts=0)
    with pytest.raises(ValueError, match=r"Huber\(k=...\)` must be positive"):
        Huber(0.0)
    with pytest.raises(ValueError, match=r"Cauchy\(k=...\)` must be positive"):
        Cauchy(-1.0)
    one = Measurements(TS, {ANGLE: closed_form()[0][:, 0]}, {ANGLE: 1e-3})
    other = Measurements(TS, {ANGLE: closed_form()[0][:, 0]})
    with pytest.raises(ValueError, match=r"of a sensor must be given for every run"):
        identify(start(), [one, other], PARAMETERS, state0=STATE0)
