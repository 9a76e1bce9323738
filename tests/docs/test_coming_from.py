"""The page for users of other tools: the example of rigidjax prints the values of the table."""

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "coming_from.md"


@pytest.mark.exhaustive
def test_example_prints_the_values_of_the_table(capsys):
    text = PAGE.read_text("utf-8")
    program = re.search(r"## rigidjax\n+```python\n(.*?)```", text, re.DOTALL)
    row = re.search(r"^\| rigidjax \|.*$", text, re.MULTILINE)
    assert program and row
    exec(program[1], {})
    printed = [float(word) for word in capsys.readouterr().out.split()]
    np.testing.assert_allclose(printed, [float(x) for x in row[0].split("|")[3:5]], rtol=1e-8)
