"""Run the examples of the gallery and keep what its pages show: `python docs/gallery/make.py [NAME ...]`.

Of each run the poses and drift are kept in single precision, the energy, and a filmstrip as a picture. The
documentation is built from these files; nothing is simulated then.
"""

import pathlib
import runpy
import sys

import jax
import numpy as np

from rigidjax import io, plotting

HERE = pathlib.Path(__file__).parent
KEPT = (
    "position", "orientation", "angular_velocity", "energy", "position_drift", "velocity_drift",
    "inertia", "mass", "mechanism",
)  # fmt: skip


def make(name: str) -> None:
    """Run one example and write its files."""
    solution = runpy.run_path(str(HERE / f"{name}.py"))["sol"]
    data = io.to_dataset(solution)
    data = data[[variable for variable in KEPT if variable in data]]
    # Not the energy: of its changes single precision would show nothing but round-off.
    data = data.map(
        lambda x: x.astype(np.float32) if x.dtype == float and x.name != "energy" else x
    )
    io.save(data, HERE / f"{name}.nc", force=True)
    figure = plotting.plot_filmstrip(data, 5)
    plotting.save_figure(figure, HERE / f"{name}.png", force=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for example in sys.argv[1:] or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "make"):
        make(example)
        print(example, flush=True)
