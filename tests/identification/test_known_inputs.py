"""Known inputs of runs that differ, such as payloads, in fits of what they share."""

import numpy as np
import pytest
from cli.case_files import case_of, replace_text

from rigidjax import identification as ident
from rigidjax.cli.case import read_case


def test_known_values_in_cases(tmp_path):
    """`transform = "known"` holds a value, for each run its own with a leading axis."""
    table = (
        '[[parameter]]\nname = "load"\npath = "model.system.bodies.arm.mass"\n'
        'transform = "known"\nper_run = true\nstart = [1.4]\n\n[method]'
    )
    case = read_case(case_of(tmp_path, replace_text("[method]", table)))
    known = case.parameters[-1]
    assert isinstance(known.transform, ident.Known) and known.per_run
    np.testing.assert_array_equal(np.asarray(known.start), [1.4])
    with pytest.raises(ValueError, match="lower"):
        read_case(case_of(tmp_path, replace_text("[method]", table.replace(
            '"known"', '"known"\nlower = 0.0'))))  # fmt: skip
