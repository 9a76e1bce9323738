"""The blocks of the page on linear models form one script, whose claims hold."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "linear_models.md"
SCRIPT = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S))


def test_blocks():
    names = {}
    exec(compile(SCRIPT, str(PAGE), "exec"), names)
    assert not names["linear"].is_stable and names["closed"].is_stable
    assert abs(names["balanced"].coordinates["hinge"][-1, 0]) < 1e-3
    free, held = (
        abs(float(run.coordinates["hinge"][-1, 0] - names["nominal"].coordinates["hinge"][-1, 0]))
        for run in (names["free"], names["held"])
    )
    assert free > 0.1 and held < 0.1 * free
