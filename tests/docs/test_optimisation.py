"""Every block of the page on trajectory optimisation runs by itself and reaches its goal."""

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "optimisation.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)


def run(block):
    names = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_swing_up():
    names = run(BLOCKS[0])
    assert names["result"].success
    np.testing.assert_allclose(names["swing"].ys[-1], names["goal"], atol=1e-6)
    assert np.abs(names["result"].x[80:]).max() <= 20


@pytest.mark.exhaustive
def test_slew():
    names = run(BLOCKS[1])
    assert names["result"].success
    np.testing.assert_allclose(names["duration"], 12.76, atol=0.005)  # two digits on the page
    assert np.abs(names["final_errors"](names["result"].x)).max() < 1e-8


@pytest.mark.exhaustive
def test_path_of_a_four_bar():
    np.testing.assert_allclose(run(BLOCKS[2])["fit"].value, [0.5, 1.3, 1.0, 1.4, 0.6, 0.5], 1e-6)
