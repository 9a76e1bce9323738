"""Steps of an exported C library against those of `rj.simulate`.

Both make equal steps of a fixed length by Dopri5, with a projection after each step, on one core,
and take turns. A single call of the library makes all steps, so that ctypes takes no time. The
numbers of the model are constants of the library and arguments of the kernel of `rj.simulate`.
"""

import os

from _one_core import ONE_CORE

if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", ONE_CORE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import ctypes
import pathlib
import platform
import tempfile
from typing import Any

import _common as common
import diffrax
import jax
import numpy as np

import rigidjax as rj

STEP = 1e-3


def models() -> dict[str, tuple[Any, rj.State]]:
    """Return models with their start states."""
    top, loop = rj.problems.heavy_top(), rj.problems.four_bar()
    upper = rj.Body.rod("upper", 0.4, 0.05, mass=2.0, position=(0, 0, -0.2))
    lower = rj.Body.rod("lower", 0.3, 0.04, mass=1.0, position=(0, 0, -0.55))
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), axis=(0, 1, 0), name="shoulder", damping=0.1),
        rj.Revolute("upper", "lower", (0, 0, -0.4), axis=(0, 1, 0), name="elbow", damping=0.1),
    ]
    arm = rj.System([upper, lower], joints, [rj.Gravity((0, 0, -9.81))])
    return {
        "arm with two joints": (
            rj.Relative(arm), rj.jointed_state(arm, {"shoulder": 0.3, "elbow": 0.5})
        ),
        "heavy top": (rj.NullSpace(top.system), top.state0),
        "four-bar": (rj.NullSpace(loop.system), loop.state0),
    }  # fmt: skip


def measure(
    name: str, model: Any, state0: rj.State, count: int, repeats: int, folder: pathlib.Path
) -> dict[str, Any]:
    """Return the row of a model."""
    options = {"solver": diffrax.Dopri5(), "dt": STEP}
    header = rj.export(model, folder / "exported.h", state0=state0, **options)
    library = ctypes.CDLL(str(header.parent / f"{platform.machine()}-linux" / "libexported.so"))
    library.exported_init.argtypes = ctypes.c_void_p, ctypes.c_double
    library.exported_step.argtypes = ctypes.c_void_p, ctypes.c_double
    library.exported_states.restype = ctypes.POINTER(ctypes.c_double)
    memory = ctypes.create_string_buffer(library.exported_size())
    states = np.ctypeslib.as_array(library.exported_states(memory), (model.num_unknowns,))

    def run_library() -> np.ndarray:
        library.exported_init(memory, 0.0)
        status = library.exported_step(memory, count * STEP)
        if status:
            raise RuntimeError(f"The exported step of the {name} ended with {status}.")
        return states.copy()

    simulate = jax.jit(lambda s: rj.simulate(model, s, count * STEP, **options).ys[-1])
    runs = {"C": run_library, "simulate": lambda: simulate(state0)}
    difference = np.abs(run_library() - np.asarray(simulate(state0))).max()
    times = common.time_in_turn(runs, repeats)
    found, base = (common.summary(times[key]) for key in runs)
    return {
        "case": name,
        "num_steps": count,
        "difference": float(difference),
        **found,
        **common.ratios(found, base),
    }


def main() -> None:
    """Measure all models; with `--smoke` a few steps."""
    options = common.arguments(__doc__ or "")
    common.double_precision()
    count, repeats = (10, 1) if options.smoke else (4000, 30)
    rows = []
    for k, (name, (model, state0)) in enumerate(models().items()):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, model, state0, count, repeats, pathlib.Path(folder)))
        if options.smoke and not k:
            break
    common.write("exported_steps", rows, options.smoke)


if __name__ == "__main__":
    main()
