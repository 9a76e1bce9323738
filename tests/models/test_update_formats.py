"""Numbers that are written back into SDF and MJCF files."""

import equinox as eqx
import numpy as np
import pytest
from same_systems import assert_same_numbers

from rigidjax import models

SDF = """<?xml version="1.0"?>
<sdf version="1.9">
  <model name="crank">
    <!-- two links -->
    <link name="rod">
      <pose>0 0 1 0.1 0 0.2</pose>
      <inertial>
        <pose degrees="true"> 0.1 0 0   0 0 90 </pose>
        <mass>2</mass>
        <inertia>
          <ixx>0.01</ixx> <iyy>0.02</iyy> <izz>0.025</izz>
          <ixy>0</ixy> <ixz>0</ixz> <iyz>0</iyz>
        </inertia>
      </inertial>
    </link>
    <link name="ball">
      <pose>0 0.5 1 0 0 0</pose>
      <inertial><mass>1.0<!-- kg --></mass>
        <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
      </inertial>
    </link>
    <link name="plain"><pose>0 1 1 0 0 0</pose></link>
    <joint name="hinge" type="revolute">
      <parent>world</parent> <child>rod</child>
      <axis><xyz>0 1 0</xyz><dynamics><damping>0.3</damping></dynamics></axis>
    </joint>
    <joint name="slide" type="prismatic">
      <parent>rod</parent> <child>ball</child>
      <axis><xyz>0 1 0</xyz></axis>
    </joint>
    <joint name="last" type="revolute">
      <parent>rod</parent> <child>plain</child>
      <axis><xyz>0 1 0</xyz><dynamics/></axis>
    </joint>
  </model>
</sdf>
"""
MJCF = """<mujoco model="arm">
  <default>
    <joint damping="0.7"/>
    <default class="big"><joint armature="0.05"/></default>
  </default>
  <worldbody>
    <body name="one" pos="0 0 1">
      <joint name="first" axis="0 1 0"/>
      <inertial pos="0.1 0 0.02" mass="2" diaginertia="0.01 0.02 0.025" quat="0.9 0.1 0.2 0"/>
      <body name="two" pos="0.3 0 0" euler="10 20 30">
        <joint name="second" class="big" axis="1 0 0" damping="0.3"/>
        <inertial pos="0.1 0.02 0" mass="1.5" fullinertia="11e-6 2e-5 2.1e-5 1e-6 2e-6 -1e-6"/>
        <body name="three" pos="0.3 0 0">
          <joint type="slide" axis="1 0 0"/>
          <inertial pos="0 0 0" mass="0.5" diaginertia="1e-5 2e-5 2.5e-5" euler="0 0 10"/>
        </body>
        <body name="four" pos="0.1 0 0">
          <joint name="fourth"/>
          <geom size="0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
# An equality has the name and the tag of a joint, and the name looks like an attribute.
NAME = "first damping='9'"
EQUALITY = f'<equality><joint name="{NAME}" joint1="{NAME}" joint2="second"/></equality></mujoco>'
FILES = {
    "model.sdf": SDF,
    "model.xml": MJCF,
    "bound.xml": MJCF.replace("<default>", '<compiler boundmass="0.5"/><default>', 1),
    "equality.xml": MJCF.replace("first", NAME).replace("</mujoco>", EQUALITY),
    "wide.sdf": SDF.replace('"1.0"', '"1.0" encoding="utf-16"', 1),
    "reference.sdf": SDF.replace("<mass>2<", "<mass>&#50;<"),
}


@pytest.fixture
def load_file(tmp_path):
    """Return a function that writes a file and loads its model."""

    def load(name):
        if name.endswith(".xml"):
            pytest.importorskip("mujoco")
        encoding = "utf-16" if name == "wide.sdf" else "utf-8"
        (tmp_path / name).write_text(FILES[name], encoding)
        return tmp_path / name, models.load(tmp_path / name)

    return load


def replace_field(model, index, field, change):
    """Return the system with another field of a body, or of a joint for damping and armature."""

    def find(system):
        parts = system.joints if field in ("damping", "armature") else system.bodies
        return getattr(parts[index], field)

    return eqx.tree_at(find, model.system, replace_fn=change)


def changed_lines(path, out):
    """Return the lines of a file that are different, before and after."""
    old, new = (p.read_text("utf-8").splitlines() for p in (path, out))
    return [(a.strip(), b.strip()) for a, b in zip(old, new, strict=True) if a != b]


def test_unchanged_systems_give_the_same_bytes(load_file):
    for name in ("model.sdf", "model.xml"):
        path, model = load_file(name)
        models.update(path, model, path.with_stem("new"))
        assert path.with_stem("new").read_bytes() == path.read_bytes()


# File, index, field, change; the line that changes, and how it starts then.
CHANGES = {
    "mass": ("model.sdf", 0, "mass", lambda m: m + 0.5, "<mass>2</mass>", "<mass>2.5</mass>"),
    # The axes of the <inertial> are turned by 90 degrees about z.
    "moment": (
        "model.sdf", 0, "inertia", lambda I: I + np.diag([0.005, 0, 0]),
        "<ixx>0.01</ixx> <iyy>0.02</iyy> <izz>0.025</izz>", "<ixx>0.01</ixx> <iyy>0.025",
    ),
    "center": (
        "model.sdf", 0, "position", lambda x: x + np.array([0.3, 0.1, 0]),
        '<pose degrees="true"> 0.1 0 0   0 0 90 </pose>', '<pose degrees="true"> ',
    ),
    "damping": (
        "model.sdf", 0, "damping", lambda d: 2 * d,
        "<axis><xyz>0 1 0</xyz><dynamics><damping>0.3</damping></dynamics></axis>",
        "<axis><xyz>0 1 0</xyz><dynamics><damping>0.6</damping></dynamics></axis>",
    ),
    "diagonal": (
        "model.xml", 0, "inertia", lambda I: 2 * I,
        '<inertial pos="0.1 0 0.02" mass="2" diaginertia="0.01 0.02 0.025" quat="0.9 0.1 0.2 0"/>',
        "<inertial ",
    ),
    "axes": ("model.xml", 0, "inertia", lambda I: I + 0.001, "<inertial ", "<inertial "),
    "full": (
        "model.xml", 1, "inertia", lambda I: I + np.diag([3e-6, 0, 0]),
        '<inertial pos="0.1 0.02 0" mass="1.5" fullinertia="11e-6 2e-5 2.1e-5 1e-6 2e-6 -1e-6"/>',
        "<inertial ",
    ),
    "equality": ("equality.xml", 0, "damping", lambda d: 2 * d, "<joint ", "<joint "),
    "class": (
        "model.xml", 1, "armature", lambda a: 2 * a,
        '<joint name="second" class="big" axis="1 0 0" damping="0.3"/>',
        '<joint armature="0.1" name="second" class="big" axis="1 0 0" damping="0.3"/>',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_changes(load_file, case):
    name, index, field, change, before, after = CHANGES[case]
    path, model = load_file(name)
    system = replace_field(model, index, field, change)
    out = path.with_stem("new")
    models.update(path, system, out)
    ((old, new),) = changed_lines(path, out)
    assert old.startswith(before) and new.startswith(after)
    if field == "position":
        # The angles behind the position.
        assert old.split()[-4:] == new.split()[-4:] == ["0", "0", "90", "</pose>"]
    assert_same_numbers(system, models.load(out).system)


def test_a_missing_inertia_is_not_added(tmp_path):
    path = tmp_path / "model.sdf"
    path.write_text(
        '<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass></inertial>'
        "</link></model></sdf>"
    )
    system = replace_field(models.load(path), 0, "inertia", lambda value: 2 * value)
    with pytest.raises(ValueError, match="the element <inertia> is missing; add it with its numb"):
        models.update(path, system, tmp_path / "new.sdf")


def test_included_files_must_be_beside_the_result(tmp_path):
    pytest.importorskip("mujoco")
    path, out = tmp_path / "model.xml", tmp_path / "fitted" / "model.xml"
    out.parent.mkdir()
    text = MJCF.replace("<default>", '<include file="extra.xml"/><default>', 1)
    path.write_text(text, "utf-8")
    (tmp_path / "extra.xml").write_text("<mujoco><option timestep='0.1'/></mujoco>", "utf-8")
    system = replace_field(models.load(path), 0, "mass", lambda m: m + 1)
    with pytest.raises(ValueError, match=r"fitted/model\.xml:2: .* 'extra\.xml' does not exist"):
        models.update(path, system, out)
    assert not list(out.parent.iterdir())


ERRORS = {
    "comment": (
        "model.sdf", 1, "mass", lambda m: m + 1, "model.sdf:18: <mass>: has a comment in its text",
    ),
    "pose": (
        "model.sdf", 1, "position", lambda x: x + 1,
        "<inertial>: the element <pose> is missing; add it with the value 1 1 1",
    ),
    "product": (
        "model.sdf", 1, "inertia", lambda I: I + 0.01,
        "<inertia>: the element <ixy> is missing; add it with the value 0.01",
    ),
    "no numbers": (
        "model.sdf", 2, "mass", lambda m: m + 1, "The link 'plain' needs an <inertial> element",
    ),
    "geoms": (
        "model.xml", 3, "mass", lambda m: m + 1,
        'the body \'four\' needs an <inertial> .* Add <inertial pos="0 0 0" mass="5.1887902"',
    ),
    "euler": (
        "model.xml", 2, "inertia", lambda I: I + 1e-6,
        "principal axes of the body 'three' are different; give the orientation by `quat`",
    ),
    "override": (
        "bound.xml", 0, "mass", lambda m: 0.1 * m,
        "mass of 'one'.*, and not where the file overrides them, as by .*`boundmass`",
    ),
    # MuJoCo compares the moments exactly.
    "impossible": (
        "model.xml", 0, "inertia", lambda I: I + np.diag([0.0, 0.0, 0.1]),
        r"new\.xml: MuJoCo cannot compile the file: .*A \+ B >= C",
    ),
    "wide characters": (
        "wide.sdf", 0, "mass", lambda m: m + 1,
        r"wide\.sdf: `update` changes single bytes; save the file in UTF-8 first\.",
    ),
    "reference": (
        "reference.sdf", 0, "mass", lambda m: m + 1,
        "<mass>: '&#50;' is no number; write its digits instead",
    ),
    "no name": (
        "model.xml", 2, "damping", lambda d: 2 * d,
        "damping of the joint 'three slide' is different, but there is no <joint> of this name",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(load_file, case):
    name, index, field, change, message = ERRORS[case]
    path, model = load_file(name)
    with pytest.raises(ValueError, match=message):
        models.update(path, replace_field(model, index, field, change), path.with_stem("new"))
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("index", "constants", "message"),
    [
        (0, {"armature": 1.0}, "armature is 1 now, but SDF has no element for an armature"),
        (1, {"damping": 0.5}, "damping of 'slide' is 0.5 now; add <dynamics><damping>"),
        (2, {"damping": 0.5}, "<dynamics>: the element <damping> is missing; add it with the val"),
    ],
)
def test_constants_without_an_element(load_file, index, constants, message):
    path, model = load_file("model.sdf")
    old = model.system.joints[index]
    fields = {"damping": old.damping, **constants}
    fields = {name: value for name, value in fields.items() if value is not None}
    ends = old.parent, old.child
    new = type(old)(*ends, point=old.point, axis=old.axis, name=old.name, **fields)
    system = eqx.tree_at(lambda s: s.joints[index], model.system, new)
    with pytest.raises(ValueError, match=message):
        models.update(path, system, path.with_stem("new"))
