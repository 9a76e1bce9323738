"""Every MJCF file of the packages in `benchmarks`: equal to MuJoCo, or an error with its reason.

Each is also saved and loaded again. `RIGIDJAX_MJCF_FOLDERS`, a list of folders like `PATH`, adds
files.
"""

import os
import pathlib

import numpy as np
import pytest
from _model_files import PACKAGES, find_folder, find_models, load_supported
from same_systems import assert_same_system

from rigidjax import models
from rigidjax.models.check import compare

pytestmark = pytest.mark.exhaustive

# Causes outside of rigidjax, and files without anything that moves.
REASONS = ("MuJoCo cannot compile the file", "no link can move", "' does not exist.")
# The mass matrix is singular: MuJoCo's accelerations are not those of the model.
SINGULAR = ("general_dyntype.xml",)


def find_files():
    """Return the files of all packages and of the given folders, each with its folder.

    A package that is not installed is an error where these tests run.
    """
    if os.environ.get("RIGIDJAX_TEST_ALL", "0") == "0":
        return []
    folders = [pathlib.Path(p) for p in os.environ.get("RIGIDJAX_MJCF_FOLDERS", "").split(":") if p]
    files = [(path, folder) for folder in folders for path in folder.rglob("*.xml")]
    for package in PACKAGES:
        if package.suffix == "xml":
            files += [(path, find_folder(package)) for path, _ in find_models(package)]
    return sorted(files)


@pytest.mark.parametrize(("path", "home"), find_files(), ids=lambda path: "/".join(path.parts[-4:]))
def test_file_is_equal_to_mujoco_or_has_a_reason(path, home, tmp_path):
    model, _ = load_supported(path, home)
    if isinstance(model, ValueError):
        assert any(reason in str(model) for reason in REASONS), model
        return
    models.save(model, tmp_path / "saved.xml")
    again = models.load(tmp_path / "saved.xml")
    assert_same_system(model.system, again.system)
    assert (again.limits, again.zeros) == (model.limits, model.zeros)
    gaps = compare(model, "mujoco", path, states=20)
    assert gaps.mass_matrix < 1e-10
    assert gaps.bias_forces < 1e-10
    if path.name in SINGULAR:
        assert np.isnan(gaps.accelerations)
    else:
        assert gaps.accelerations < 1e-10
