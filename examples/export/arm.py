"""A robot arm as a C library, called by ctypes; `arm.c` calls it from C.

Run it with:  python examples/export/arm.py
"""

import ctypes
import pathlib
import platform
import sys

import diffrax
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import rigidjax as rj  # noqa: E402

NAMES = ("shoulder", "elbow")


def arm() -> tuple[rj.Relative, rj.State]:
    """Return an arm of two links with a motor in each joint, and its start."""
    upper = rj.Body.rod("upper", 0.4, 0.05, mass=2.0, position=(0, 0, -0.2))
    lower = rj.Body.rod("lower", 0.3, 0.04, mass=1.0, position=(0, 0, -0.55))
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), axis=(0, 1, 0), name="shoulder", damping=0.1),
        rj.Revolute("upper", "lower", (0, 0, -0.4), axis=(0, 1, 0), name="elbow", damping=0.1),
    ]
    torque = rj.Input("torque", 2)
    motors = [rj.Motor(name, torque[k]) for k, name in enumerate(NAMES)]
    system = rj.System(upper, lower, joints, motors, rj.Gravity((0, 0, -9.81)))
    return rj.Relative(system), rj.jointed_state(system, {"shoulder": 0.3, "elbow": 0.5})


def export_arm(folder: pathlib.Path, **options) -> pathlib.Path:
    """Write `arm.h` and the libraries into a folder."""
    model, state0 = arm()
    return rj.export(
        model, folder / "arm.h", state0=state0, inputs=["torque"],
        outputs=[rj.JointCoordinate(name) for name in NAMES],
        parameters=[rj.Parameter("lower.mass")],
        solver=diffrax.Dopri5(), dt=1e-3, **options,
    )  # fmt: skip


def load(header: pathlib.Path) -> ctypes.CDLL:
    """Return the shared library of a header for this machine."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    name = f"{machine}-{platform.system().lower()}/lib{header.stem}{suffix}"
    library = ctypes.CDLL(str(header.parent / name))
    doubles = ctypes.POINTER(ctypes.c_double)
    library.arm_size.restype = ctypes.c_size_t
    library.arm_init.argtypes, library.arm_init.restype = (
        [ctypes.c_void_p, ctypes.c_double],
        ctypes.c_void_p,
    )
    library.arm_step.argtypes = [ctypes.c_void_p, ctypes.c_double]
    library.arm_outputs.argtypes = [ctypes.c_void_p, doubles]
    for function in (library.arm_states, library.arm_inputs, library.arm_parameters):
        function.argtypes, function.restype = [ctypes.c_void_p], doubles
    library.arm_jacobian.argtypes = [ctypes.c_void_p, *[doubles] * 4]
    return library


def run(library: ctypes.CDLL) -> np.ndarray:
    """Hold the arm by springs and dampers for 1 s; return the angles of its joints."""
    memory = ctypes.create_string_buffer(library.arm_size())
    model = library.arm_init(memory, 0.0)
    library.arm_parameters(model)[0] = 1.5  # kg
    states, torque = library.arm_states(model), library.arm_inputs(model)
    for _ in range(1000):
        for k in range(2):
            torque[k] = -20.0 * states[k] - 2.0 * states[2 + k]
        assert library.arm_step(model, 1e-3) == 0
    angles = (ctypes.c_double * 2)()
    library.arm_outputs(model, angles)
    return np.array(angles)


if __name__ == "__main__":
    print(run(load(export_arm(pathlib.Path()))))
