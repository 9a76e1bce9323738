"""A body with known parameters, measured in several runs."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.identification import Gyroscope, Measurements, Parameter, Positive, PrincipalInertia

DOUBLE = bool(jax.config.jax_enable_x64)
TOLERANCE = 1e-8 if DOUBLE else 1e-5

INERTIA = (0.020, 0.017, 0.006)
DRAG = 2e-4
RATES = ((1.0, 9.0, -4.0), (-3.0, 7.0, 5.0), (6.0, -2.0, 8.0))
LABELS, UNIT = ("I1", "I2", "I3"), "kg m^2"
LENGTHS = (40, 30, 20)
STEP = 0.03
NOISE = 0.05


def inertia_of(experiment):
    return experiment.model.system.inertia


def drag_of(experiment):
    return experiment.model.system.moment.coefficient


def rates_of(experiment):
    return experiment.state0.angular_velocity


def orientation_of(experiment):
    return experiment.state0.orientation


def model(inertia=INERTIA, drag=DRAG):
    return rj.NullSpace(rj.FixedPointBody(np.asarray(inertia), moment=rj.QuadraticDrag(drag)))


START = model((0.016, 0.015, 0.006), 4e-4)


def simulated_rates(formulation, rates, ts):
    """Body rates at the times `ts`, as exact as the precision allows."""
    state = rj.State(angular_velocity=jnp.asarray(rates, float))
    ts = np.asarray(ts, state.angular_velocity.dtype)
    tol = 1e-11 if DOUBLE else 3e-6
    solution = rj.simulate(formulation, state, ts[-1], t0=ts[0], ts=ts, rtol=tol, atol=tol)
    return np.asarray(solution.states.angular_velocity[:, 0])


def measurements(noise=0.0, seed=0, known=False):
    """Runs of different length that start at different times."""
    rng = np.random.default_rng(seed)
    runs = []
    for k, (rates, length) in enumerate(zip(RATES, LENGTHS, strict=True)):
        ts = 0.5 * k + STEP * np.arange(length)
        exact = simulated_rates(model(), rates, ts)
        values = exact + noise * rng.normal(size=exact.shape)
        given = {Gyroscope(): noise} if known else None
        runs.append(Measurements(ts, {Gyroscope(): values}, given, name=f"run{k}"))
    return runs


def parameters(fixed=("I3",)):
    """Two moments, drag, and the start rates of each run: 2 + 1 + 3 x 3."""
    return (
        Parameter("inertia", inertia_of, PrincipalInertia(fixed=fixed), unit=UNIT, labels=LABELS),
        Parameter("drag", drag_of, Positive(), unit=UNIT),
        Parameter("rates", rates_of, per_run=True, unit="rad/s"),
    )


def truth():
    """Values of `parameters()` in the order of `Fit.labels`."""
    return np.concatenate([INERTIA[:2], [DRAG], np.ravel(RATES)])
