"""Models, data and true parameters of the studies of coverage, one builder for each model.

Data differ in their noise only, so that every model is compiled once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.identification import Positive, PrincipalInertia
from rigidjax.sensors.base import unwrap_measured_angles


class Study(NamedTuple):
    """A model with the true parameters, its sensors with their noise, and fitted parameters."""

    model: Any
    state0: rj.State
    ts: np.ndarray
    noise: dict[Any, float]
    parameters: tuple[rj.Parameter, ...]
    true: np.ndarray

    def readings(self) -> dict[Any, np.ndarray]:
        """Return readings without noise, (T, *value_shape)."""
        model = unwrap_measured_angles(self.model, tuple(self.noise))
        run = rj.simulate(
            model, self.state0, self.ts[-1], ts=self.ts, rtol=1e-11, atol=1e-11, max_steps=100_000
        )
        values = _read(model, tuple(self.noise), run.ts, run.ys)
        return dict(zip(self.noise, map(np.asarray, values), strict=True))

    def measure(
        self, exact: dict[Any, np.ndarray], errors: Callable[[Any, tuple[int, ...]], np.ndarray]
    ) -> rj.Measurements:
        """Return readings with `errors(sensor, shape)`, in units of the noise of the sensor."""
        values = {s: x + self.noise[s] * errors(s, x.shape) for s, x in exact.items()}
        return rj.Measurements(self.ts, values, self.noise)


@eqx.filter_jit
def _read(model, sensors, ts, ys):
    return jax.vmap(lambda t, y: tuple(s.predict(model, t, y) for s in sensors))(ts, ys)


class Swing(eqx.Module):
    """A torque that is a sum of two sines, N m."""

    sizes: jax.Array
    rates: jax.Array

    def __call__(self, t):
        return jnp.sum(self.sizes * jnp.sin(self.rates * t))


class Wind(eqx.Module):
    """A torque of quadratic drag on a joint, N m."""

    coefficient: jax.Array

    def __call__(self, t, q, rate):
        return -self.coefficient * rate * jnp.abs(rate)


def _leaf(path: str, name: str, index: int) -> Callable[[Any], Any]:
    return lambda e: getattr(getattr(e.model.system, path)[index], name)


_MOMENT = PrincipalInertia(fixed=("I1", "I2"))
_DOUBLE = (
    rj.Parameter("I1", _leaf("bodies", "inertia", 0), _MOMENT, labels=("x1", "y1", "I1")),
    rj.Parameter("m1", _leaf("bodies", "mass", 0), Positive(), unit="kg"),
    rj.Parameter("I2", _leaf("bodies", "inertia", 1), _MOMENT, labels=("x2", "y2", "I2")),
    rj.Parameter("m2", _leaf("bodies", "mass", 1), Positive(), unit="kg"),
    rj.Parameter("b1", _leaf("joints", "damping", 0), unit="N m s"),
    rj.Parameter("b2", _leaf("joints", "damping", 1), unit="N m s"),
)


# Root-mean-square rates of the joints of the double pendulum without drag, rad/s.
_RMS_RATES = (1.2, 3.8)


def double_pendulum(drag: float = 0.0, count: int = 401) -> Study:
    """Return a double pendulum on two motors, with two encoders of 5 mrad.

    **Arguments:** `drag`, torque of a quadratic drag in both joints as a fraction of the torque of
    their dampers, at the root-mean-square rates; a model with `drag=0` lacks it; `count` of
    samples in 4 s.
    """
    bodies = [
        rj.Body("upper", 0.5, (0.010, 0.010, 0.012), (0.25, 0.0, 0.0)),
        rj.Body("lower", 0.3, (0.005, 0.005, 0.006), (0.65, 0.0, 0.0)),
    ]
    axis = (0.0, 0.0, 1.0)
    joints = [
        rj.Revolute("ground", "upper", (0.0, 0.0, 0.0), axis, name="shoulder", damping=0.05),
        rj.Revolute("upper", "lower", (0.5, 0.0, 0.0), axis, name="elbow", damping=0.03),
    ]
    forces = [
        rj.Gravity((9.81, 0.0, 0.0)),
        rj.Motor("shoulder", Swing(jnp.array([1.0, 0.5]), jnp.array([2.3, 7.1]))),
        rj.Motor("elbow", Swing(jnp.array([0.2, -0.15]), jnp.array([3.7, 9.0]))),
    ]
    if drag:
        forces += [
            rj.Motor(joint, Wind(drag * joint.damping.reshape(()) / rate))
            for joint, rate in zip(joints, _RMS_RATES, strict=True)
        ]
    model = rj.NullSpace(rj.System(bodies, joints, forces))
    sensors = (rj.JointCoordinate("shoulder"), rj.JointCoordinate("elbow"))
    return Study(
        model,
        model.system.reference_state(),
        np.linspace(0.0, 4.0, count),
        dict.fromkeys(sensors, 5e-3),
        _DOUBLE,
        np.array([0.012, 0.5, 0.006, 0.3, 0.05, 0.03]),
    )


def torque(t, R, omega):
    """Return a known moment about all axes, body components, N m."""
    return jnp.stack([jnp.sin(t), 0.7 * jnp.cos(1.7 * t), 0.5 * jnp.sin(0.6 * t + 1.0)])


_INERTIA = (0.9, 1.2, 1.6)
_FREE = (
    rj.Parameter(
        "inertia", lambda e: e.model.system.inertia, PrincipalInertia(), labels=("I1", "I2", "I3")
    ),
)


def free_body(count: int = 201) -> Study:
    """Return a body under a known moment with a gyroscope of 10 mrad/s, `count` samples in 4 s."""
    return Study(
        rj.NullSpace(rj.FixedPointBody(_INERTIA, moment=torque)),
        rj.State(angular_velocity=(0.4, -0.6, 0.5)),
        np.linspace(0.0, 4.0, count),
        {rj.Gyroscope(): 0.01},
        _FREE,
        np.array(_INERTIA),
    )


_FOUR_BAR = (
    rj.Parameter("coupler", _leaf("bodies", "mass", 1), Positive(), unit="kg"),
    rj.Parameter("rocker", _leaf("bodies", "mass", 2), Positive(), unit="kg"),
)


def four_bar(count: int = 201) -> Study:
    """Return a four-bar linkage with an encoder of 5 mrad on the crank, `count` samples in 1 s."""
    problem = rj.problems.four_bar(3.0)
    masses = [float(body.mass) for body in problem.system.bodies]
    return Study(
        rj.NullSpace(problem.system),
        problem.state0,
        np.linspace(0.0, 1.0, count),
        {rj.JointCoordinate(problem.system.joints[0].name): 5e-3},
        _FOUR_BAR,
        np.array(masses[1:]),
    )


STUDIES = {"free body": free_body, "double pendulum": double_pendulum, "four-bar": four_bar}
