"""Every SDF file of the package `example-robot-data`: the biped Cassie, whose legs have loops."""

import numpy as np
import pytest
from _model_files import PACKAGES, find_folder

import rigidjax as rj
from rigidjax import models

pytestmark = pytest.mark.exhaustive

DEGREES_OF_FREEDOM = {
    "cassie_reduced.sdf": 11,
    "cassie_simple.sdf": 11,
    "cassie_v2.sdf": 18,
    "cassie_wo_gearbox_spring.sdf": 13,
}
REFUSED = ("cassie.sdf",)


def find_files():
    """Return the path of each file by its name."""
    return {path.name: path for path in find_folder(PACKAGES[0]).rglob("*.sdf")}


@pytest.mark.filterwarnings("ignore:.*the inertia is not physical")
def test_files_are_loaded_with_their_loops_or_refused():
    files = find_files()
    assert files.keys() == {*DEGREES_OF_FREEDOM, *REFUSED}
    for name, count in DEGREES_OF_FREEDOM.items():
        model = models.load(files[name])
        assert model.system.num_dof == count
        assert len(model.names.closing) == 4
    for name in REFUSED:
        with pytest.raises(ValueError, match=r"closes a loop at a dead point"):
            models.load(files[name])


def test_legs_stay_closed_for_ten_seconds():
    model = models.load(find_files()["cassie_v2.sdf"])
    system, rest = model.system, model.state
    velocity, rates = 0.3 * np.random.default_rng(1).standard_normal((2, *rest.velocity.shape))
    state = rj.State(rest.position, rest.orientation, velocity, rates)
    state = rj.consistent_state(system, state)
    sol = rj.simulate(rj.Relative(system), state, 10.0, ts=np.linspace(0, 10, 101))
    assert sol.position_drift.max() < 1e-12
    assert sol.velocity_drift.max() < 1e-12
    # Dampers take energy all the time.
    assert np.all(np.diff(sol.energy) < 0)
