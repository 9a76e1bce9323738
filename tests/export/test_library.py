"""C libraries, called by ctypes and from C, and arguments of `rj.export` that do not fit."""

import ctypes
import importlib.util
import pathlib
import shutil
import subprocess
import sys

import diffrax
import equinox as eqx
import external_programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.exporting.model import flatten_model

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "export"


def _doubles(*shape):
    array = np.zeros(shape)
    return array, array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def test_library_of_the_heavy_top(tmp_path):
    top, method = rj.problems.heavy_top(), {"solver": diffrax.Dopri5(), "dt": 1e-3}
    model, sensors = rj.NullSpace(top.system), [rj.Gyroscope()]
    inertia = rj.Parameter("inertia", lambda e: e.model.system.inertia)
    arguments = {"outputs": sensors, "parameters": [inertia], "state0": top.state0}
    rj.export(model, tmp_path / "top.h", platforms=["x86_64-linux"], **arguments, **method)
    assert "inertia[3]" in (tmp_path / "top.h").read_text()
    binary = tmp_path / "x86_64-linux" / "libtop.so"
    # Names of imported functions.
    assert all(f"\0{name}\0".encode() not in binary.read_bytes() for name in ("malloc", "calloc"))

    top_c = ctypes.CDLL(str(binary))
    top_c.top_init.argtypes = ctypes.c_void_p, ctypes.c_double
    top_c.top_step.argtypes = ctypes.c_void_p, ctypes.c_double
    top_c.top_message.restype = ctypes.c_char_p
    top_c.top_states.restype = ctypes.POINTER(ctypes.c_double)
    memory = ctypes.create_string_buffer(top_c.top_size())
    assert top_c.top_init(memory, 0.0)
    states = np.ctypeslib.as_array(top_c.top_states(memory), (7,))
    assert top_c.top_step(memory, 0.05) == 0  # fifty steps
    sol = rj.simulate(model, top.state0, 0.05, **method)
    np.testing.assert_allclose(states, sol.ys[-1], rtol=0, atol=1e-12)

    saved = memory.raw
    assert top_c.top_step(memory, 0.01) == 0
    later = states.copy()
    memory.raw = saved
    assert top_c.top_step(memory, 0.01) == 0
    assert np.array_equal(states, later)
    assert b"positive" in top_c.top_message(top_c.top_step(memory, -0.01))
    assert np.array_equal(states, later)

    flat = flatten_model(model, top.state0, None, sensors, [inertia], method)
    at = [states, np.zeros(0), np.ravel(top.system.inertia)]
    of = jax.jacfwd(lambda x, u, p: flat.evaluate(jnp.zeros(()), x, u, p), (0, 2))
    (A, of_inertia), (C, _) = jax.jit(of)(*map(jnp.asarray, at))
    found_A, pointer_A = _doubles(7, 7)
    found_C, pointer_C = _doubles(3, 7)
    top_c.top_jacobian(memory, pointer_A, None, pointer_C, None)
    np.testing.assert_allclose(found_A, A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found_C, C, rtol=1e-12, atol=1e-12)
    weights, pointer = _doubles(7)
    weights[:] = np.arange(7)
    found, result = _doubles(at[2].size)
    top_c.top_adjoint(memory, pointer, None, None, None, result)
    np.testing.assert_allclose(found, weights @ of_inertia, rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """The example, and the header of its libraries for two processors."""
    spec = importlib.util.spec_from_file_location("arm", EXAMPLES / "arm.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    folder = tmp_path_factory.mktemp("arm")
    return example, example.export_arm(folder, platforms=["x86_64-linux", "aarch64-linux"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_example_in_c(arm, processor):
    emulator = shutil.which("qemu-aarch64")
    if processor == "aarch64" and emulator is None:
        pytest.skip(external_programs.NO_QEMU)
    example, header = arm
    program = header.parent / f"arm-{processor}"
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", f"{processor}-linux-musl", "-static",
        "-O2", f"-I{header.parent}", str(EXAMPLES / "arm.c"),
        str(header.parent / f"{processor}-linux" / "libarm.a"), "-o", str(program),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    start = [emulator] if processor == "aarch64" else []
    printed = subprocess.run([*start, str(program)], capture_output=True, check=True).stdout
    angles = np.array(printed.split(), float)
    np.testing.assert_allclose(angles, example.run(example.load(header)), rtol=0, atol=1e-13)


def _pendulum():
    rod = rj.Body.rod("rod", 1.0, 0.02, mass=0.2, position=(0, 0, -0.5))
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="hinge")
    return rj.System([rod], [hinge], [rj.Motor("hinge", torque=rj.Input("torque"))])


_ANGLE = rj.JointCoordinate("hinge")


@pytest.mark.parametrize(
    ("make", "arguments", "error", "message"),
    [
        (lambda s: 1.0, {}, TypeError, "takes a system or a formulation such as"),
        (lambda s: rj.Absolute(s, index=3), {}, ValueError, "multipliers among its unknowns"),
        (lambda s: rj.NullSpace(s, rotation=rj.RotationVector()), {}, ValueError,
         "`RotationVector` changes its charts during a run. Use `rj.Quaternion"),
        (rj.Relative, {"path": "pendulum.zip"}, ValueError, r"must end with .fmu or .h"),
        (rj.Relative, {"fmi_version": "1.0"}, ValueError, '"2.0" or "3.0"; got \'1.0\''),
        (rj.Relative, {"path": "a.h", "fmi_version": "2.0"}, ValueError, "leave it out for a C"),
        (rj.Relative, {"platforms": ["riscv"]}, ValueError, "takes a list of names of"),
        (rj.Relative, {"inputs": ["torqe"]}, ValueError, "Did you mean 'torque'"),
        (rj.Relative, {"outputs": ["hinge"]}, TypeError, "takes sensors such as"),
        (rj.Relative, {"outputs": [rj.Gyroscope("rot")]}, ValueError, "rot"),
        (rj.Relative, {"outputs": [rj.Delayed(_ANGLE, 0.01)]}, ValueError,
         "has a delay, which is no function of the state"),
        (rj.Relative, {"outputs": [_ANGLE, _ANGLE]}, ValueError, "several variables are called"),
        (rj.Relative, {"dt": -1.0}, ValueError, "must be positive"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(tmp_path, make, arguments, error, message):
    path = tmp_path / arguments.get("path", "pendulum.fmu")
    arguments = {k: v for k, v in arguments.items() if k != "path"}
    with pytest.raises(error, match=message):
        rj.export(make(_pendulum()), path, **arguments)


class _Late(eqx.Module):
    """An input that a law evaluates 0.3 s later."""

    law: rj.Input

    def __call__(self, t):
        return self.law(t - 0.3)


def test_laws_that_evaluate_an_input_at_another_time(tmp_path):
    """A step gives the present value alone; an input that keeps its default has it at all times."""
    rod = _pendulum()
    late = rj.Motor("hinge", _Late(rj.Input("late", default=0.2)))
    model = rj.Relative(rj.System(rod.bodies, rod.joints, [*rod.forces, late]))
    with pytest.raises(ValueError, match="evaluates the input 'late' at another time than that"):
        rj.export(model, tmp_path / "pendulum.fmu")
    flat = flatten_model(model, None, ["torque"], [], [], {})
    about_hinge = rod.bodies[0].inertia[1] + 0.2 * 0.25
    rates, _ = flat.evaluate(jnp.zeros(()), jnp.zeros(2), jnp.zeros(1), jnp.zeros(0))
    np.testing.assert_allclose(rates[1], 0.2 / about_hinge, rtol=1e-12)


def test_single_precision_is_refused(tmp_path):
    system = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), _pendulum())
    with pytest.raises(ValueError, match="needs a model in double precision"):
        rj.export(rj.Relative(system), tmp_path / "pendulum.fmu")


def test_outputs_without_feedthrough():
    """An angle does not depend on the torque at once; an acceleration does."""
    model, sensors = rj.Relative(_pendulum()), [_ANGLE, rj.Accelerometer("rod", (0, 0, 0))]
    assert flatten_model(model, None, None, sensors, [], {}).feeds_through() == [False, *[True] * 3]
