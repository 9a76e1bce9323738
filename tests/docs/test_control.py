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


def test_blocks():
    balance, torque, sampled = (run(block)["sol"] for block in BLOCKS)
    assert abs(balance.coordinates["hinge"][-1, 0]) < 1e-3
    np.testing.assert_allclose(torque.coordinates["joint"][-1, 0], np.sin(3.0), atol=1e-6)
    np.testing.assert_allclose(sampled.coordinates["slide"][-1, 0], 1.0, atol=0.1)
