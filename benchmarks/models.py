"""Every model file of installed packages: loaded or why not, and deviations from other programs.

URDF files are compared with Pinocchio, MJCF files with MuJoCo, at 20 random states: mass matrix,
bias forces and forward dynamics with random forces. A model with unsupported features is loaded
without them, and the row names them. `--package NAME` and `--file PATTERN` choose files; other
rows are kept. A package that is not installed is an error.
"""

import argparse
import fnmatch
import importlib.metadata
import math
import os
import pathlib
import re
import sys
import time
import traceback
from typing import Any

# Each model is compiled for 20 states; optimising the code would take longer than running it.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)

import _common as common
import jax
from _model_files import (
    PACKAGES,
    SMOKE,
    find_folder,
    find_models,
    load_supported,
    mass_matrix_condition,
)

from rigidjax.models.check import compare

STATES = 20
# Deviations of accelerations above this get the condition number of the mass matrix beside them.
LARGEST = 1e-10


def measure(path: pathlib.Path, home: pathlib.Path) -> dict[str, Any]:
    """Return whether a file is loaded or why not, and the deviations from the other program.

    **Arguments:** `path` of the file; `home`, the folder of its package.
    """
    program: Any = "pinocchio" if path.suffix == ".urdf" else "mujoco"
    begin = time.monotonic()
    model, ignored = load_supported(path, home)
    row: dict[str, Any] = {"program": program, "ignored": ignored}
    if isinstance(model, ValueError):
        return row | {"error": _in_one_line(model, path)}
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
    finite = {k: v if math.isfinite(v) else None for k, v in deviations._asdict().items()}
    if not deviations.accelerations <= LARGEST:
        condition = mass_matrix_condition(model, program, path, STATES)
        finite["condition"] = condition if math.isfinite(condition) else None
    return row | finite | {"seconds": round(time.monotonic() - begin, 1)}


def _in_one_line(error: Exception, path: pathlib.Path) -> str:
    text = " ".join(str(error).split()).replace(str(path), path.name)
    return re.sub(r"/[^ ']*/site-packages/", "", text)[:300]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--package` and `--file`."""
    parser.add_argument("--package", action="append", help="name of a package; by default all")
    parser.add_argument("--file", default="*", help="pattern of paths in the packages")


def main() -> None:
    """Measure the chosen models; write each row at once, beside the rows of the other models."""
    options = common.arguments(__doc__ or "", add_options)
    common.double_precision()
    if options.smoke:
        row = {"case": SMOKE.name, **measure(SMOKE, SMOKE.parent)}
        common.write("models", [row], True)
        return
    chosen = [item for item in PACKAGES if item.name in (options.package or [item.name])]
    # A package that is missing is an error before anything is measured.
    files = {package: list(find_models(package)) for package in chosen}
    found = {(package.name, name) for package in chosen for _, name in files[package]}
    others = [row for row in _earlier_rows() if _is_kept(row, options.package, found)]
    common.write_rows("models", others)
    for package in chosen:
        version = importlib.metadata.version(package.name)
        for path, name in files[package]:
            if fnmatch.fnmatch(name, options.file):
                print(package.name, name, flush=True)
                row = {"package": package.name, "version": version, "file": name}
                _merge(row | measure(path, find_folder(package)))
                jax.clear_caches()


def _earlier_rows() -> list[dict[str, Any]]:
    return common.read("models") if (common.RESULTS / "models.json").exists() else []


def _is_kept(row: dict[str, Any], chosen: list[str] | None, found: set[tuple[str, str]]) -> bool:
    """Return whether the file of a row exists; files of packages that are not chosen do."""
    left_out = chosen is not None and row["package"] not in chosen
    return left_out or (row["package"], row["file"]) in found


def _merge(row: dict[str, Any]) -> None:
    """Write a row, which replaces an earlier one of the same file."""
    file = row["package"], row["file"]
    kept = [other for other in _earlier_rows() if (other["package"], other["file"]) != file]
    case = {"benchmark": "models", "case": " ".join(file)}
    rows = [*kept, {**case, **row, **common.environment()}]
    names = list(dict.fromkeys(package.name for package in PACKAGES))
    rows.sort(key=lambda row: (names.index(row["package"]), row["program"], row["file"]))
    common.write_rows("models", rows)


if __name__ == "__main__":
    main()
