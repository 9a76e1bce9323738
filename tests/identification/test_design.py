"""Runs that are designed to tell much."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification import (
    Bounded,
    GaussianPrior,
    Gyroscope,
    Parameter,
    Positive,
    PrincipalInertia,
    Unconstrained,
    design_experiment,
    excitation,
)
from rigidjax.identification.design.design import (
    CRITERIA,
    Designer,
    _order_components,
    information_factor,
)
from rigidjax.identification.design.plan import make_plan

TS = np.linspace(0.0, 0.5, 11)
SENSORS = {Gyroscope(): 0.01}
STATE = rj.State(angular_velocity=(1.0, 5.0, -3.0))
HOW = rj.Simulation(max_steps=512)


def inertia_of(experiment):
    return experiment.model.system.inertia


def rates_of(experiment):
    return experiment.state0.angular_velocity


def sine_of(experiment):
    return experiment.model.system.moment.sine


BODY = rj.NullSpace(rj.FixedPointBody((0.02, 0.017, 0.006)))
LABELS = ("I1", "I2", "I3")
MOMENTS = Parameter("inertia", inertia_of, PrincipalInertia(fixed=("I3",)), labels=LABELS)
INPUT = Parameter("start", rates_of, Bounded(-6.0, 6.0), unit="rad/s")


@pytest.fixture(scope="module")
def design():
    return design_experiment(BODY, STATE, TS, SENSORS, MOMENTS, INPUT, num_starts=4, max_steps=512)


def designer(criterion="D", count=2):
    plan = make_plan("design_experiment", BODY, STATE, TS, SENSORS, MOMENTS, HOW)
    leaf = INPUT.leaf(plan.experiment)
    return Designer(plan, (INPUT,), (leaf,), jnp.asarray(plan.scale()), (0, 1), count, criterion)


@eqx.filter_jit
def criterion_of(designer, u):
    return jax.lax.map(lambda u: designer.value(u)[0], u)


@pytest.mark.exhaustive
def test_design_is_described(design):
    assert design.converged and design.criterion == "D"
    assert set(design.inputs) == {"start[0]", "start[1]", "start[2]"}
    chosen = np.array(list(design.inputs.values()))
    assert np.all(np.abs(chosen) <= 6)
    np.testing.assert_array_equal(design.state0.angular_velocity[0], chosen)
    np.testing.assert_array_equal(design.model.system.inertia, BODY.system.inertia)
    # The criterion is half the mean of log det F.
    np.testing.assert_allclose(design.value, design.after.d_score / 4, rtol=1e-9)
    assert design.values.shape == (4,) and design.value == design.values.max()
    assert np.all(np.diff(design.history) >= 0) and design.history[-1] == design.value
    again = excitation(design.model, design.state0, TS, SENSORS, MOMENTS)
    np.testing.assert_allclose(again.information, design.after.information, rtol=1e-9)
    assert "start[0] = " in str(design) and "I1: standard deviation" in str(design)
    assert "Not converged" not in str(design) and design.notes == ()
    short = dataclasses.replace(design, converged=False)
    assert "Not converged: the criterion was still growing after" in str(short)


@pytest.mark.exhaustive
@pytest.mark.parametrize("criterion", CRITERIA)
def test_gradient_against_finite_differences(criterion):
    at = designer(criterion)
    u = jnp.array([0.3, 0.8, -0.5])
    value, gradient, okay = eqx.filter_jit(Designer.value_and_gradient)(at, u)
    steps = 1e-4 * np.eye(3)
    values = np.asarray(criterion_of(at, jnp.asarray(np.concatenate([u + steps, u - steps]))))
    # Fourth-order terms of the difference are at 1e-8; the discrete solve is smooth to its
    # tolerance, 1e-8, over the step.
    np.testing.assert_allclose(gradient, (values[:3] - values[3:]) / 2e-4, rtol=1e-4, atol=1e-4)
    assert okay and np.isfinite(value)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_criteria_by_eigenvalues(criterion, rng):
    """For a part of the parameters: by the inverse of the block of the covariance."""
    J = rng.normal(size=(20, 5))
    block = np.linalg.inv(np.linalg.inv(J.T @ J)[-3:, -3:])
    eigenvalues = np.linalg.eigvalsh(block)
    expected = {
        "D": np.log(eigenvalues).sum() / 6,
        "A": -0.5 * np.log(np.mean(1 / eigenvalues)),
        "E": 0.5 * np.log(eigenvalues[0]),
    }[criterion]
    R, regular = information_factor(jnp.asarray(J), 3, 1e-7)
    np.testing.assert_allclose(CRITERIA[criterion](R), expected, rtol=1e-12)
    assert regular


def test_singular_information_has_no_criterion(rng):
    """Round-off makes its determinant finite: only the singular values tell."""
    J = rng.normal(size=(20, 5))
    J[:, 1] = J[:, 3] - 2 * J[:, 4]
    R, regular = information_factor(jnp.asarray(J), 3, 1e-7)
    assert np.isfinite(CRITERIA["D"](R)) and not regular


@pytest.mark.exhaustive
def test_torque_profile_against_hand_calculation():
    """A wheel at rest under a moment a1 sin(w t) + a2 sin(2 w t), known, with |a| bounded.

    Its rate is linear in both, and so is the derivative by I: the information is a square form of
    (a1, a2), largest in a corner of the bounds, where it can be written down.
    """
    I, w, bound = 0.4, 2.0, 0.3
    profile = rj.FourierSeries(w, sine=np.array([[0.0, 0, 0.1], [0.0, 0, 0.05]]))
    model = rj.NullSpace(rj.FixedPointBody((0.3, 0.3, I), moment=profile))
    still = rj.State(angular_velocity=(0.0, 0.0, 0.0))
    found = design_experiment(
        model,
        still,
        TS,
        SENSORS,
        Parameter("I", inertia_of, Positive(which=(2,)), labels=LABELS),
        Parameter("a", sine_of, Bounded(-bound, bound, which=(2, 5))),
        num_starts=2,
        max_steps=512,
    )

    def information(a):
        rate = sum(x * (1 - np.cos(k * w * TS)) / (k * w) for k, x in enumerate(a, 1))
        return np.sum((rate / I**2 / 0.01) ** 2)

    corners = [information((x, y)) for x in (-bound, bound) for y in (-bound, bound)]
    # The rate, 0.04 rad/s, is simulated to 1e-8 rad/s; at a bound the criterion is flat.
    np.testing.assert_allclose(found.after.information[0, 0], max(corners), rtol=1e-6)
    np.testing.assert_allclose(np.abs(list(found.inputs.values())), bound, rtol=1e-4)
    assert found.inputs["a[0,2]"] * found.inputs["a[1,2]"] > 0
    before = information((0.1, 0.05))
    np.testing.assert_allclose(found.before.information[0, 0], before, rtol=1e-6)


def test_parameters_of_interest_come_last():
    """By name, or by the label of a component; what is held fixed is in no information."""
    rates = Parameter("rates", rates_of)
    plan = make_plan("design_experiment", BODY, STATE, TS, SENSORS, (MOMENTS, rates), HOW)
    assert _order_components(plan, None) == ((0, 1, 3, 4, 5), 5)
    assert _order_components(plan, ("inertia",)) == ((3, 4, 5, 0, 1), 2)
    assert _order_components(plan, ("rates[1]", "I2")) == ((0, 3, 5, 1, 4), 2)


def test_invalid_arguments_raise():
    def design(parameters=MOMENTS, inputs=INPUT, state=STATE, **options):
        return design_experiment(BODY, state, TS, SENSORS, parameters, inputs, **options)

    with pytest.raises(ValueError, match=r"must be one of \['D', 'A', 'E'\]; got 'G'"):
        design(criterion="G")
    with pytest.raises(ValueError, match="`design_experiment.inputs=....` needs inputs of"):
        design(inputs=())
    with pytest.raises(ValueError, match="The input 'start' needs bounds"):
        design(inputs=Parameter("start", rates_of, Unconstrained()))
    with pytest.raises(ValueError, match="input 'start' cannot be used: a bounded parameter must"):
        design(inputs=Parameter("start", rates_of, Bounded(-2.0, 2.0)))
    with pytest.raises(ValueError, match="must start between .*; got .7. 7. 7."):
        design(inputs=Parameter("start", rates_of, Bounded(-6.0, 6.0), start=[[7.0, 7.0, 7.0]]))
    known = Parameter("start", rates_of, Bounded(-6.0, 6.0), prior=GaussianPrior(1.0, 1.0))
    with pytest.raises(ValueError, match=r"experiment\(inputs=...\)` takes no priors; leave"):
        design(inputs=known)
    with pytest.raises(ValueError, match="must be at least 1; got 0 and 100"):
        design(num_starts=0)
    with pytest.raises(ValueError, match=r"labels out of \['I1', 'I2'\]; got \('I3',\)"):
        design(interest=("I3",))


@pytest.mark.exhaustive
def test_design_without_excitation_raises():
    """The common scale of the moments is not determined, whatever the start rates."""
    everything = Parameter("inertia", inertia_of, PrincipalInertia(), labels=LABELS)
    with pytest.raises(ValueError, match="not determined at any start. The data determine"):
        design_experiment(BODY, STATE, TS, SENSORS, everything, INPUT, num_starts=2, max_steps=512)


@pytest.mark.exhaustive
def test_d_optimal_design_near_the_separatrix_is_noted():
    """Over a long run D grows towards the separatrix, where the information becomes singular."""
    ts = np.linspace(0.0, 4.0, 21)
    found = design_experiment(
        BODY, STATE, ts, SENSORS, MOMENTS, INPUT, num_starts=2, max_iterations=40
    )
    assert np.all(np.isfinite(found.values)) and found.value > found.before.d_score / 4
    assert found.after.identifiability.identifiable and 1e6 < found.after.condition < 1e7
    assert "close to one whose information is singular" in found.notes[0]
    assert found.notes[0] in str(found) and found.before.condition < 1e6


class _Kink(eqx.Module):
    """A moment with an infinite slope by its size at zero."""

    size: jax.Array

    def __call__(self, t, R, Omega):
        return jnp.array([1e-3, 2e-3, 0.0]) * (1.0 + jnp.sqrt(jnp.abs(self.size)))


@pytest.mark.exhaustive
def test_input_without_effect_raises():
    model = rj.NullSpace(rj.FixedPointBody((0.02, 0.017, 0.006), moment=_Kink(jnp.array(0.0))))
    size = Parameter("size", lambda e: e.model.system.moment.size, Bounded(-1.0, 1.0))
    with pytest.raises(ValueError, match="the criterion has no finite derivative by the inputs"):
        design_experiment(model, STATE, TS, SENSORS, MOMENTS, size, num_starts=1, max_steps=512)
