"""Fitted numbers that are written back into model files; all other bytes stay."""

import pathlib
import re

import equinox as eqx
import numpy as np
import pytest
from same_systems import assert_same_numbers

from rigidjax import models
from rigidjax.models.check import compare

DATA = pathlib.Path(__file__).parent / "data"
ARM = DATA / "arm.urdf"
WORDS = re.compile(rb"""([\s"'<>=]+)""")


def changed_words(before, after):
    """Return the words of a file that are different, with their lines; the rest is equal."""
    first, second = WORDS.split(before.read_bytes()), WORDS.split(after.read_bytes())
    assert len(first) == len(second)
    line, found = 1, []
    for old, new in zip(first, second, strict=True):
        if old != new:
            found.append((line, old.decode(), new.decode()))
        line += old.count(b"\n")
    return found


def body(system, name):
    return next(body for body in system.bodies if body.name == name)


def joint(system, name):
    return next(joint for joint in system.joints if joint.name == name)


def replace_values(model, **values):
    """Return the system with other values, by `kind__name__field`."""
    system = model.system
    for key, value in values.items():
        part, name, field = key.split("__")
        find = {"body": body, "joint": joint}[part]
        system = eqx.tree_at(
            lambda s, find=find, name=name, field=field: getattr(find(s, name), field),
            system,
            replace_fn=lambda old, value=value: value(old) if callable(value) else value + 0 * old,
        )
    return system


@pytest.fixture(scope="module")
def arm():
    return models.load(ARM)


@pytest.mark.parametrize("options", [{}, {"lump_fixed": False}, {"mimic": False}], ids=str)
def test_unchanged_systems_give_the_same_bytes(tmp_path, options):
    models.update(ARM, models.load(ARM, **options), tmp_path / "arm.urdf", **options)
    assert (tmp_path / "arm.urdf").read_bytes() == ARM.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["arm.urdf"]


TURN = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
# Other values; lines of the words that are different, and these words where they are short.
CHANGES = {
    "mass": ({"body__shoulder__mass": 3.7}, [21], ["3.7"]),
    "damping": (
        {"joint__yaw__damping": 0.85, "joint__elbow__damping": 0.1}, [35, 71], ["0.85", "0.1"],
    ),
    "armature": ({"joint__yaw__armature": 0.2}, [144], ["8e-05"]),
    # A link with the axes of its <inertial>: one moment is one number.
    "moment": (
        {"body__left_finger__inertia": lambda I: I + np.diag([0.0, 1e-5, 0.0])}, [112], None,
    ),
    # A rotated inertial frame keeps its angles.
    "all moments": (
        {"body__upper_arm__inertia": lambda I: TURN @ I @ TURN.T,
         "body__upper_arm__position": lambda x: x + np.array([0.01, -0.02, 0.03])},
        [*3 * [40], *6 * [42]], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_only_these_numbers_change(tmp_path, arm, case):
    values, lines, new = CHANGES[case]
    system = replace_values(arm, **values)
    models.update(ARM, system, tmp_path / "new.urdf")
    words = changed_words(ARM, tmp_path / "new.urdf")
    assert [line for line, *_ in words] == lines
    assert new is None or [word for *_, word in words] == new
    assert_same_numbers(system, models.load(tmp_path / "new.urdf").system)


def test_bodies_of_several_links_change_by_their_first_link(tmp_path, arm):
    """The tool, fixed to the wrist, keeps its numbers."""
    system = replace_values(
        arm, body__wrist__mass=lambda m: 1.3 * m, body__wrist__inertia=lambda I: 1.2 * I,
        body__wrist__position=lambda x: x + 0.004,
    )  # fmt: skip
    models.update(ARM, system, tmp_path / "new.urdf")
    words = changed_words(ARM, tmp_path / "new.urdf")
    assert {line for line, *_ in words} == {76, 77, 78}
    mass = 0.6 + 0.3 * 0.85
    np.testing.assert_allclose(float(words[3][2]), mass, rtol=1e-15)
    assert_same_numbers(system, models.load(tmp_path / "new.urdf").system)


def test_all_numbers_of_a_file_in_place(tmp_path, arm):
    """Every number changes; the file itself is replaced, and Pinocchio reads it."""
    pytest.importorskip("pinocchio")
    rng = np.random.default_rng(5)
    values = {}
    for name in arm.names.bodies:
        values[f"body__{name}__mass"] = lambda m: m * rng.uniform(1.1, 1.5)
        values[f"body__{name}__position"] = lambda x: x + rng.uniform(-0.01, 0.01, 3)
        values[f"body__{name}__inertia"] = lambda I: I * rng.uniform(1.1, 1.5)
    system = replace_values(arm, **values)
    path = tmp_path / "arm.urdf"
    path.write_bytes(ARM.read_bytes())
    models.update(path, eqx.tree_at(lambda m: m.system, arm, system), path)
    assert_same_numbers(system, models.load(path).system)
    again = models.load(path, mimic=False)
    assert max(compare(again, "pinocchio", path, states=3)) < 1e-12


def write_edited(tmp_path, *pairs):
    """Return the path of a copy of the arm with other text."""
    text = ARM.read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "edited.urdf"
    path.write_text(text, "utf-8")
    return path


def test_missing_attributes_are_added(tmp_path):
    path = write_edited(
        tmp_path, ('<dynamics damping="0.2"/>', "<dynamics />"),
        ("<origin xyz='0.11 0 0.002' rpy='0.8 0 0'/>", "<origin  rpy='0.8 0 0'/>"),
    )  # fmt: skip
    model = models.load(path)
    old = joint(model.system, "elbow")
    hinge = type(old)(old.parent, old.child, old.point, old.axis, name="elbow", damping=0.25)
    system = replace_values(model, body__forearm__position=lambda x: x + 0.1)
    system = eqx.tree_at(lambda s: joint(s, "elbow"), system, hinge)
    models.update(path, system, tmp_path / "new.urdf")
    text = (tmp_path / "new.urdf").read_text("utf-8")
    center = re.search(r"""<origin xyz="(\S+) (\S+) (\S+)"  rpy='0.8 0 0'/>""", text)
    assert center is not None
    added = [f' xyz="{" ".join(center.groups())}"', ' damping="0.25"']
    for piece in added:
        assert text.count(piece) == 1
        text = text.replace(piece, "")
    assert text == path.read_text("utf-8")
    assert_same_numbers(system, models.load(tmp_path / "new.urdf").system)


def test_spaces_around_names_do_not_matter(tmp_path):
    path = write_edited(tmp_path, ('<joint name="yaw"', '<joint name=" yaw"'))
    system = replace_values(models.load(path), joint__yaw__damping=0.85, joint__yaw__armature=0.2)
    models.update(path, system, tmp_path / "new.urdf")
    words = changed_words(path, tmp_path / "new.urdf")
    assert words == [(35, "0.5", "0.85"), (144, "0.00004", "8e-05")]


def with_hinge(model, name, **options):
    old = joint(model.system, name)
    axis = options.pop("axis", old.axis)
    options = {"damping": old.damping, "armature": old.armature} | options
    options = {key: value for key, value in options.items() if value is not None}
    new = type(old)(old.parent, old.child, old.point, axis, name=name, **options)
    return eqx.tree_at(lambda s: joint(s, name), model.system, new)


def move_body(name):
    return lambda model: replace_values(model, **{f"body__{name}__position": lambda x: x + 0.1})


ERRORS = {
    "axis": (
        (), lambda m: with_hinge(m, "pitch", axis=(0, 1, 1)),
        "would not give the system: axis of 'pitch'. `update` writes masses",
    ),
    "ratio": (
        (), lambda m: eqx.tree_at(lambda s: s.constraints[0].ratio, m.system, np.float64(1.3)),
        "constants of 'coupling right_slide by left_slide'",
    ),
    "damping": (
        (), lambda m: with_hinge(m, "roll", damping=0.5),
        "edited.urdf:81: <joint name='roll'>: its damping is 0.5 now; add <dynamics/>",
    ),
    "armature": (
        (), lambda m: with_hinge(m, "pitch", armature=0.5),
        "<joint name='pitch'>: its armature is 0.5 now; add <rotor_inertia",
    ),
    "mass": (
        (), lambda m: replace_values(m, body__wrist__mass=0.2),
        "the mass of the body 'wrist' is 0.2 kg now, of which the other links have 0.25 kg",
    ),
    "origin": (
        (("<origin xyz='0.11 0 0.002' rpy='0.8 0 0'/>", ""),), move_body("forearm"),
        "<inertial>: the centre of mass of the link 'forearm' is not at the origin any more; add",
    ),
    "inertial": (
        ((re.search(r"<inertial>(?:(?!</inertial>).)*xyz='0.11.*?</inertial>",
                    ARM.read_text("utf-8"), re.S)[0], ""),),
        lambda m: replace_values(m, body__forearm__mass=lambda m: m + 1.0),
        "<link name='forearm'>: the mass properties of its body are different; add an <inertial>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(tmp_path, case):
    pairs, change, message = ERRORS[case]
    path = write_edited(tmp_path, *pairs)
    with pytest.raises(ValueError, match=re.escape(message)):
        models.update(path, change(models.load(path)), tmp_path / "new.urdf")
    assert list(tmp_path.iterdir()) == [path]


def test_systems_of_other_options_are_errors(tmp_path, arm):
    with pytest.raises(
        ValueError, match=r"bodies of the system differ from .*\['base', 'camera', 'tool'\]"
    ):
        models.update(ARM, arm, tmp_path / "new.urdf", lump_fixed=False)
    with pytest.raises(ValueError, match=r"constraints of the system .*: \['coupling right_slide"):
        models.update(ARM, arm, tmp_path / "new.urdf", mimic=False)
    assert not list(tmp_path.iterdir())
