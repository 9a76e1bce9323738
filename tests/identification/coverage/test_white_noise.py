"""Intervals hold under white noise, quantisation, outliers, and for a parameter on its bound."""

import functools

import equinox as eqx
import numpy as np
import pytest
from identification.coverage.studies import double_pendulum

import rigidjax as rj
from rigidjax.identification import Bounded, Huber, identify_batch

# Encoders of 1,024 lines, whose own noise is a third of a step.
STEP = 2 * np.pi / 1024
CASES = ("white", "quantised", "bound")


def take_bias(experiment, k):
    return experiment.sensors[k].bias


def build_pendulum(elbow_damping=0.03):
    """Return a pendulum whose encoders have unknown zeros, with a damping that is not negative."""
    study = double_pendulum()
    elbow = eqx.tree_at(
        lambda m: m.system.joints[1].damping,
        study.model,
        replace_fn=lambda d: 0 * d + elbow_damping,
    )
    *others, damping = study.parameters
    bounded = rj.Parameter(damping.name, damping.where, Bounded(0.0, np.inf), unit="N m s")
    zeros = [
        rj.Parameter(f"zero{k}", functools.partial(take_bias, k=k), unit="rad") for k in range(2)
    ]
    true = np.array([*study.true[:-1], elbow_damping, 0.0, 0.0])
    return study._replace(model=elbow, parameters=(*others, bounded, *zeros), true=true)


def measure(study, exact, case, rng):
    """Return the readings of one fit; the zeros of the encoders are known to the fit as zero."""

    def read(shape):
        return rng.normal(size=shape)

    if case != "quantised":
        return study.measure(exact, lambda s, shape: read(shape))
    # A random zero moves the steps; it is a part of the readings until it is taken off again.
    values, zeros = {}, rng.uniform(0.0, STEP, 2)
    for (sensor, x), zero in zip(exact.items(), zeros, strict=True):
        fine = x + zero + 0.3 * STEP * read(x.shape)
        values[sensor] = STEP * np.round(fine / STEP) - zero
    return rj.Measurements(study.ts, values, dict.fromkeys(values, STEP * np.hypot(0.3, 12**-0.5)))


def find_covered(count):
    """Return which 95 % intervals contain the truth, (3, count, k)."""
    rng = np.random.default_rng(21)
    studies = [build_pendulum(0.0 if case == "bound" else 0.03) for case in CASES]
    data = []
    for study, case in zip(studies, CASES, strict=True):
        exact = study.readings()
        data += [measure(study, exact, case, rng) for _ in range(count)]
    first = studies[0]
    starts = {"b2": np.repeat([study.true[5:6] for study in studies], count, axis=0)}
    fits = identify_batch(
        first.model, data, first.parameters, state0=first.state0, starts=starts, horizons=(1.0,)
    )
    assert fits.converged.all()
    true = np.repeat([study.true for study in studies], count, axis=0)
    width = np.where(fits.at_bound, 1.645, 1.96) * fits.std
    return (np.abs(fits.values - true) < width).reshape(len(CASES), count, -1)


COUNTS = pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.exhaustive)])


def assert_coverage(covered):
    """Check the coverage (..., N, k) of every parameter, or of few fits, of all of them."""
    share = covered.mean(axis=-2) if covered.shape[-2] == 1000 else covered.mean(axis=(-2, -1))
    assert np.all((share > 0.92) & (share < 0.98)), share


@COUNTS
def test_intervals_hold(count):
    assert_coverage(find_covered(count))


@COUNTS
def test_intervals_of_a_robust_loss_hold_under_outliers(count):
    study, rng = double_pendulum(), np.random.default_rng(22)
    exact = study.readings()

    def read(sensor, shape):
        wild = rng.random(shape) < 0.01
        return rng.normal(size=shape) + np.where(wild, rng.normal(0.0, 20.0, shape), 0.0)

    data = [study.measure(exact, read) for _ in range(count)]
    fits = identify_batch(
        study.model, data, study.parameters, state0=study.state0, horizons=(1.0,), loss=Huber()
    )
    assert fits.converged.all()
    assert_coverage(np.abs(fits.values - study.true) < 1.96 * fits.std)
