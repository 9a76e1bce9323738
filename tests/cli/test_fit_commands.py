"""`rigidjax compare-fits` and `rigidjax trajectory`, and `[intervals]` of a case."""

import numpy as np
import pytest
from cli.case_files import ARM, TEXT, case_of
from cli.program import assert_refused, good

from rigidjax.cli.case.case import read_case
from rigidjax.cli.case.intervals import IntervalMethods, add_methods

# Undamped, and damped as in the example.
UNDAMPED = TEXT[: TEXT.rindex("[[parameter]]")] + TEXT[TEXT.rindex("[method]") :]
HEAVY_ARM = (
    ARM.replace("inertia", "position = [0.4, 0.0, 0.0]\ninertia")
    + """
[[force]]
type = "Gravity"
vector = [0.0, -9.81, 0.0]
[trajectory]
period = 4.0
harmonics = 3
num_starts = 1
[trajectory.limits.hinge]
position = [-1.0, 0.5]
rate = 2.0
torque = 8.0
[[trajectory.workspace]]
body = "arm"
low = [-2.0, -0.3, -1.0]
high = [2.0, 2.0, 1.0]
"""
)


def test_methods_of_intervals(tmp_path):
    table = '[intervals]\nprofile = ["damping"]\nbootstrap = 50\nkind = "block"\nseed = 3\n'
    methods = read_case(case_of(tmp_path, TEXT + table)).intervals
    assert methods == IntervalMethods(("damping",), 50, "block", 0, 3)
    more = add_methods(methods, ("posterior", "bootstrap"), ("I3",))
    assert more == IntervalMethods(("damping", "I3"), 50, "block", 1000, 3)
    assert add_methods(methods, ("profile",), ()).profile is None
    with pytest.raises(ValueError, match="`--intervals jackknife` must be profile, bootstrap or"):
        add_methods(methods, ("jackknife",), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("profile = 3", r"\[intervals\]: `profile` must be true, false or an array of labels"),
        ("bootstrap = 1", r"\[intervals\]: `bootstrap` must be 2 or more; got 1"),
        ('kind = "blocks"', r"\[intervals\]: There is no `kind` 'blocks'. Did you mean 'block'"),
        ("samples = 10", r"\[intervals\]: there is no `samples` here"),
    ],
)
def test_invalid_methods_of_intervals(tmp_path, line, message):
    case = case_of(tmp_path, f"{TEXT}[intervals]\n{line}\n")
    assert_refused(message, "identify", case)


def test_comparison_needs_two_cases(tmp_path):
    assert_refused("`compare-fits` needs two cases", "compare-fits", case_of(tmp_path, TEXT))


@pytest.mark.exhaustive
def test_comparison_of_a_damped_and_an_undamped_arm(tmp_path):
    damped = case_of(tmp_path, TEXT)
    undamped = tmp_path / "undamped.toml"
    undamped.write_text(UNDAMPED.replace("damping = 0.05 ", "damping = 0.0 "))
    report = tmp_path / "comparison.md"
    text = good("compare-fits", damped, undamped, "--folds", 0, "--report", report)
    assert text.index("case: Fit(converged") < text.index("undamped: Fit(converged")
    assert "| case |" in report.read_text().replace("**", "")


@pytest.mark.exhaustive
def test_trajectory_keeps_its_limits(tmp_path):
    case, out = tmp_path / "arm.toml", tmp_path / "arm.csv"
    case.write_text(HEAVY_ARM)
    text = good("trajectory", case, "--out", out, "--rate", 50)
    assert "arm: Trajectory of 1 coordinates, period 4 s, 3 harmonics" in text
    table = np.genfromtxt(out, delimiter=",", names=True)
    assert table.size == 201 and table["time_s"][-1] == 4.0
    q, v, tau = (table[f"{kind}hinge"] for kind in ("q", "v", "tau"))
    # The tip of the design's box is reached by the centre of mass at 0.4 m.
    assert q.min() >= -1.0 and q.max() <= 0.5 and (0.4 * np.sin(q)).min() >= -0.3 - 1e-9
    assert abs(v).max() <= 2.0 and abs(tau).max() <= 8.0
    assert_refused("Choose another file|suffix", "trajectory", case, "--out", case, "--force")
    case.write_text(HEAVY_ARM.replace("rate = 2.0", "rates = 2.0"))
    assert_refused(r"\[trajectory\], \[limits\], \[hinge\]: .*`rates`", "trajectory", case)


def test_limits_of_a_model_file_are_the_defaults(tmp_path):
    from rigidjax.cli.case.trajectory import read_trajectory_case

    (tmp_path / "arm.urdf").write_text(
        '<robot name="a"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<origin xyz="0.3 0 0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="hip" type="revolute"><parent link="base"/>'
        '<child link="arm"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="3" '
        'effort="9"/></joint></robot>'
    )
    case = tmp_path / "arm.toml"
    case.write_text(
        '[model]\nfile = "arm.urdf"\nfixed_base = true\n'
        "[trajectory]\nperiod = 5.0\n[trajectory.limits.hip]\nrate = 2.0\n"
    )
    limits = read_trajectory_case(case).design.keywords["limits"]["hip"]
    assert (tuple(limits.position), limits.rate, limits.torque) == ((-1.0, 1.0), 2.0, 9.0)
