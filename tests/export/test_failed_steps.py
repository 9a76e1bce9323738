"""Steps and evaluations that fail leave an exported model as it was; closed forms after a retry."""

import ctypes
import functools
import math

import diffrax
import fmpy
import jax.numpy as jnp
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Model, FMU2Slave
from fmpy.fmi3 import FMU3Model, FMU3Slave

import rigidjax as rj

MASS, WALL = 2.0, 0.1  # kg, m
_METHODS = {
    "fixed": {"solver": diffrax.Dopri5(), "dt": 0.05},
    # An implicit method has states of its own, beside those of the step-size control.
    "implicit": {"solver": rj.solvers.Radau5(), "dt": 0.05},
    "adaptive": {"rtol": 1e-10, "atol": 1e-10, "max_steps": 60},
}
_OUTPUTS = [
    rj.JointCoordinate("slide"), rj.JointRate("slide"), rj.Accelerometer("mass", (0, 0, 0)),
]  # fmt: skip


@functools.cache
def _push():
    """Return a mass that an input pushes along a line, with no law of force beyond the wall."""
    mass = rj.Body("mass", MASS, (1.0, 1.0, 1.0))
    slide = rj.Prismatic("ground", "mass", axis=(1, 0, 0), name="slide")
    wall = rj.Motor("slide", lambda t, x, v: jnp.where(x > WALL, jnp.nan, 0.0))
    push = rj.Motor("slide", rj.Input("push", default=1.0))
    return rj.Relative(rj.System([mass], [slide], [wall, push]))


class _Unit:
    """An FMU of either version of FMI."""

    def __init__(self, folder, version, kind="coSimulation"):
        description = fmpy.read_model_description(folder)
        self.of = {v.name: v.valueReference for v in description.modelVariables}
        self.is_2 = version == "fmi2"
        slave, model = (FMU2Slave, FMU2Model) if self.is_2 else (FMU3Slave, FMU3Model)
        self.api = (slave if kind == "coSimulation" else model)(
            guid=description.guid if self.is_2 else description.instantiationToken,
            unzipDirectory=folder, instanceName="push",
            modelIdentifier=getattr(description, kind).modelIdentifier,
        )  # fmt: skip
        self.api.instantiate()
        if self.is_2:
            self.api.setupExperiment(startTime=0.0)
        self.api.enterInitializationMode()
        self.api.exitInitializationMode()
        self.time = 0.0

    def step(self, h):
        """Return whether a step succeeds."""
        try:
            self.api.doStep(self.time, h)
        except FMICallException as error:
            assert "discard" in str(error)
            return False
        self.time += h
        return True

    def state(self):
        """Return everything that the FMU saves, as bytes."""
        saved = self.api.getFMUState()
        serialize = self.api.serializeFMUstate if self.is_2 else self.api.serializeFMUState
        out = bytes(serialize(saved))
        self.api.freeFMUState(saved)
        return out

    def get(self, *names):
        read = self.api.getReal if self.is_2 else self.api.getFloat64
        return read([self.of[name] for name in names])

    def set(self, **values):
        write = self.api.setReal if self.is_2 else self.api.setFloat64
        write([self.of[name] for name in values], list(values.values()))

    def position(self):
        return self.get("coordinate of slide", "rate of slide")

    def close(self):
        self.api.terminate()
        self.api.freeInstance()


class _Library:
    """A C library, called by ctypes."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(next(path.parent.glob(f"*/lib{path.stem}.so"))))
        self.memory = ctypes.create_string_buffer(self.c.push_size())
        self.c.push_time.restype = ctypes.c_double
        self.c.push_inputs.restype = ctypes.POINTER(ctypes.c_double)
        self.c.push_states.restype = ctypes.POINTER(ctypes.c_double)
        self.c.push_init(self.memory, ctypes.c_double(0.0))

    def step(self, h):
        return self.c.push_step(self.memory, ctypes.c_double(h)) == 0

    def state(self):
        states, inputs = self.c.push_states(self.memory), self.c.push_inputs(self.memory)
        return self.c.push_time(self.memory), states[0], states[1], inputs[0]

    def set(self, push):
        self.c.push_inputs(self.memory)[0] = push

    def position(self):
        outputs = (ctypes.c_double * 5)()
        self.c.push_outputs(self.memory, outputs)
        return outputs[0], outputs[1]

    def close(self):
        pass


@pytest.fixture(scope="module")
def export_once(tmp_path_factory):
    """Return a function that returns the path of a header, or the folder of an unpacked FMU."""

    @functools.cache
    def export(version, method):
        folder = tmp_path_factory.mktemp("push")
        path = folder / ("push.h" if version == "library" else "push.fmu")
        fmi_version = {"fmi2": "2.0", "fmi3": "3.0"}.get(version)
        rj.export(_push(), path, outputs=_OUTPUTS, fmi_version=fmi_version, **_METHODS[method])
        return path if version == "library" else fmpy.extract(str(path), str(folder / "push"))

    return export


@pytest.fixture(
    params=["fmi2-fixed", "fmi3-fixed", "library-fixed", "fmi3-adaptive", "library-implicit"]
)
def start(request, export_once):
    """Return a function that starts an exported model."""
    version, method = request.param.split("-")
    path = export_once(version, method)
    started = []

    def make():
        started.append(_Library(path) if version == "library" else _Unit(path, version))
        return started[-1]

    yield make
    for model in started:
        model.close()


def _closed_form(t, x=0.0, v=0.0, push=1.0):
    return [x + v * t + 0.5 * push / MASS * t**2, v + push / MASS * t]


def test_failed_step_leaves_everything_as_it_was(start):
    model, never_failed = start(), start()
    before = model.state()
    # The wall is reached at 0.632 s: a dozen steps of fixed length succeed before.
    assert not model.step(1.0)
    assert model.state() == before
    assert not model.step(-1.0)
    assert model.state() == before
    for h in (0.02, 0.2):
        assert model.step(h)
        before = model.state()
        assert not model.step(1.0)
        assert model.state() == before
        assert never_failed.step(h)
    np.testing.assert_allclose(model.position(), _closed_form(0.22), rtol=1e-12)
    # The length of the next step and the memory of the solver are those without a failure, too.
    assert model.step(0.1)
    assert never_failed.step(0.1)
    assert model.state() == never_failed.state()


def test_step_with_an_input_that_is_not_finite_can_be_repeated(start):
    model = start()
    assert model.step(0.2)
    x, v = model.position()
    for push in (math.nan, math.inf):
        model.set(push=push)
        before = model.state()
        assert not model.step(0.1)
        np.testing.assert_equal(model.state(), before)
        model.set(push=-3.0)
        np.testing.assert_allclose(model.position(), (x, v), rtol=1e-15)
    assert model.step(0.1)
    np.testing.assert_allclose(model.position(), _closed_form(0.1, x, v, -3.0), rtol=1e-12)


@pytest.fixture(params=["fmi2", "fmi3"])
def unit(request, export_once):
    return export_once(request.param, "fixed"), request.param


def test_saved_state_and_last_time_after_a_failure(unit):
    fmu = _Unit(*unit)
    assert fmu.step(0.2)
    saved = fmu.api.getFMUState()
    assert fmu.step(0.2)
    time = ctypes.c_double(math.nan)
    with pytest.raises(FMICallException, match="discard"):
        if fmu.is_2:
            fmu.api.doStep(fmu.time, 1.0)
        else:
            flags = [ctypes.byref(ctypes.c_bool(True)) for _ in range(3)]
            fmu.api.fmi3DoStep(fmu.api.component, fmu.time, 1.0, True, *flags, ctypes.byref(time))
            assert not any(flag._obj.value for flag in flags)
    if fmu.is_2:
        last_successful_time = 2
        fmu.api.fmi2GetRealStatus(fmu.api.component, last_successful_time, ctypes.byref(time))
    assert time.value == fmu.time
    fmu.api.setFMUState(saved)
    fmu.time = 0.2
    assert fmu.step(0.1)
    np.testing.assert_allclose(fmu.position(), _closed_form(0.3), rtol=1e-12)
    fmu.api.freeFMUState(saved)
    fmu.close()


def test_evaluations_that_are_not_finite_ask_for_a_shorter_step(unit):
    """In model exchange: behind the wall there are no rates, before it they are exact again."""
    fmu = _Unit(*unit, kind="modelExchange")
    api, rates = fmu.api, (ctypes.c_double * 2)()
    read = api.getDerivatives if fmu.is_2 else api.getContinuousStateDerivatives
    acceleration = next(name for name in fmu.of if "accelerometer" in name)
    for x in (0.05, 0.2, 0.05):
        api.setContinuousStates((ctypes.c_double * 2)(x, 0.3), 2)
        if x < WALL:
            read(rates, 2)
            np.testing.assert_allclose(rates, [0.3, 1.0 / MASS], rtol=1e-15)
            np.testing.assert_allclose(fmu.get(acceleration), 1.0 / MASS, rtol=1e-15)
            continue
        for evaluate in (lambda: read(rates, 2), lambda: fmu.get(acceleration)):
            with pytest.raises(FMICallException, match="discard"):
                evaluate()
        assert math.isnan(rates[1])
        np.testing.assert_allclose(fmu.position(), [x, 0.3], rtol=1e-15)
    fmu.close()


def test_values_are_set_together_or_not_at_all(unit):
    fmu = _Unit(*unit)
    rate = next(name for name in fmu.of if name.startswith("der(") and "rate" in name)
    before = fmu.get("push", rate)
    with pytest.raises(FMICallException, match="error"):
        fmu.set(**{"push": 5.0, "coordinate of slide": 0.0})
    assert fmu.get("push", rate) == before
    fmu.close()
