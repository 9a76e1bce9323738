"""Known inputs of runs that differ, such as payloads, in fits of what they share."""

import numpy as np
import pytest
from cli.case_files import case_of, replace_text

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.cli.case import read_case

HINGE = rj.JointCoordinate("hinge", period=np.inf)


def loaded_arm(load, inertia=0.03):
    bodies = [
        rj.Body("arm", 1.0, (inertia,) * 3, position=(0.3, 0, 0)),
        rj.Body("tip", load, (1e-4,) * 3, position=(0.6, 0, 0)),
    ]
    joints = [
        rj.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1), name="hinge"),
        rj.Weld("arm", "tip", name="weld"),
    ]
    return rj.System(bodies, joints, [rj.Gravity((0, -9.81, 0))])


def load_of(experiment):
    return experiment.model.system.bodies[1].mass


def inertia_of(experiment):
    return experiment.model.system.bodies[0].inertia


@pytest.mark.exhaustive
def test_payloads_of_runs_are_no_parameters():
    """Two runs with known payloads determine the inertia; the payloads are not in the report."""
    ts, loads, runs = np.linspace(0.0, 1.0, 41), [0.1, 0.5], []
    state = rj.jointed_state(loaded_arm(0.3), {"hinge": 0.5})
    rng = np.random.default_rng(0)
    for load in loads:
        model = rj.Relative(loaded_arm(load).tracking(["hinge"]))
        sol = rj.simulate(model, state, 1.0, ts=ts)
        q = np.array([float(HINGE.predict(model, t, y)) for t, y in zip(ts, sol.ys, strict=True)])
        noisy = q + 1e-3 * rng.normal(size=len(ts))
        runs.append(rj.Measurements(ts, {HINGE: noisy}, {HINGE: 1e-3}))
    load = rj.Parameter("load", load_of, ident.Known(), per_run=True, start=loads)
    inertia = rj.Parameter("inertia", inertia_of, ident.Positive(which=(2,)))
    fit = rj.identify(
        rj.Relative(loaded_arm(0.3, 0.05)), runs, [inertia, load], state0=state, horizons=(1.0,)
    )
    assert fit.labels == ("inertia[2]",)
    assert [float(m.system.bodies[1].mass) for m in fit.models] == loads
    assert abs(fit.values[0] - 0.03) < 3 * fit.std["inertia[2]"] < 1e-4


def test_known_values_in_cases(tmp_path):
    """`transform = "known"` holds a value, for each run its own with a leading axis."""
    table = (
        '[[parameter]]\nname = "load"\npath = "model.system.bodies.arm.mass"\n'
        'transform = "known"\nper_run = true\nstart = [1.4]\n\n[method]'
    )
    case = read_case(case_of(tmp_path, replace_text("[method]", table)))
    known = case.parameters[-1]
    assert isinstance(known.transform, ident.Known) and known.per_run
    np.testing.assert_array_equal(np.asarray(known.start), [1.4])
    with pytest.raises(ValueError, match="lower"):
        read_case(case_of(tmp_path, replace_text("[method]", table.replace(
            '"known"', '"known"\nlower = 0.0'))))  # fmt: skip
