"""Every block of the page on control runs by itself."""

import pathlib
import re

import numpy as np

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "control.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)


def run(block):
    names = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def move_by_samples():
    """Return the displacement of the mass of 2 kg at every sample, from its exact motion."""
    x, v, integral, held, path = 0.0, 0.0, 0.0, 0.0, [0.0]
    for _ in range(1000):
        force, integral = 6.0 * (1 - x) + integral - 5.0 * v, integral + 0.02 * (1 - x)
        x, v = x + 0.02 * v + 0.5 * held / 2 * 0.02**2, v + held / 2 * 0.02
        held = force
        path.append(x)
    return np.array(path)


def test_blocks():
    balance, torque, sampled = (run(block)["sol"] for block in BLOCKS)
    assert abs(balance.coordinates["hinge"][-1, 0]) < 1e-3
    np.testing.assert_allclose(torque.coordinates["joint"][-1, 0], np.sin(3.0), atol=1e-6)
    displacements = sampled.coordinates["slide"][:, 0]
    np.testing.assert_allclose(displacements, move_by_samples()[::250], atol=1e-6)
