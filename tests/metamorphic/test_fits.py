"""Fits in other units, and of parameters in another order: nothing else changes."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from identification import planted

import rigidjax as rj
from rigidjax.identification import Free, PrincipalInertia

INERTIA, RATES, DRAG = np.array((0.02, 0.017, 0.006)), np.array((1.0, 9.0, -4.0)), 2e-4
TORQUE, NOISE = np.array((0.1, 0.0, 0.0)), 0.01
PARAMETERS = (
    rj.Parameter("inertia", planted.inertia_of, PrincipalInertia(), labels=planted.LABELS),
    rj.Parameter("drag", lambda e: e.model.system.moment.drag.coefficient, Free()),
    rj.Parameter("rate", lambda e: e.state0.angular_velocity, Free()),
)


def fitted(mass, length, time, torque=1.0, drag=DRAG, parameters=PARAMETERS, off=1.1):
    """A fit in units that are smaller by these factors, from start values that are off."""
    moment, seconds = mass * length**2, time * planted.TS

    def model(scale, drag):
        law = planted.Moment(
            jnp.asarray(torque * TORQUE * moment / time**2), rj.QuadraticDrag(drag * moment)
        )
        return rj.NullSpace(rj.FixedPointBody(scale * INERTIA * moment, moment=law))

    state = rj.State(angular_velocity=RATES / time)
    fit = planted.fit_planted(
        (model(1.0, drag), state, {rj.Gyroscope(): NOISE / time}),
        parameters,
        start=model(off, 3 * drag),
        ts=seconds,
        # Relative to what is there, whatever its unit.
        atol=1e-14,
    )
    units = dict.fromkeys(planted.LABELS, moment) | {"drag": moment}
    return fit, np.array([units.get(label, 1 / time) for label in fit.labels])


def words(fit):
    """The verdict without its numbers."""
    return [re.sub(r"-?\d[\d.e+-]*", "#", text) for text in fit.identifiability.messages]


POWERS = [(10, 0, 0), (-20, 0, 0), (0, 10, 0), (10, -20, 0), (0, 0, 10), (-10, 10, 20)]


@pytest.fixture(scope="module", params=["determined", "without a torque", "without drag"])
def case(request):
    options = {
        "determined": {},
        "without a torque": {"torque": 0.0, "off": 1.0},
        "without drag": {"drag": 0.0},
    }[request.param]
    return options, fitted(1.0, 1.0, 1.0, **options)[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("powers", POWERS, ids=str)
def test_fits_do_not_depend_on_units(case, powers):
    options, plain = case
    fit, units = fitted(*(2.0**k for k in powers), **options)
    assert fit.converged and plain.converged
    assert fit.iterations == plain.iterations
    verdict, expected = fit.identifiability, plain.identifiability
    assert (verdict.rank, verdict.identifiable) == (expected.rank, expected.identifiable)
    assert list(map(set, verdict.undetermined)) == list(map(set, expected.undetermined))
    assert words(fit) == words(plain)
    std, before = (np.array(list(f.std.values())) for f in (fit, plain))
    np.testing.assert_allclose(std / units, before, rtol=1e-6)
    # Ten tolerances of the integration, whose first step has a size in seconds.
    nearly = 1e-5 * before + 1e-7 * np.abs(plain.values)
    assert np.all(np.abs(fit.values / units - plain.values) < nearly)
    np.testing.assert_allclose(verdict.singular_values, expected.singular_values, atol=1e-7)


@pytest.mark.exhaustive
def test_fits_do_not_depend_on_the_order_of_parameters():
    fit = fitted(1.0, 1.0, 1.0)[0]
    turned = fitted(1.0, 1.0, 1.0, parameters=PARAMETERS[::-1])[0]
    assert set(turned.labels) == set(fit.labels) and turned.labels != fit.labels
    for label, value in fit.estimates.items():
        np.testing.assert_allclose(turned.estimates[label], value, atol=1e-6 * fit.std[label])
        np.testing.assert_allclose(turned.std[label], fit.std[label], rtol=1e-7)
    assert sorted(words(turned)) == sorted(words(fit))
