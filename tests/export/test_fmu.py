"""FMUs, simulated by FMPy: the same motion, derivatives and saved states as in rigidjax."""

import ctypes
import itertools
from types import SimpleNamespace

import diffrax
import fmpy
import jax
import numpy as np
import pytest
from fmpy.fmi2 import FMU2Model
from fmpy.fmi3 import FMU3Model
from fmpy.sundials import CVodeSolver
from fmpy.validation import validate_fmu
from scipy.integrate import solve_ivp

import rigidjax as rj
from rigidjax.exporting.model import flatten_model

_STEPS = {"solver": diffrax.Dopri5(), "dt": 1e-3}
_TIGHT = {"rtol": 1e-11, "atol": 1e-11}
_INERTIA = rj.Parameter("inertia", lambda e: e.model.system.inertia, unit="kg m^2")
_SENSORS = [rj.Gyroscope()]
# Version of FMI, options of the run, end of the run, s.
CASES = {"top-2": ("2.0", _TIGHT, 1.0), "top-3": ("3.0", _STEPS, 0.1)}


@pytest.fixture(scope="module", params=list(CASES))
def case(request, tmp_path_factory):
    version, options, t1 = CASES[request.param]
    problem = rj.problems.heavy_top()
    model = rj.NullSpace(problem.system)
    path = tmp_path_factory.mktemp("fmu") / f"{request.param}.fmu"
    arguments = {"outputs": _SENSORS, "parameters": [_INERTIA], "state0": problem.state0}
    rj.export(model, path, fmi_version=version, **arguments, **options)
    flat = flatten_model(model, problem.state0, None, _SENSORS, [_INERTIA], dict(options))
    return SimpleNamespace(
        path=str(path), model=model, state0=problem.state0, options=options, flat=flat, t1=t1,
        version=version, folder=str(path.with_suffix("")),
        names=[variable.name for variable in flat.state_variables()],
    )  # fmt: skip


class Instance:
    """An FMU for model exchange, by one interface for both versions of FMI."""

    def __init__(self, case):
        folder = fmpy.extract(case.path, case.folder)
        description = fmpy.read_model_description(folder)
        self.is_2 = case.version == "2.0"
        self.references = {v.name: v.valueReference for v in description.modelVariables}
        self.api = (FMU2Model if self.is_2 else FMU3Model)(
            guid=description.guid if self.is_2 else description.instantiationToken,
            unzipDirectory=folder, modelIdentifier=description.modelExchange.modelIdentifier,
        )  # fmt: skip
        self.api.instantiate()
        if self.is_2:
            self.api.setupExperiment(startTime=0.0)
        self.api.enterInitializationMode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.api.terminate()
        self.api.freeInstance()

    def get(self, names):
        read = self.api.getReal if self.is_2 else self.api.getFloat64
        return np.array(read([self.references[name] for name in names]))

    def set(self, values):
        write = self.api.setReal if self.is_2 else self.api.setFloat64
        write([self.references[name] for name in values], list(map(float, values.values())))

    def rates(self, t, x):
        states, rates = (ctypes.c_double * len(x))(*x), (ctypes.c_double * len(x))()
        self.api.setTime(t)
        self.api.setContinuousStates(states, len(x))
        api = self.api
        read = api.getDerivatives if self.is_2 else api.getContinuousStateDerivatives
        read(rates, len(x))
        return np.array(rates)

    def directional(self, unknown, known, seed):
        references = ([self.references[name] for name in names] for names in (unknown, known))
        return np.array(self.api.getDirectionalDerivative(*references, list(seed)))


def _names(case):
    flat = case.flat
    known = [*flat.state_variables(), *flat.input_variables(), *flat.parameter_variables()]
    known, outputs = ([v.name for v in group] for group in (known, flat.output_variables()))
    return known, [f"der({name})" for name in case.names] + outputs


def _start(case):
    flat = case.flat
    groups = flat.state_variables(), flat.input_variables(), flat.parameter_variables()
    return [np.array([v.start for v in group]) for group in groups]


def _evaluate(case):
    return lambda x, u, p: jax.numpy.concatenate(case.flat.evaluate(jax.numpy.zeros(()), x, u, p))


def test_motion_in_co_simulation(case):
    assert validate_fmu(case.path) == []
    ts = np.linspace(0.0, case.t1, 6)
    sol = rj.simulate(case.model, case.state0, case.t1, ts=ts, **case.options)
    run = fmpy.simulate_fmu(
        case.path, fmi_type="CoSimulation", stop_time=case.t1, output_interval=case.t1 / 5,
        step_size=case.t1 / 5, output=case.names,
    )  # fmt: skip
    found = np.stack([run[name] for name in case.names], axis=1)
    np.testing.assert_allclose(found, sol.ys, rtol=0, atol=1e-9)


def test_motion_in_model_exchange(case):
    """By an accurate solver the FMU equals rigidjax.

    The global error of FMPy's BDF at 1e-10 is larger; it is the same with the FMU and with the
    vector field of the model.
    """
    ts = np.linspace(0.0, case.t1, 6)
    exact = rj.simulate(case.model, case.state0, case.t1, ts=ts, **_TIGHT).ys
    with Instance(case) as fmu:
        fmu.api.exitInitializationMode()
        found = solve_ivp(
            fmu.rates, (0.0, case.t1), _start(case)[0], "DOP853", ts, rtol=1e-12, atol=1e-12
        ).y.T
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9)
    run = fmpy.simulate_fmu(
        case.path, fmi_type="ModelExchange", stop_time=case.t1, output_interval=case.t1 / 5,
        relative_tolerance=1e-10, output=case.names,
    )  # fmt: skip
    found = np.stack([run[name] for name in case.names], axis=1)
    np.testing.assert_allclose(found, _solve_by_fmpy(case, ts), rtol=0, atol=1e-9)


def _solve_by_fmpy(case, ts):
    """States at `ts` by FMPy's solver from the vector field of the model, without an FMU."""
    field, now = rj.native.jit(lambda t, y: case.model.vector_field(t, y)), [0.0]
    y, out = _start(case)[0], []

    def array(pointer, n):
        return np.ctypeslib.as_array(pointer, (n,))

    solver = CVodeSolver(
        nx=len(y), nz=0, startTime=0.0, maxStep=case.t1 / 50, relativeTolerance=1e-10,
        get_x=lambda x, n: np.copyto(array(x, n), y),
        set_x=lambda x, n: np.copyto(y, array(x, n)),
        get_dx=lambda x, n: np.copyto(array(x, n), field(now[0], y.copy())),
        get_z=lambda z, n: None, get_nominals=lambda x, n: np.copyto(array(x, n), 1.0),
        set_time=lambda t: now.__setitem__(0, t), input=SimpleNamespace(apply=lambda t: None),
    )  # fmt: skip
    out.append(y.copy())
    for t, end in itertools.pairwise(ts):
        solver.step(t, end)
        out.append(y.copy())
    return np.array(out)


def test_derivatives_equal_those_of_jax(case):
    x, u, p = _start(case)
    rng = np.random.default_rng(0)
    change = tuple(rng.standard_normal(v.shape) for v in (x, u, p))
    known, computed = _names(case)

    evaluate = _evaluate(case)
    value, tangent = jax.jit(lambda at, change: jax.jvp(evaluate, at, change))((x, u, p), change)
    with Instance(case) as fmu:
        np.testing.assert_allclose(fmu.get(computed), value, rtol=1e-12, atol=1e-10)
        found = fmu.directional(computed, known, np.concatenate(change))
        np.testing.assert_allclose(found, tangent, rtol=1e-10, atol=1e-10)
        if case.version == "3.0":
            weights = rng.standard_normal(len(computed))
            gradient = jax.jit(lambda *at: jax.vjp(evaluate, *at)[1](weights))(x, u, p)
            references = ([fmu.references[n] for n in names] for names in (computed, known))
            found = fmu.api.getAdjointDerivative(*references, list(weights), len(known))
            np.testing.assert_allclose(found, np.concatenate(gradient), rtol=1e-10, atol=1e-10)


def test_parameters_and_saved_states(case):
    x, u, p = _start(case)
    p = 1.1 * p
    known, computed = _names(case)
    values = dict(zip(known, [*x, *u, *p], strict=True))
    with Instance(case) as fmu:
        fmu.set(values)
        expected = jax.jit(_evaluate(case))(x, u, p)
        np.testing.assert_allclose(fmu.get(computed), expected, rtol=1e-12, atol=1e-10)
        fmu.api.exitInitializationMode()
        saved = fmu.api.getFMUstate() if fmu.is_2 else fmu.api.getFMUState()
        before = fmu.rates(0.0, x)
        assert np.abs(fmu.rates(0.0, x + 0.01) - before).max() > 1e-4
        (fmu.api.setFMUstate if fmu.is_2 else fmu.api.setFMUState)(saved)
        assert np.array_equal(fmu.get(computed)[: len(x)], before)
        with pytest.raises(fmpy.fmi1.FMICallException):
            fmu.set({case.names[0]: 0.0})
