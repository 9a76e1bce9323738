"""A damped oscillator on a hinge, with a closed form, measured in several runs by an encoder."""

import numpy as np

import rigidjax as rj
from rigidjax.identification import Bounded, Measurements, Parameter, identify

STIFFNESS, DAMPING, INERTIA, NOISE = 4.0, 0.3, 0.75, 5e-3
TS = np.linspace(0.0, 3.0, 31)
RATES = (2.0, -1.5, 1.0)
ANGLE = rj.JointCoordinate("hinge")


def spring_of(experiment):
    return experiment.model.system.forces[0]


def stiffness_of(experiment):
    return spring_of(experiment).stiffness


def damping_of(experiment):
    return spring_of(experiment).damping


def rest_of(experiment):
    return spring_of(experiment).angle


def model(stiffness=STIFFNESS, damping=DAMPING, rest=0.0):
    body = rj.Body("bob", 1.0, (0.3, 0.3, INERTIA - 0.25), (0.5, 0.0, 0.0))
    hinge = rj.Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    spring = rj.TorsionSpring("hinge", stiffness, damping, rest)
    return rj.NullSpace(rj.System(body, [hinge], [spring]))


def start(rate):
    return rj.State(
        (0.5, 0.0, 0.0), velocity=(0.0, 0.5 * rate, 0.0), angular_velocity=(0.0, 0.0, rate)
    )


def closed_form(rate, stiffness=STIFFNESS, damping=DAMPING, rest=0.0, ts=TS):
    """Angle of the hinge, which starts at zero."""
    decay = 0.5 * damping / INERTIA
    root = np.sqrt(stiffness / INERTIA - decay**2)
    sine = ((rate - decay * rest) / root) * np.sin(root * ts)
    return rest + np.exp(-decay * ts) * (sine - rest * np.cos(root * ts))


def weighted_residuals(data, noise, rates=RATES, **values):
    """Closed form less readings of the runs, in units of the noise."""
    runs = zip(rates, data, strict=True)
    parts = [closed_form(v, **values) - np.asarray(run.values[0]) for v, run in runs]
    return np.concatenate(parts) / noise


STIFF = Parameter("stiffness", stiffness_of, unit="N m")
DAMPED = Parameter("damping", damping_of, Bounded(0.0, np.inf), unit="N m s")
RESTED = Parameter("rest", rest_of, unit="rad")
# One set of options for all tests: each further set needs its own compilation.
OPTIONS = {"horizons": (1.0,), "projection": False}


def measure(seed=0, damping=DAMPING, rest=0.0, noise=NOISE, rates=RATES, std=NOISE):
    """Runs with noise of the standard deviation `std`, of which the fit is given `noise`."""
    rng = np.random.default_rng(seed)
    return [
        Measurements(
            TS,
            {ANGLE: closed_form(v, damping=damping, rest=rest) + std * rng.normal(size=TS.size)},
            {ANGLE: noise} if noise else None,
            name=f"run{k}",
        )
        for k, v in enumerate(rates)
    ]


def fit(data, parameters=(STIFF, DAMPED), damping=DAMPING, rates=RATES, **options):
    """Fit from near the truth; a damping that is not fitted is held at the given value."""
    states = [start(v) for v in rates]
    return identify(model(3.8, damping), data, parameters, state0=states, **{**OPTIONS, **options})
