"""Mass matrices are symmetric, and model files are written."""

import pathlib

import numpy as np

import rigidjax as rj


def check_1(defined, printed):
    assert len(defined["driven"].forces) == 3
    np.testing.assert_allclose(defined["M"], defined["M"].T, atol=1e-13)
    copy = rj.models.load("copy.urdf").system
    assert [body.name for body in copy.bodies] == list(defined["robot"].names.bodies)
    assert pathlib.Path("fitted.urdf").read_bytes() == pathlib.Path("arm.urdf").read_bytes()
