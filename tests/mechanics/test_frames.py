"""Frames on bodies: their Jacobians, sensors in them, their poses of a run and in files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification.regression.regressor import (
    inertial_parameters,
    with_inertial_parameters,
)

TURN = np.array([0.3, -0.4, 0.5])
POINT = np.array([0.2, -0.1, 0.3])
OFFSET = jnp.array([0.05, 0.02, -0.03])
T = jnp.zeros(())


def tool(**more):
    q = rj.convert(jnp.asarray(TURN), rj.RotationVector(), rj.Quaternion())
    return rj.Frame("tool", "arm", POINT, q, **more)


@pytest.fixture(scope="module")
def model():
    arm = rj.Body.box("arm", (0.4, 0.3, 0.2), mass=2.0, position=(0.5, 0.1, 0.2))
    other = rj.Body.sphere("other", 0.1, mass=1.0)
    return rj.NullSpace(rj.System([other, arm], (), rj.Gravity((0, 0, -9.81)), tool()))


@pytest.fixture(scope="module")
def state():
    p = rj.convert(jnp.array([0.2, 1.0, -0.7]), rj.RotationVector(), rj.Quaternion())
    unit = jnp.array([1.0, 0, 0, 0])
    rates = jnp.array([[0.1, 0.2, 0.3], [1.0, -0.5, 0.7]])
    return rj.State(rates + 1.0, jnp.stack([unit, p]), 2.0 * rates, rates)


def test_poses_of_frames_of_a_run(model, state):
    run = rj.simulate(model, state, 0.1, ts=jnp.array([0.0, 0.1]))
    x, R = run.frames["tool"]
    arm = jax.vmap(rj.Quaternion().to_matrix)(run.states.orientation[:, 1])
    np.testing.assert_allclose(x, run.states.position[:, 1] + arm @ POINT, atol=1e-13)
    np.testing.assert_allclose(R, arm @ tool().rotation, atol=1e-13)
    data = run.to_xarray().sel(frame="tool")
    np.testing.assert_allclose(data.frame_position, x, atol=1e-13)
    turned = jax.vmap(rj.Quaternion().to_matrix)(jnp.asarray(data.frame_orientation.values))
    np.testing.assert_allclose(turned, R, atol=1e-13)


def test_frames_do_not_move_with_the_centre_of_mass(model):
    """As joints do, where a regression finds other centres of mass; joints are put at frames."""
    system = model.system
    before = system.frames[0].in_space(system.bodies[1])[0]
    moved = np.array(inertial_parameters(system)).reshape(2, 10)
    moved[1, 1:4] = 2.0 * np.array([0.01, 0.02, -0.01])
    moved[1, [4, 6, 9]] += 0.1
    new = with_inertial_parameters(system, moved.ravel())
    np.testing.assert_allclose(new.bodies[1].position - system.bodies[1].position,
                               [0.01, 0.02, -0.01], atol=1e-14)  # fmt: skip
    np.testing.assert_allclose(new.frames[0].in_space(new.bodies[1])[0], before, atol=1e-14)


def test_invalid_frames_raise(model, state):
    with pytest.raises(ValueError, match="no body or frame called 'tol'. Did you mean 'tool'"):
        model.jacobian(T, model.encode(state), "tol")
    with pytest.raises(ValueError, match="no body or frame called 'x'"):
        rj.Position("x").check(model)
    bodies = model.system.bodies
    with pytest.raises(ValueError, match="'arm' more than once"):
        rj.System(bodies, frames=rj.Frame("arm", "other"))
    with pytest.raises(ValueError, match="no body called 'leg'"):
        rj.System(bodies, frames=rj.Frame("foot", "leg"))
    with pytest.raises(ValueError, match="no body or frame called 'tol'. Did you mean 'tool'"):
        rj.System(bodies, forces=rj.PointForce("tol", force=OFFSET), frames=tool())
    with pytest.raises(ValueError, match=r"`Spring` acts between different bodies; \['tool', 'arm"):
        rj.System(bodies, (), rj.Spring("tool", "arm", None, None, 1.0), tool())
    with pytest.raises(TypeError, match="takes bodies, .* and frames; got 'tool'"):
        rj.System(bodies, frames="tool")
    with pytest.raises(ValueError, match='other than "ground"'):
        rj.Frame("tool", "ground")
    with pytest.raises(TypeError, match=r"Frame\(name=...\)` must be a string"):
        rj.Frame(3, "arm")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"Frame\(point=...\)"):
        rj.Frame("tool", "arm", (1.0, 2.0))
    with pytest.raises(ValueError, match="unit quaternion"):
        rj.Frame("tool", "arm", orientation=(1.0, 1.0, 0, 0))
