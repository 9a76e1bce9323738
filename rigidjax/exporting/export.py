"""Export of a model: the entry point `rj.export`."""

import hashlib
import os
import pathlib
import platform
import re
import tempfile
import uuid
import zipfile
from collections.abc import Sequence
from typing import Any

import diffrax
from jaxtyping import ArrayLike

from ..formulations.choice import ModelInput
from ..identification import Parameter
from ..native import TracedFunction, compile_object
from ..projection import AbstractProjection
from ..sensors import AbstractSensor
from ..simulate.arguments import DEFAULT_TOLERANCE
from ..state import State
from .binaries import PLATFORMS, Platform, archive, compile_sources, link
from .model import FlatModel, flatten_model
from .texts import describe, write_header, write_library_header

_EPOCH = (1980, 1, 1, 0, 0, 0)


def export(
    model: ModelInput,
    path: str | os.PathLike[str],
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[AbstractSensor] = (),
    parameters: Sequence[Parameter] = (),
    state0: State | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: ArrayLike = DEFAULT_TOLERANCE,
    atol: ArrayLike = DEFAULT_TOLERANCE,
    dt: float | None = None,
    projection: bool | AbstractProjection = True,
    max_steps: int = 100_000,
    fmi_version: str | None = None,
    platforms: Sequence[str] | None = None,
) -> pathlib.Path:
    r"""Write a model as a Functional Mock-up Unit (FMU) or as a C library.

    The binaries are the machine code of the kernels, without Python, JAX or LLVM inside.

    ```python
    rj.export(model, "arm.fmu", inputs=["torque"], outputs=[rj.JointCoordinate("elbow")])
    rj.export(model, "arm.h", inputs=["torque"], dt=1e-3, solver=diffrax.Dopri5())
    ```

    An FMU offers co-simulation, by the method of `rj.Stepper`, and model exchange, in which the
    importing program integrates; directional derivatives, and with FMI 3.0 adjoint derivatives, of
    rates and outputs with respect to states, inputs and parameters; and saved states. The states
    are the unknowns of the formulation, with the names of `rj.io.names.unknown_names`. Model
    exchange does not project: drift of constraints is left to the tolerance of the importing
    program, and `rj.Relative` has no drift in tree joints.

    A C library is the header, and for each platform a folder of its name with a shared and a static
    library. It allocates no memory, and with `dt` and an explicit solver a step takes a bounded
    time.

    **Arguments:**

    - `model`: a system or a formulation without multipliers as unknowns, in double precision.
    - `path`: the FMU, `name.fmu`, or the header, `name.h`.
    - `inputs`: names of `rj.Input`s of the model; `None` for all. They are constant within a step.
      Other inputs keep their defaults.
    - `outputs`: sensors.
    - `parameters`: `rj.Parameter`s whose leaves of the model can be changed; their transformations
      and start values are not used.
    - `state0`: the start, by default the reference configuration at rest. Start values of states
      can be changed in the FMU.
    - `solver`, `rtol`, `atol`, `dt`, `projection`, `max_steps`: as of `rj.Stepper`, for
      co-simulation and the C library. With `dt`, a communication step is divided into the smallest
      number of equal steps that are not longer than `dt`.
    - `fmi_version` of an FMU: "2.0", the default, or "3.0".
    - `platforms`: names from "x86_64-linux", "aarch64-linux", "x86_64-windows", "aarch64-windows",
      "x86_64-darwin" and "aarch64-darwin"; by default that of this machine. Code for x86-64 needs
      AVX2, FMA and BMI.

    **Returns:** the path.
    **Errors:** `TypeError` and `ValueError` for arguments that do not fit; `rj.native.NoRule`
    for a model that cannot be a kernel, with the operation and its line; `ModuleNotFoundError`
    without the extra `rigidjax[export]`.
    """
    path = pathlib.Path(path)
    chosen = choose_platforms(path, fmi_version, platforms)
    options: dict[str, Any] = {
        "solver": solver, "dt": dt, "rtol": rtol, "atol": atol, "projection": projection,
        "max_steps": max_steps,
    }  # fmt: skip
    flat = flatten_model(model, state0, inputs, outputs, parameters, options)
    prefix = re.sub(r"\W|^(?=\d)", "_", path.stem)
    with tempfile.TemporaryDirectory() as folder:
        build = _Build(pathlib.Path(folder), flat, flat.functions(), prefix)
        if path.suffix == ".fmu":
            _write_fmu(build, path, fmi_version or "2.0", chosen)
        else:
            _write_library(build, path, chosen)
    return path


class _Build:
    """A folder in which the binaries of a model are built."""

    def __init__(
        self, folder: pathlib.Path, flat: FlatModel, functions: list[TracedFunction], prefix: str
    ):
        self.folder, self.flat, self.functions, self.prefix = folder, flat, functions, prefix

    def compile(self, platform: Platform, token: str, source: str) -> list[pathlib.Path]:
        """Return the object files of a platform: kernels, `core.c` and `source`."""
        codes = [
            compile_object(f, f"{self.prefix}_kernel_{f.name}", platform.processor)
            for f in self.functions
        ]
        objects = []
        for code in codes:
            objects.append(self.folder / f"{code.name}.o")
            objects[-1].write_bytes(code.content)
        header = write_header(self.flat, self.functions, codes, self.prefix, token)
        (self.folder / "model.h").write_text(header, "utf-8")
        return [*objects, *compile_sources(platform, ["core.c", source], self.folder)]


def _write_fmu(build: _Build, path: pathlib.Path, version: str, platforms: Sequence[str]) -> None:
    # A common communication step; the importing program may choose another.
    step = 0.01 if build.flat.is_adaptive else build.flat.stepper.period
    names = path.stem, build.prefix
    jaxprs = "".join(str(f.closed) for f in build.functions)
    digest = hashlib.sha256(describe(build.flat, version, *names, "", step) + jaxprs.encode())
    token = f"{{{uuid.UUID(bytes=digest.digest()[:16])}}}"
    with zipfile.ZipFile(path, "w") as file:

        def add(name: str, content: bytes) -> None:
            # A fixed date, so that an export can be reproduced.
            file.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)

        add("modelDescription.xml", describe(build.flat, version, *names, token, step))
        for name in platforms:
            target = PLATFORMS[name]
            out = build.folder / f"{build.prefix}{target.suffix}"
            link(target, build.compile(target, token, f"fmi{version[0]}.c"), out)
            folder = target.fmi2 if version == "2.0" else name
            add(f"binaries/{folder}/{out.name}", out.read_bytes())


def _write_library(build: _Build, path: pathlib.Path, platforms: Sequence[str]) -> None:
    for name in platforms:
        target, folder = PLATFORMS[name], path.parent / name
        objects = build.compile(target, "", "library.c")
        folder.mkdir(exist_ok=True)
        link(target, objects, folder / f"lib{path.stem}{target.suffix}")
        static = folder / f"lib{path.stem}.a"
        static.unlink(missing_ok=True)
        archive(objects, static)
    path.write_text(write_library_header(build.flat, path.stem, build.prefix), "utf-8")


def choose_platforms(
    path: pathlib.Path, fmi_version: str | None, names: Sequence[str] | None
) -> list[str]:
    """Return the names of platforms, by default that of this machine.

    **Errors:** `ValueError` for an unknown platform, and for a wrong suffix or FMI version.
    """
    if path.suffix not in (".fmu", ".h"):
        raise ValueError(f"`export(path=...)` must end with .fmu or .h; got {path.name!r}.")
    if fmi_version not in (None, "2.0", "3.0"):
        raise ValueError(f'`export(fmi_version=...)` must be "2.0" or "3.0"; got {fmi_version!r}.')
    if fmi_version is not None and path.suffix == ".h":
        raise ValueError("`export(fmi_version=...)` is for FMUs; leave it out for a C library.")
    if names is None:
        machine = platform.machine()
        machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
        names = [f"{machine}-{platform.system().lower()}"]
    if isinstance(names, str) or any(name not in PLATFORMS for name in names):
        raise ValueError(
            f"`export(platforms=...)` takes a list of names of {sorted(PLATFORMS)}; got {names!r}."
        )
    return list(names)
