"""Experiments whose identifiability is known beforehand, one builder for each family.

Within a family only numbers differ from case to case, so that a family is compiled once.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.signal
from identification.cases import inertia_of
from jaxtyping import Array, Float

import rigidjax as rj
from rigidjax.identification import Positive, PrincipalInertia, Unconstrained
from rigidjax.rotations import so3
from rigidjax.sensors.base import AbstractReading, unwrap_measured_angles

TS = np.linspace(0.0, 1.5, 26)
# As good as no measurement: a reading that is there, but with so much noise that it tells nothing.
UNSEEN = 1e30
LABELS = ("I1", "I2", "I3")


MOMENT = "kg m^2"
p = rj.Parameter


@eqx.filter_jit
def _readings(model, sensors, ts, ys):
    return jax.vmap(lambda t, y: tuple(s.predict(model, t, y) for s in sensors))(ts, ys)


def draw_white(rng, shape):
    """Independent errors."""
    return rng.normal(size=shape)


def draw_dependent(rng, shape):
    """Errors of which 80 % remain in the next sample."""
    white = rng.normal(size=(100 + shape[0], *shape[1:]))
    return scipy.signal.lfilter([0.6], [1.0, -0.8], white, axis=0)[100:]


def draw_outliers(rng, shape):
    """Independent errors of which 5 % are ten times as large."""
    return np.where(rng.random(shape) < 0.05, 10.0, 1.0) * rng.normal(size=shape)


def draw_steps(rng, shape):
    """Errors that walk at random, as a drifting sensor has them."""
    return np.cumsum(0.3 * rng.normal(size=shape), axis=0) + rng.normal(size=shape)


def fit_planted(experiment, parameters, seed=0, noise=1.0, draw=draw_white):
    """A fit from the truth on, of data with `noise` times the stated noise, drawn by `draw`."""
    model, state, sensors = experiment
    model = unwrap_measured_angles(model, tuple(sensors))
    run = rj.simulate(model, state, TS[-1], ts=TS)
    exact = _readings(model, tuple(sensors), run.ts, run.ys)
    rng = np.random.default_rng(seed)
    data = {
        sensor: values + noise * min(std, 1.0) * draw(rng, values.shape)
        for (sensor, std), values in zip(sensors.items(), exact, strict=True)
    }
    measurements = rj.Measurements(TS, data, sensors)
    return rj.identify(model, measurements, parameters, state0=state, horizons=(1.0,))


# --- A free body with a known torque and unknown drag -------------------------------------------


class Moment(eqx.Module):
    """A known constant torque, and drag."""

    torque: Array
    drag: rj.QuadraticDrag

    def __call__(self, t, R, omega):
        return self.torque + self.drag(t, R, omega)


def free_body(inertia, torque, rates, drag):
    moment = Moment(jnp.asarray(torque), rj.QuadraticDrag(drag))
    model = rj.NullSpace(rj.FixedPointBody(inertia, moment=moment))
    return model, rj.State(angular_velocity=rates), {rj.Gyroscope(): 0.01}


# Drag of either sign: it may be zero.
FREE_BODY = (
    p("inertia", inertia_of, PrincipalInertia(), labels=LABELS, unit=MOMENT),
    p("drag", lambda e: e.model.system.moment.drag.coefficient, unit=MOMENT),
)


# --- A gyroscope with bias and drift, mounted at an unknown angle about the third axis ----------


class MountedGyroscope(AbstractReading):
    r"""Reads $R_3(\alpha)^T \Omega + b + d\,t\,e_3$."""

    bias: Float[Array, "3"]
    drift: Float[Array, ""]
    angle: Float[Array, ""]
    channels: ClassVar[tuple[str, ...]] = ("omega1", "omega2", "omega3")
    unit: ClassVar[str] = "rad/s"
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    @property
    def name(self):
        return "mounted gyroscope"

    def check(self, model):
        rj.Gyroscope().check(model)

    def predict(self, model, t, y):
        w = model.decode(t, y).angular_velocity[0]
        c, s = jnp.cos(self.angle), jnp.sin(self.angle)
        third = w[2] + self.drift * t
        return jnp.stack([c * w[0] + s * w[1], c * w[1] - s * w[0], third]) + self.bias


def mounted_experiment(inertia, rates, bias=(0.3, -0.2, 0.1), drift=0.2, angle=0.4, torque=0.02):
    moment = rj.ConstantMoment((0.0, 0.0, torque))
    model = rj.NullSpace(rj.FixedPointBody(inertia, moment=moment))
    sensor = MountedGyroscope(jnp.array(bias), jnp.asarray(drift), jnp.asarray(angle))
    return model, rj.State(angular_velocity=rates), {sensor: 0.01}


MOUNTED = (
    p("bias", lambda e: e.sensors[0].bias, unit="rad/s"),
    p("drift", lambda e: e.sensors[0].drift, unit="rad/s^2"),
    p("mounting", lambda e: e.sensors[0].angle, unit="rad"),
    p("rate", lambda e: e.state0.angular_velocity, unit="rad/s"),
    p(
        "torque",
        lambda e: e.model.system.moment.value,
        Unconstrained(which=(2,)),
        labels=("torque1", "torque2", "torque3"),
        unit="N m",
    ),
)


# --- A pendulum under gravity and a known torque ------------------------------------------------


class Weight(eqx.Module):
    """Potential energy of a weight at a distance from the fixed point."""

    mass: Array
    length: Array

    def __call__(self, R):
        return 9.81 * self.mass * self.length * R[2, 2]


class Camera(AbstractReading):
    """Position of the weight in the camera frame."""

    channels: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")
    unit: ClassVar[str] = "m"
    value_shape: ClassVar[tuple[int, ...]] = (3,)

    @property
    def name(self):
        return "camera"

    def check(self, model):
        assert isinstance(model.system.potential.function, Weight)

    def predict(self, model, t, y):
        length = model.system.potential.function.length
        return length * so3.rotate(model.decode(t, y).orientation[0], jnp.array([0.0, 0.0, 1.0]))


def pendulum(torque, camera_noise):
    weight = Weight(jnp.asarray(1.3), jnp.asarray(0.7))
    moment = rj.ConstantMoment((torque, 0.0, 0.0))
    model = rj.NullSpace(rj.FixedPointBody((0.8, 0.8, 0.1), weight, moment))
    sensors = {rj.Gyroscope(): 0.01, Camera(): camera_noise}
    return model, rj.State(angular_velocity=(3.0, 0.0, 0.0)), sensors


PENDULUM = (
    p("mass", lambda e: e.model.system.potential.function.mass, Positive(), unit="kg"),
    p("length", lambda e: e.model.system.potential.function.length, Positive(), unit="m"),
    p("moment", inertia_of, Positive(which=(0,)), labels=LABELS, unit=MOMENT),
)
