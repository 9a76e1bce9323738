"""Fits over measurements: poses from sensors, graphs of channels, gaps."""

import types

import jax
import numpy as np
import pytest
from viewer.motions import TS, turned_states

import rigidjax as rj
from rigidjax.identification import FittedRun
from rigidjax.viewer import view_fit
from rigidjax.viewer.scene import decode_array


def fitted(system, states):
    """Return the parts of a fit that `view_fit` needs, without fitting."""
    fit = types.SimpleNamespace(models=(rj.NullSpace(system),))
    return fit, lambda values: FittedRun(TS, jax.tree.map(np.asarray, states), values)


def test_attitudes_use_fitted_positions_of_free_bodies():
    bodies = [rj.Body.sphere(name, 0.1, mass=1.0) for name in ("a", "b")]
    states = turned_states(2)
    fit, run = fitted(rj.System(bodies), states)
    sensors = {rj.Attitude(n): np.asarray(states.orientation[:, k]) for k, n in enumerate("ab")}
    place = np.asarray(states.position[:, 1]) + 0.05
    sensors[rj.Position("b")] = place
    values = {sensor.name: value for sensor, value in sensors.items()}
    _, second = view_fit(fit, rj.Measurements(TS, sensors), run(values)).scene["runs"]
    poses = decode_array(second["poses"])
    np.testing.assert_allclose(poses[:, 0, :3], states.position[:, 0], atol=1e-6)
    np.testing.assert_allclose(poses[:, 1, :3], place, atol=1e-6)
    np.testing.assert_allclose(poses[:, :, 3:], states.orientation, atol=1e-6)


def test_rates_give_no_poses_and_failed_runs_end_early():
    system = rj.FixedPointBody((3.0, 2.0, 1.0))
    rates = np.ones((len(TS), 3))
    gaps = np.arange(len(TS)) % 3 > 0
    data = rj.Measurements(TS, {rj.Gyroscope(): rates}, mask={rj.Gyroscope(): gaps})
    states = jax.tree.map(lambda x: np.array(x), turned_states(1))
    fit, run = fitted(system, states)
    states.position[20:] = np.nan
    scene = view_fit(fit, data, run({"gyroscope": rates})).scene
    assert len(scene["runs"]) == 1 and len(decode_array(scene["runs"][0]["times"])) == 20
    graphs = {g["name"]: decode_array(g["values"]) for g in scene["runs"][0]["graphs"]}
    np.testing.assert_array_equal(graphs["gyroscope 1, measured"], np.ones(20))
    # The quantity that changes most is the first graph.
    values = run({"gyroscope": rates * np.stack([0 * TS, TS, 2 * TS], axis=1)})
    names = [g["name"] for g in view_fit(fit, data, values).scene["runs"][0]["graphs"]]
    assert names[:3] == ["gyroscope 3", "gyroscope 2", "gyroscope 1"]
    states.position[:] = np.nan
    with pytest.raises(ValueError, match="failed at its start: there is nothing to view"):
        view_fit(fit, data, run({"gyroscope": rates}))
