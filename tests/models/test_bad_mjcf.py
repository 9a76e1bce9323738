"""Broken and hostile MJCF files: a clear error each, in bounded time, and nothing is fetched."""

import os
import pathlib
import socket
import threading

import numpy as np
import pytest
from random_changes import assert_errors_or_models

from rigidjax.models import load
from rigidjax.models.load import describe
from rigidjax.models.report import Report
from rigidjax.models.xml_source import parse

pytest.importorskip("mujoco")

DATA = pathlib.Path(__file__).parent / "data"
BODY = '<body name="{}" {}><joint {}/><geom size="0.1" {}/></body>'
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
MESH = '<asset><mesh name="t" file="{}"/></asset>'
OF_MESH = '<body name="b"><joint/><geom type="mesh" mesh="t"/></body>'


def text(inside="", rest="", tag="mujoco"):
    return f"<{tag}><worldbody>{inside}</worldbody>{rest}</{tag}>"


def body(name="a", of_body="", joint="", geom=""):
    return BODY.format(name, of_body, joint, geom)


def write(folder, content, name="m.xml"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, packages=()):
    """Return the description of a file, without assembling a system."""
    report = Report(str(path))
    description = describe(parse(path)[0], report, True, packages)
    report.check()
    return description


NESTED = '<replicate count="100">{}</replicate>'
BAD = {
    "": "m.xml:1: no well-formed XML: no element found",
    "x" * 10_000_000: "no well-formed XML",
    '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><mujoco model="&b;"/>': "types and entitie",
    '<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd"><mujoco/>': "m.xml:1: document types and entit",
    "<mujoco/>": "no link can move",
    text(body(geom='mass="-1"')): "MuJoCo cannot compile the file: .*negative",
    text('<body><joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'):
        "mass and inertia of moving bodies must be larger than mjMINVAL",
    text(body(of_body='pos="0 1"')): "attribute 'pos' does not have enough data",
    text(body(of_body='pos="0 zero 0"')): "bad format in attribute 'pos'",
    text(body(of_body='pos="0 nan 0"')):
        "m.xml:1: <body name='a'>: `pos` must be finite numbers; got '0 nan 0'",
    text(body(joint='range="nan 1" limited="true"')): "`range` must be finite numbers",
    text(body(), '<option gravity="0 0 nan"/>'): "<option>: `gravity` must be finite numbers",
    text(body(joint='ref="1e999"')): "number is too large in attribute 'ref'",
    text(body(joint='axis="0 0 0"')): "axis too small",
    text(body(of_body='quat="0 0 0 0"')): "zero quaternion is not allowed",
    text(body(joint='range="2 1" limited="true"')): r"range\[0\] should be smaller than range\[1\]",
    text(body(joint='name="j" damping="-1"')): "m.xml:1: joint 'j': the damping is negat",
    text(body(joint='armature="-1"')): "m.xml:1: joint 'a hinge': the armature is neg.*-1",
    text(body() + body()): "repeated name 'a' in body",
    text(body(), '<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>'):
        "unknown element 'b' in equality constraint",
    text(body(), '<actuator><motor joint="j"/></actuator>'): "unknown transmission target 'j'",
    text(body(), "<actuators/>"): "Schema violation: unrecognized element",
    text(body(), '<include file="m.xml"/>'): "<include>: the file 'm.xml' is included already",
    text(body(), '<include file="none.xml"/>'): "<include>: the file 'none.xml' does not exist",
    text(body(), "<include/>"): "<include>: the attribute `file` is missing",
    text(body(), '<include file="http://127.0.0.1:1/x.xml"/>'): "nothing is fetched from a network",
    text(body(), MESH.format("none.obj")): "MuJoCo cannot compile the file: .*none.obj",
    text(NESTED.format(NESTED.format(NESTED.format(body())))): "has more than 100000 elements, cop",
    text('<replicate count="1e300"><body/></replicate>'): "has more than 100000 elements, copies",
    text('<flexcomp name="f" type="grid" count="3000 3000 3000" spacing="1 1 1" dim="3"/>'):
        "has more than 100000 elements, copies included",
    text("", '<asset><hfield name="h" nrow="100000" ncol="1000000" size="1 1 1 1"/></asset>'):
        "<hfield name='h'>: has 100000000000 entries; 134217728 are the most",
    text(body(joint='name="j"') + body("b", joint='name="k"'),
         '<equality><joint name="e" joint1="j" joint2="k" polycoef="1e300 1"/></equality>'):
        "m.xml:1: the joint 'j' does not close: its sides are 1e\\+300 m or rad apart in the file",
    text(body(), '<size nkey="1000000000"/>'): "<size>: `nkey` must be 1000 at most",
}  # fmt: skip


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_bad_mjcf(content, tmp_path):
    with pytest.raises(ValueError, match=BAD[content]):
        load(write(tmp_path, content))


def test_included_files_are_checked_too(tmp_path):
    path = write(tmp_path, text(body(), '<include file="parts/x.xml"/>'))
    noise = np.random.default_rng(0).bytes(10_000_000)
    for content, message in (
        (noise, r"parts/x\.xml:1: no well-formed XML"),
        ("<!DOCTYPE r [<!ENTITY a 'ha'>]><mujocoinclude/>", r"x\.xml:1: document types and entit"),
        (text('<include file="y.xml"/>', tag="mujocoinclude"), "y.xml:1: .*'x.xml' is included a"),
        (text(body("a"), tag="mujocoinclude"), "repeated name 'a' in body"),
    ):
        write(tmp_path, content, "parts/x.xml")
        write(tmp_path, '<mujocoinclude><include file="x.xml"/></mujocoinclude>', "parts/y.xml")
        with pytest.raises(ValueError, match=message):
            read(path)
    write(tmp_path, text(body("b", 'pos="0 nan 0"'), tag="mujocoinclude"), "parts/x.xml")
    with pytest.raises(ValueError, match="m.xml: the file contains numbers that are not finite"):
        read(path)
    # Files that include the next one, each with its children one level deeper.
    for k in range(300):
        content = f'<mujocoinclude><include file="x{k + 1}.xml"/></mujocoinclude>'
        write(tmp_path, content, f"parts/x{k or ''}.xml")
    with pytest.raises(ValueError, match="is nested more than 200 deep"):
        read(path)


def test_models_that_contain_themselves(tmp_path):
    def of(name):
        return f"""<mujoco><asset><model name="s" file="{name}"/></asset><worldbody><body name="a">
            <joint/><geom size="0.1"/></body>{3 * '<frame><attach model="s" body="a"/></frame>'}
            </worldbody></mujoco>"""

    path = write(tmp_path, of("other.xml"))
    write(tmp_path, of("m.xml"), "other.xml")
    with pytest.raises(ValueError, match=r"other.xml:1: .*the model m.xml contains itself"):
        read(path)
    # Each with three copies of the next one.
    for k in range(20):
        path = write(tmp_path, of(f"m{k - 1}.xml") if k else text(body()), f"m{k}.xml")
    with pytest.raises(ValueError, match="models are nested more than 16 deep"):
        read(path)
    with pytest.raises(ValueError, match="has more than 100000 elements, copies included"):
        read(tmp_path / "m12.xml")


def test_files_outside_the_folder_are_not_read(tmp_path):
    home = tmp_path / "a/b/model"
    outside = write(tmp_path, TETRAHEDRON, "a/out.obj")
    write(home.parent, TETRAHEDRON, "meshes/in.obj")
    (home / "link.obj").parent.mkdir()
    (home / "link.obj").symlink_to(outside)
    for name in ("../../out.obj", str(outside), "link.obj"):
        path = write(home, text(OF_MESH, MESH.format(name)))
        message = f"<mesh name='t'>: '{name}' is outside the folder of the model and those beside"
        with pytest.raises(ValueError, match=message):
            read(path)
    # A folder for meshes does not lead elsewhere either.
    away = text(OF_MESH, '<compiler meshdir="../.."/>' + MESH.format("out.obj"))
    with pytest.raises(ValueError, match="'out.obj' is outside the folder"):
        read(write(home, away))
    assert len(read(write(home, away), packages=[tmp_path / "a"]).links) == 2
    assert len(read(write(home, text(OF_MESH, MESH.format("../meshes/in.obj")))).links) == 2
    write(tmp_path, "<mujocoinclude/>", "a/out.xml")
    for rest in ('<include file="../../out.xml"/>', MESH.format("../../out.xml").replace(
            "mesh", "model")):  # fmt: skip
        with pytest.raises(ValueError, match=r"'../../out.xml' is outside the folder"):
            read(write(home, text(body(), rest)))


def test_pipes_and_networks_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder.obj").mkdir()
    for rest in (MESH.format("pipe"), '<include file="pipe"/>', MESH.format("folder.obj")):
        with pytest.raises(ValueError, match="'(pipe|folder.obj)' is no file"):
            read(write(tmp_path, text(body(), rest)))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        connections = []

        def accept():
            try:
                connections.append(server.accept())
            except TimeoutError:
                pass

        listener = threading.Thread(target=accept)
        listener.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/t.obj"
        for rest in (MESH.format(address), f'<include file="{address}"/>'):
            with pytest.raises(ValueError, match="MuJoCo cannot compile|nothing is fetched from a"):
                read(write(tmp_path, text(OF_MESH, rest)))
        listener.join()
        assert not connections


@pytest.mark.parametrize("name", ["mechanism.xml", "gripper.xml"])
def test_random_changes_end_in_errors_or_models(name, tmp_path):
    def read_links(content):
        links = read(write(tmp_path, content)).links
        assert all(np.isfinite([link.mass, *link.center]).all() for link in links)

    assert_errors_or_models((DATA / name).read_bytes(), read_links)
