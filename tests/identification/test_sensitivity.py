"""Derivatives of trajectories: both modes against differences, choice of the mode, errors."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.cases import inertia_of, orientation_of, rates_of

import rigidjax as rj
from rigidjax.identification import InertiaTensor, Orientation, Parameter
from rigidjax.results import RESULTS

INERTIA = np.array([0.5, 0.4, 0.3])
STATE = rj.State(
    orientation=np.array([0.9, 0.3, -0.2, np.sqrt(1 - 0.94)]), angular_velocity=(1.0, -2.0, 6.0)
)
TS = np.array([0.1, 0.2, 0.3])


def first_moment_of(experiment):
    return experiment.model.system.potential.first_moment


def top(formulation, inertia=INERTIA, **options):
    potential = rj.GravityPotential((0.1, -0.05, 0.4), (0.0, 0.0, -9.81))
    return formulation(rj.FixedPointBody(inertia, potential), **options)


def parameters(inertia=None, first_moment=None):
    return (
        Parameter("I", inertia_of, start=inertia, unit="kg m^2"),
        Parameter("mc", first_moment_of, start=first_moment, unit="kg m"),
    )


@pytest.mark.exhaustive
def test_modes_agree_with_finite_differences():
    """The model is a top; for other solvers see `test_exact_gradients`."""
    model, options = top(rj.NullSpace), {"solver": diffrax.Dopri5(), "rtol": 1e-13, "atol": 1e-13}
    sensors = (rj.Gyroscope(), rj.Position(point=(0.2, 0.1, -0.1)))

    def run(mode="forward", **starts):
        return rj.sensitivity(
            model, STATE, TS[-1], parameters(**starts), ts=TS, sensors=sensors, mode=mode, **options
        )

    values = {"inertia": INERTIA, "first_moment": np.array([0.1, -0.05, 0.4])}
    forward = run(**values)
    reverse = run("reverse", **values)
    assert forward.labels == ("I[0]", "I[1]", "I[2]", "mc[0]", "mc[1]", "mc[2]")
    assert forward.units[0] == "kg m^2" and forward.mode == "forward"
    for sensor in sensors:
        J = forward.jacobian[sensor.name]
        assert J.shape == (3, 3, 6) and np.abs(J).max() > 1e-3
        scale = np.abs(J).max()
        np.testing.assert_allclose(J, reverse.jacobian[sensor.name], atol=1e-10 * scale)
    direction = {"inertia": [0.2, -0.1, 0.15], "first_moment": [0.1, 0.2, -0.3]}

    def run_displaced(step):
        at = {key: value + step * np.array(direction[key]) for key, value in values.items()}
        return run(**at).readings

    h = 2e-3

    def central(step):
        return jax.tree.map(
            lambda a, b: (a - b) / (2 * step), run_displaced(step), run_displaced(-step)
        )

    near, far = central(h), central(2 * h)
    along = np.concatenate(list(direction.values()))
    for name, J in forward.jacobian.items():
        difference = (4 * near[name] - far[name]) / 3
        error = np.abs(J @ along - difference).max() / np.abs(difference).max()
        assert error < 1e-8, (name, error)


@pytest.mark.exhaustive
def test_sensitivity_of_states_and_choice_of_mode():
    """More parameters than four times the numbers at the end: reverse mode."""
    tensor = np.diag(INERTIA) + 0.02
    model = top(rj.NullSpace, tensor)
    many = (
        Parameter("I", inertia_of, InertiaTensor(), labels=[f"I{k}" for k in range(6)]),
        Parameter("mc", first_moment_of),
        Parameter("p", orientation_of, Orientation(), unit="rad"),
        Parameter("omega", rates_of),
    )
    options = {"solver": diffrax.Dopri5(), "rtol": 1e-9, "atol": 1e-9}
    states = rj.sensitivity(model, STATE, 0.3, many, **options)
    assert states.mode == "forward" and states.readings == {} and states.ts.shape == (1,)
    assert states.state_jacobian.orientation.shape == (1, 1, 4, 15)
    end = rj.simulate(model, STATE, 0.3, **options).states
    np.testing.assert_allclose(states.states.orientation, end.orientation, atol=1e-14)
    # A small turn of a state about its own axes: p' = p (0, phi/2), at a time close to the start.
    early = rj.sensitivity(model, STATE, 1e-6, many[2], **options).state_jacobian.orientation
    p0, p1, p2, p3 = np.asarray(STATE.orientation[0])
    turn = 0.5 * np.array([[-p1, -p2, -p3], [p0, -p3, p2], [p3, p0, -p1], [-p2, p1, p0]])
    np.testing.assert_allclose(early[0, 0], turn, atol=1e-5)


@pytest.mark.exhaustive
def test_sensitivity_under_transformations():
    """Second derivatives are symmetric, and agree with differences."""
    model = top(rj.NullSpace)

    def jacobian(inertia):
        changed = eqx.tree_at(lambda m: m.system.inertia, model, inertia)
        found = rj.sensitivity(
            changed, STATE, 0.1, Parameter("I", inertia_of), sensors=rj.Gyroscope(),
            solver=diffrax.Heun(), dt=0.05, max_steps=3,
        )  # fmt: skip
        return found.jacobian["gyroscope"][0]

    # The Jacobian and its derivative in one compiled program.
    both = jax.jit(lambda inertia: (jacobian(inertia), jax.jacfwd(jacobian)(inertia)))
    _, second = both(jnp.asarray(INERTIA))
    scale = np.abs(second).max()
    np.testing.assert_allclose(second, np.swapaxes(second, 1, 2), atol=1e-11 * scale)
    step = jnp.array([1e-5, 0.0, 0.0])
    difference = (both(INERTIA + step)[0] - both(INERTIA - step)[0]) / 2e-5
    np.testing.assert_allclose(second[..., 0], difference, atol=1e-8 * scale)


def test_failures_are_reported():
    model = top(rj.NullSpace)
    arguments = (model, STATE, 0.5, Parameter("I", inertia_of))
    with pytest.raises(rj.SimulationError, match=r"maximum number of"):
        rj.sensitivity(*arguments, solver=diffrax.Heun(), max_steps=2)
    found = rj.sensitivity(*arguments, solver=diffrax.Heun(), max_steps=2, throw=False)
    assert found.result == RESULTS.max_steps_reached


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": 3}, TypeError, r"`sensitivity\(model, \.\.\.\)` takes a formulation"),
        ({"mode": "adjoint"}, ValueError, r'must be "forward", "reverse" or None; got \'adjoint\''),
        ({"sensors": ["gyroscope"]}, TypeError, r"takes sensors such as `rj.Gyroscope\(\)`"),
        ({"sensors": [rj.Gyroscope(), rj.Gyroscope()]}, ValueError, r"needs a name of its own"),
        ({"sensors": rj.JointRate("x")}, ValueError, r"this model has no joints"),
        ({"parameters": ["I"]}, TypeError, r"takes `rj.Parameter` objects; got str"),
        ({"parameters": []}, ValueError, r"needs parameters of different names; got \[\]"),
        (
            {"parameters": Parameter("I", inertia_of, start=[1.0])},
            ValueError,
            r"`Parameter\('I', start=\.\.\.\)` must have shape \(3,\); got \(1,\)",
        ),
        (
            {"parameters": [Parameter("a", inertia_of), Parameter("b", inertia_of)]},
            ValueError,
            r"Parameters 'a' and 'b' pick the same leaf",
        ),
        ({"ts": [0.5, 0.1]}, ValueError, r"must be strictly increasing"),
    ],
)
def test_invalid_arguments_raise(change, error, message):
    arguments = {
        "model": top(rj.NullSpace), "state0": STATE, "t1": 1.0,
        "parameters": Parameter("I", inertia_of), **change,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        rj.sensitivity(**arguments)
