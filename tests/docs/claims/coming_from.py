"""The example of rigidjax prints the values of the table."""

import pathlib
import re

import numpy as np

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "coming_from.md"


def check_1(page, printed):
    row = re.search(r"^\| rigidjax \|.*$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert row
    shown = [float(x) for x in row[0].split("|")[3:5]]
    np.testing.assert_allclose([float(word) for word in printed.split()], shown, rtol=1e-8)
