"""The wrapper for gymnasium."""

import subprocess
import sys

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rigidjax as rj
from rigidjax.stepping.gym import GymEnvironment

ROD = rj.Body("rod", 1.0, (0.1, 0.1, 0.001), position=(0, 0, -0.5))
HINGE = rj.Revolute("ground", "rod", (0, 0, 0), (0, 1, 0), name="hinge")
SYSTEM = rj.System(ROD, HINGE, rj.Motor("hinge", torque=rj.Input("torque")))
STEPPER = rj.Stepper(rj.Relative(SYSTEM), 0.02, solver=diffrax.Tsit5(), dt=0.02)


def start(rng):
    return rj.jointed_state(SYSTEM, {"hinge": rng.normal(0.0, 0.1)})


def observation(view):
    return jnp.concatenate([view.coordinates["hinge"], view.rates["hinge"]])


def make_environment(**changes):
    options = dict(
        observation=observation,
        reward=lambda view, action: view.coordinates["hinge"][0] - action["torque"],
        actions={"torque": (-2.0, 2.0)},
    )
    return GymEnvironment(STEPPER, start, **{**options, **changes})


# The checker advises bounded observations, and actions within -1 and 1.
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_episode_equals_the_stepper():
    environment = make_environment(
        terminated=lambda view: view.coordinates["hinge"][0] > 1.0, max_periods=3
    )
    check_env(environment, skip_render_check=True)
    first, info = environment.reset(seed=3)
    again, _ = environment.reset(seed=3)
    assert np.array_equal(first, again) and info == {"t": 0.0}
    y = STEPPER.init(rj.jointed_state(SYSTEM, {"hinge": first[0]}))
    ended = []
    for torque in (1.0, -1.0, 0.5):
        found, reward, terminated, truncated, info = environment.step([torque])
        y = STEPPER.step(y, {"torque": torque})
        view = STEPPER.observe(y)
        np.testing.assert_allclose(found, observation(view), atol=1e-13)
        np.testing.assert_allclose(reward, view.coordinates["hinge"][0] - torque, atol=1e-13)
        ended.append((terminated, truncated))
    assert ended == [(False, False), (False, False), (False, True)]
    assert info["t"] == pytest.approx(0.06)
    high = rj.jointed_state(SYSTEM, {"hinge": 1.2})
    environment.reset(options={"state": high})
    assert environment.step([0.0])[2]
    with pytest.raises(rj.SimulationError, match="The state is no longer finite"):
        environment.step([np.nan])


def test_bad_arguments():
    with pytest.raises(TypeError, match="takes a `Stepper`; got Relative"):
        GymEnvironment(STEPPER.model, start, observation, lambda view, action: 0.0, {})
    with pytest.raises(ValueError, match=r"no input called 'force'. The inputs are \['torque'\]"):
        make_environment(actions={"force": (-1.0, 1.0)})
    with pytest.raises(ValueError, match="pairs of a low and a higher value"):
        make_environment(actions={"torque": (1.0, -1.0)})
    with pytest.raises(ValueError, match=r"reward=...\)` must return a scalar; got shape \(1,\)"):
        make_environment(reward=lambda view, action: view.coordinates["hinge"])
    with pytest.raises(ValueError, match=r"observation=...\)` must return shape \(n,\)"):
        make_environment(observation=lambda view: view.coordinates["hinge"][0])
    with pytest.raises(RuntimeError, match="call `reset` first"):
        make_environment().step([0.0])


def test_missing_package_names_the_extra():
    code = "import sys; sys.modules['gymnasium'] = None; import rigidjax.stepping.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "rigidjax[gym]"' in done.stderr.splitlines()[-1]
