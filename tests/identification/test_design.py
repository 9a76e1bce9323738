"""Runs that are designed to tell much."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.cases import INERTIA, LABELS, inertia_of, rates_of

import rigidjax as rj
from rigidjax.identification import (
    Bounded,
    GaussianPrior,
    Gyroscope,
    Parameter,
    PrincipalInertia,
    design_experiment,
)
from rigidjax.identification.design.design import CRITERIA, _order_components, information_factor
from rigidjax.identification.design.plan import make_plan

TS = np.linspace(0.0, 0.5, 11)
SENSORS = {Gyroscope(): 0.01}
STATE = rj.State(angular_velocity=(1.0, 5.0, -3.0))
HOW = rj.Simulation(max_steps=512)


BODY = rj.NullSpace(rj.FixedPointBody(INERTIA))
MOMENTS = Parameter("inertia", inertia_of, PrincipalInertia(fixed=("I3",)), labels=LABELS)
INPUT = Parameter("start", rates_of, Bounded(-6.0, 6.0), unit="rad/s")


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


def test_parameters_of_interest_come_last():
    """By name, or by the label of a component; what is held fixed is in no information."""
    rates = Parameter("rates", rates_of)
    plan = make_plan("design_experiment", BODY, STATE, TS, SENSORS, (MOMENTS, rates), HOW)
    assert _order_components(plan, None) == ((0, 1, 3, 4, 5), 5)
    assert _order_components(plan, ("inertia",)) == ((3, 4, 5, 0, 1), 2)
    assert _order_components(plan, ("rates[1]", "I2")) == ((0, 3, 5, 1, 4), 2)


def bound_rates(bound, start=None):
    return Parameter("start", rates_of, Bounded(-bound, bound), start=start)


KNOWN = Parameter("start", rates_of, Bounded(-6.0, 6.0), prior=GaussianPrior(1.0, 1.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "G"}, r"must be one of \['D', 'A', 'E'\]; got 'G'"),
        ({"inputs": ()}, "`design_experiment.inputs=....` needs inputs of"),
        ({"inputs": Parameter("start", rates_of)}, "The input 'start' needs bounds"),
        ({"inputs": bound_rates(2.0)}, "'start' cannot be used: a bounded parameter must"),
        ({"inputs": bound_rates(6.0, [[7.0] * 3])}, "must start between .*; got .7. 7. 7."),
        ({"inputs": KNOWN}, r"experiment\(inputs=...\)` takes no priors; leave"),
        ({"num_starts": 0}, "must be at least 1; got 0 and 100"),
        ({"interest": ("I3",)}, r"labels out of \['I1', 'I2'\]; got \('I3',\)"),
    ],
)
def test_invalid_arguments_raise(options, message):
    with pytest.raises(ValueError, match=message):
        design_experiment(BODY, STATE, TS, SENSORS, MOMENTS, **{"inputs": INPUT} | options)


def design_in_euler_steps(model, parameters, inputs):
    """Design by few steps of a short method, which compiles quickly."""
    return design_experiment(
        model, STATE, TS[:4], SENSORS, parameters, inputs, num_starts=1, max_iterations=2,
        solver=diffrax.Euler(), dt=0.05,
    )  # fmt: skip


def test_design_without_excitation_raises():
    """The common scale of the moments is not determined, whatever the start rates."""
    everything = Parameter("inertia", inertia_of, PrincipalInertia(), labels=LABELS)
    with pytest.raises(ValueError, match="not determined at any start. The data determine"):
        design_in_euler_steps(BODY, everything, INPUT)


class _Kink(eqx.Module):
    """A moment with an infinite slope by its size at zero, which is not that of a power."""

    size: jax.Array

    def __call__(self, t, R, Omega):
        return jnp.array([1e-3, 2e-3, 0.0]) * (1.0 + jnp.arccos(1.0 - jnp.abs(self.size)))


@pytest.mark.exhaustive
def test_input_without_effect_raises():
    model = rj.NullSpace(rj.FixedPointBody(INERTIA, moment=_Kink(jnp.array(0.0))))
    size = Parameter("size", lambda e: e.model.system.moment.size, Bounded(-1.0, 1.0))
    with pytest.raises(ValueError, match="the criterion has no finite derivative with respect"):
        design_in_euler_steps(model, MOMENTS, size)
