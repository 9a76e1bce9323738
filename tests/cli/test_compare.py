"""The command `compare`: its rows, its drift, what it leaves out."""

import re

from cli.program import assert_refused, good


def test_compare_prints_one_row_for_each_formulation(tmp_path):
    path = tmp_path / "work.png"
    words = ("--only", "quaternion", "--only", "zxz")
    text = good("compare", "tennis_racket", "--t1", "0.5", *words, "--plot", path)
    rows = {}
    for line in text.splitlines():
        found = re.match(r"   (\S.*?)\s{2,}(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)", line)
        if found:
            rows.setdefault(found.group(1), []).append(found.groups()[1:])
    assert set(rows) == {"quaternion", "quaternion, space rates", "Euler angles ZXZ"}
    null_space, absolute, hamiltonian = rows["quaternion"]
    assert (null_space[0], absolute[0], hamiltonian[0]) == ("7", "8", "8")
    assert int(null_space[2]) < int(absolute[2])
    assert float(null_space[3]) < float(absolute[3])
    assert "against the closed form" in text
    assert path.stat().st_size > 10_000


def test_compare_rejects_unknown_formulations():
    message = "No formulation has 'octonion' in its name. There are: null space, quaternion;"
    assert_refused(message, "compare", "free_body", "--only", "octonion")
