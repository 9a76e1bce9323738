"""The derivative agrees with differences."""

import pathlib

import numpy as np


def check_1(defined, printed):
    assert defined["system"].num_dof == 7
    assert pathlib.Path("model.html").is_file()
    height = defined["height"]
    difference = (height(0.0301) - height(0.0299)) / 2e-4
    np.testing.assert_allclose(defined["slope"], difference, rtol=1e-5)
