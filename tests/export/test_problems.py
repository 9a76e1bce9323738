"""Every problem of `rj.problems` as an FMU, in co-simulation by FMPy."""

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

import rigidjax as rj

_TOLERANCES = {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", rj.problems.all())
def test_problem_equals_simulate(tmp_path, name):
    problem = rj.problems.all()[name]()
    model, path = rj.NullSpace(problem.system), str(tmp_path / f"{name}.fmu")
    rj.export(model, path, state0=problem.state0, **_TOLERANCES)
    assert validate_fmu(path) == []
    variables = fmpy.read_model_description(path).modelVariables
    states = [v.name for v in variables if v.causality == "local" and v.initial == "exact"]
    t1 = min(problem.t1, 0.1)
    ts = np.linspace(0.0, t1, 3)
    run = fmpy.simulate_fmu(
        path, fmi_type="CoSimulation", stop_time=t1, output_interval=t1 / 2, step_size=t1 / 2,
        output=states,
    )  # fmt: skip
    found = np.stack([run[state] for state in states], axis=1)
    expected = np.asarray(rj.simulate(model, problem.state0, t1, ts=ts, **_TOLERANCES).ys)
    # Both runs have errors of the size of the tolerance: their steps differ.
    scale = np.maximum(1.0, np.abs(expected).max(axis=0))
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-9)
