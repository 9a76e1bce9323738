"""Broken and hostile model files: a clear error each, in bounded time, and nothing is fetched."""

import os
import pathlib

import numpy as np
import pytest
from random_changes import assert_errors_or_models

from rigidjax.models import load
from rigidjax.models.closure import close_loops
from rigidjax.models.meshes import find_mesh
from rigidjax.models.report import Report
from rigidjax.models.sdf import read_sdf
from rigidjax.models.urdf import read_urdf
from rigidjax.models.xml_source import Edits, parse_bytes

DATA = pathlib.Path(__file__).parent / "data"
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
READERS = {".urdf": read_urdf, ".sdf": read_sdf}


def link(name, mass="1"):
    return f'<link name="{name}"><inertial><mass value="{mass}"/>{INERTIA}</inertial></link>'


def joint(name, parent, child, inside="", kind="continuous"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>"
    )


def robot(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


def read(text, suffix=".urdf", ignore=()):
    """Return the description of a text, without assembling a system."""
    content = text if isinstance(text, bytes) else text.encode()
    report = Report(f"m{suffix}", ignore, strict=True)
    description = READERS[suffix](parse_bytes(content, f"m{suffix}"), report)
    report.check()
    return close_loops(description)


def pair(inside="", kind="continuous", rest=""):
    """Two links and a joint between them."""
    return robot(*AB, joint("j", "a", "b", inside, kind), rest)


def transmission(inside):
    return pair(rest=f'<transmission name="t"><joint name="j"/>{inside}</transmission>')


AB = (link("a"), link("b"))
CHAIN = [joint(f"j{k}", f"l{k}", f"l{k + 1}", f'<mimic joint="j{k + 1}"/>') for k in range(3000)]
XML = {
    "": "m.urdf:1: no well-formed XML: no element found",
    robot(*AB)[:60]: "m.urdf:1: no well-formed XML: unclosed token",
    b"\x00" * 100: "no well-formed XML: not well-formed",
    "x" * 10_000_000: "no well-formed XML: syntax error",
    "<robot>" + 100_001 * "<a/>" + "</robot>": "a model file has at most 100000 elements",
    "<a>" * 100_000: "<a>: is nested more than 200 deep",
    '<?xml version="1.0" encoding="klingon"?><robot/>': "cannot be decoded: unknown encoding",
    '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><robot name="&b;"/>': "types and entities",
    '<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd"><robot/>': "m.urdf:1: document types and ent",
    '<robot name="&x;"/>': "undefined entity",
    "<robot/><robot/>": "junk after document element",
}
URDF = {
    "<html/>": "a URDF file starts with <robot>",
    robot(): "has no <link>",
    robot('<link name="a"><visual/></link>'): "has no <geometry> of a known kind",
    robot(link("a", "-2")): "the mass of .* is negative; got -2 kg",
    robot(link("a", "nan")): "`value` must be a finite number; got 'nan'",
    robot(link("a", "1_0")): "must be a finite number; got '1_0'",
    robot(link("a", "\u0661")): "must be a finite number",
    robot(link("a", "")): "the attribute `value` is missing",
    robot(link("a"), link("a")): "another link of this name is in line 1",
    pair(rest=joint("j", "a", "b")): "another joint of this name is in line 1",
    robot(*AB, joint("j", "a", "c")): "there is no link 'c'",
    robot(*AB, joint("j", "a", "a")): "connects the link 'a' with itself",
    pair().replace('<parent link="a"/>', ""): "<parent> is missing",
    pair(rest=joint("k", "b", "a")): "the joints around '.' form a cycle",
    pair(kind="hinge"): "there is no joint of the type 'hinge'",
    robot(*AB, link("c"), joint("j", "a", "c"), joint("k", "b", "c")):
        "the link 'c' is the child of 'j' already. A URDF file is a tree",
    pair(2 * '<axis xyz="0 0 1"/>'): "<axis>: is defined twice in <joint name",
    pair('<dynamics damping="-1"/>'): "damping of .* is negative; got -1",
    transmission('<joint name="j"/>'):
        "<transmission name='t'>: has 2 joints and 0 actuators; one of each is read",
    transmission('<actuator name="m"><rotor_inertai value="1"/></actuator>'):
        "<rotor_inertai> is unknown. Did you mean 'rotor_inertia'",
    robot(*AB): "no joint connects it with 'a'",
    pair('<axis xyz="0 0 0"/>'): "has no direction",
    pair('<axis xyz="0 1"/>'): "`xyz` must be 3 finite numbers",
    pair('<limit lower="1" upper="-1"/>', "revolute"): "`lower` of .* is above",
    pair(kind="revolute"): "a revolute joint needs <limit>",
    pair('<axis xyzz="0 0 1"/>'): "`xyz` is missing|`xyzz` is unknown",
    robot(link("a"), "<lnik/>"): "<lnik> is unknown. Did you mean 'link'",
    pair('<mimic joint="k"/>'): "follows 'k', which does not exist",
    pair('<mimic joint="j"/>'): "mimic joints around 'j' form a cycle",
    robot(*(link(f"l{k}") for k in range(3001)), *CHAIN[:-1], CHAIN[-1].replace("j3000", "j0")):
        "mimic joints around 'j0' form a cycle",
    robot('<xacro:macro name="x"/>'): "no well-formed XML: unbound prefix|macros of xacro",
    robot(link("a")).replace("<robot", '<robot xmlns:xacro="x" xacro:name="x"'):
        r"Run `xacro (\w+).urdf > \1_expanded.urdf` and load the result",
}  # fmt: skip
HINGE = (
    '<joint name="j" type="revolute"><parent>a</parent><child>b</child>'
    "<axis><xyz>0 0 1</xyz></axis></joint>"
)
TWO = '<link name="a"/><link name="b"/>'


def sdf(inside):
    return f'<sdf version="1.9"><model name="m">{inside}</model></sdf>'


def hinge_text(old="", new=""):
    """Two links on a hinge, whose text is changed."""
    return sdf(TWO + HINGE.replace(old, new))


def in_axis(inside):
    return hinge_text("</xyz>", f"</xyz>{inside}")


def in_world(inside):
    world = f'<world name="w">{inside}<model name="m"><link name="a"/></model></world>'
    return f'<sdf version="1.9">{world}</sdf>'


SDF = {
    '<sdf version="1.3"><model name="m"/></sdf>': "versions 1.4 to 1.12 of SDF are read; got '1.3'",
    '<sdf version="one"/>': "versions 1.4 to 1.12 of SDF are read",
    "<sdf/>": "the attribute `version` is missing",
    '<sdf version="1.9"/>': "one model is read from a file; this one has 0",
    f'<sdf version="1.9">{2 * "<model/>"}</sdf>': "one model is read from a file; this one has 2",
    sdf(""): "has no <link>",
    sdf(TWO + TWO): "another <link> of this name is in line 1",
    sdf('<link name="world"/>'): "the name 'world' is reserved",
    sdf(TWO + '<link name="j"/>' + HINGE): "another <link> of this name",
    sdf("<include><uri>model://x</uri></include>" + TWO): "there is no file for 'model://x'",
    sdf('<model name="n"/>' + TWO): "<model name='n'>: has no <link>",
    in_world("<include/>"): "other files are not read; copy the model into the file",
    in_world("<joint/>"): "joints between models are not supported",
    in_world("<frame/>"): "frames of the world are not supported",
    in_world("<state/>"): "the state of a world, which changes poses, is not supported",
    in_world("<population/>"): "populations of models are not supported",
    sdf('<link name="a"><inertial><fluid_added_mass/></inertial></link>'):
        "added mass of a fluid is not supported",
    sdf('<pose relative_to="f">0 0 0 0 0 0</pose>' + TWO):
        "the model is relative to 'f'; it must be the world",
    sdf('<frame name="f"/><frame name="g"/>' + TWO)
        .replace('name="m"', 'name="m" canonical_link="f"'):
        "the canonical link 'f' is no link of the model",
    sdf(TWO + HINGE + HINGE): "another <joint> of this name is in line 1",
    sdf('<link name="a"><inertial><mass>heavy</mass></inertial></link>'):
        "<mass>: its text must be a finite number; got 'heavy'",
    sdf("<lnik/>" + TWO): "the element <lnik> is unknown. Did you mean 'link'",
    sdf('<link name="a"><pose relative_to="b"/></link>'): "there is no link, joint or frame 'b'",
    sdf('<link name="a"><pose relative_to="b"/></link>'
        '<link name="b"><pose relative_to="a"/></link>'):
        "the poses around '.' form a cycle",
    sdf('<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/><link name="a"/>'):
        "the frames around '.' are attached in a cycle",
    sdf('<link name="a"><pose>0 0 0</pose></link>'): "its text must be 6 finite numbers",
    sdf('<link name="a"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose></link>'):
        "the quaternion is zero",
    sdf('<link name="a"><pose rotation_format="axis">0 0 0 0 0 0</pose></link>'):
        "`rotation_format` must be",
    sdf('<link name="a"><pose degrees="often">0 0 0 0 0 0</pose></link>'): "must be true or false",
    sdf('<link name="a"><inertial><mass>-1</mass></inertial></link>'): "mass is negative; got -1",
    sdf('<link name="a"><inertial><pose relative_to="a">0 0 0 0 0 0</pose></inertial></link>'):
        "the pose of <inertial> is always relative to its link",
    sdf('<link name="a"><inertial auto="true"/></link>'): "inertia from collision shapes",
    sdf('<link name="a"><kinematic>1</kinematic></link>'): "links moved from outside",
    sdf('<link name="a"><velocity_decay><linear>1</linear></velocity_decay></link>'):
        "decay of vel",
    sdf('<link name="a"><visual><geometry><box/></geometry></visual></link>'): "<size> is missing",
    hinge_text("revolute", "hinge"): "no joint of the type 'hinge'",
    hinge_text("<parent>a</parent>"): "<parent> is missing",
    hinge_text(">b<", ">world<"): "the child of a joint cannot be the world",
    hinge_text(">b<", ">a<"): "connects the link 'a' with itself",
    hinge_text(">b<", ">c<"): "there is no link, joint or frame 'c'",
    hinge_text("0 0 1", "0 0 0"): "has no direction",
    hinge_text("axis>", "axs>"): "<axis> is missing",
    in_axis("<limit><lower>2</lower><upper>1</upper></limit>"): "<lower> of .* is above <upper>",
    in_axis("<dynamics><damping>-1</damping></dynamics>"): "the damping of .* is negative",
    in_axis('<mimic joint="k"/>'): "no joint 'k'",
    in_axis('<mimic joint="j"/>'): "mimic joints around 'j' form a cycle",
    in_axis('<mimic joint="j" axis="axis2"/>'): "is no single coordinate",
    hinge_text("</axis>", "</axis><thread_pitch>0</thread_pitch>").replace("revolute", "screw"):
        "`thread_pitch` is in rad/m and cannot be zero",
    hinge_text("</axis>", "</axis><axis2/><gearbox_reference_body>a</gearbox_reference_body>")
        .replace("revolute", "gearbox"): "needs a hinge of 'a' about <axis>",
    hinge_text("revolute", "gearbox"): "<gearbox_reference_body> is missing",
}  # fmt: skip


@pytest.mark.parametrize("text", XML, ids=range(len(XML)))
def test_bad_xml(text):
    with pytest.raises(ValueError, match=XML[text]):
        read(text)


@pytest.mark.parametrize("text", URDF, ids=range(len(URDF)))
def test_bad_urdf(text):
    with pytest.raises(ValueError, match=URDF[text]):
        read(text)


@pytest.mark.parametrize("text", SDF, ids=range(len(SDF)))
def test_bad_sdf(text):
    with pytest.raises(ValueError, match=SDF[text]):
        read(text, ".sdf")


def test_bad_paths(tmp_path):
    (tmp_path / "noise.urdf").write_bytes(np.random.default_rng(0).bytes(10_000_000))
    (tmp_path / "root.xml").write_text("<html/>")
    os.mkfifo(tmp_path / "pipe.urdf")
    with (tmp_path / "huge.urdf").open("wb") as file:
        file.truncate(65 * 2**20)
    for name, message in (
        ("noise.urdf", "noise.urdf:1: no well-formed XML"),
        ("", "is no file"),
        ("pipe.urdf", "pipe.urdf is no file"),
        ("r.xacro", r"not expanded. Run `xacro r.xacro > r_expanded.urdf` and load"),
        ("huge.urdf", "a model file has at most 67108864"),
        ("root.xml", "is no model: a file starts with <robot>, <sdf> or"),
    ):
        with pytest.raises(ValueError, match=message):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.urdf")
    ground = tmp_path / "ground.urdf"
    for kind in ("continuous", "fixed"):
        ground.write_text(robot(link("b"), link("ground"), joint("j", "b", "ground", kind=kind)))
        with pytest.raises(ValueError, match="a moving link is called 'ground'"):
            load(ground)


def test_replacement_of_numbers_that_are_not_there():
    content = b'<a b="1"/>'
    element = parse_bytes(content, "m.xml")
    with pytest.raises(ValueError, match="m.xml:1: <a>: has 1 numbers; 2 are to be replaced"):
        Edits(content).set_numbers(element, "b", [1.0, 2.0], 0.0)
    with pytest.raises(ValueError, match="<a>: has no text"):
        Edits(content).set_numbers(element, None, [1.0], 0.0)


def test_names_that_are_allowed():
    # A joint may be named like a link; a link may be named like the ground, as a root.
    assert read(robot(*AB, joint("a", "a", "b"))).joints[0].name == "a"
    assert read(robot(link("ground"), link("b"), joint("j", "ground", "b"))).world == {"ground"}
    with pytest.raises(ValueError, match="the file has no such unsupported feature"):
        read(robot(link("a")), ignore=("mesh",))


def test_meshes_outside_of_the_folder_are_not_read(tmp_path):
    for folder in ("package/urdf", "package/meshes"):
        (tmp_path / folder).mkdir(parents=True)
    model = str(tmp_path / "package/urdf/m.urdf")
    for name in ("package/meshes/in.stl", "package/urdf/own.stl", "out.stl"):
        (tmp_path / name).write_text("solid\nendsolid\n")
    assert find_mesh("own.stl", model, ()).name == "own.stl"
    assert find_mesh("../meshes/in.stl", model, ()).name == "in.stl"
    for name in (
        "../../out.stl", str(tmp_path / "out.stl"), "https://example.org/x.stl", "",
        "package://package/../../out.stl", f"file://{tmp_path}/out.stl/../../../etc/passwd",
    ):  # fmt: skip
        assert find_mesh(name, model, ()) is None


@pytest.mark.parametrize("name", ["arm.urdf", "linkage.sdf"])
def test_random_changes_end_in_errors_or_models(name):
    suffix = pathlib.Path(name).suffix
    assert_errors_or_models((DATA / name).read_bytes(), lambda content: read(content, suffix))
