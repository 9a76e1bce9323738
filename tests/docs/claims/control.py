"""Controllers reach their goals; regulators of linear models stabilise."""

import numpy as np


def move_by_samples():
    """Return the displacement of the mass of 2 kg at every sample, from its exact motion."""
    x, v, integral, held, path = 0.0, 0.0, 0.0, 0.0, [0.0]
    for _ in range(1000):
        force, integral = 6.0 * (1 - x) + integral - 5.0 * v, integral + 0.02 * (1 - x)
        x, v = x + 0.02 * v + 0.5 * held / 2 * 0.02**2, v + held / 2 * 0.02
        held = force
        path.append(x)
    return np.array(path)


def check_1(page, printed):
    assert abs(page["sol"].coordinates["hinge"][-1, 0]) < 1e-3


def check_2(page, printed):
    np.testing.assert_allclose(page["sol"].coordinates["joint"][-1, 0], np.sin(3.0), atol=1e-6)


def check_3(page, printed):
    displacements = page["sol"].coordinates["slide"][:, 0]
    np.testing.assert_allclose(displacements, move_by_samples()[::250], atol=1e-6)


def check_4(names, printed):
    assert not names["linear"].is_stable and names["closed"].is_stable
    assert abs(names["balanced"].coordinates["hinge"][-1, 0]) < 1e-3
    free, held = (
        abs(float(run.coordinates["hinge"][-1, 0] - names["nominal"].coordinates["hinge"][-1, 0]))
        for run in (names["free"], names["held"])
    )
    assert free > 0.1 and held < 0.1 * free
