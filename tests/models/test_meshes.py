"""Shapes of loaded models: visuals are placed as the file says, by an independent computation."""

import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.models.meshes import read_collada

# A tetrahedron without symmetry, m.
CORNERS = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.5]])
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
OBJ = "\n".join(
    [f"v {x} {y} {z}" for x, y, z in CORNERS] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in FACES]
)
# In centimetres, with the tetrahedron moved by (0, 0, 2) m by its node.
COLLADA = f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="centimetre" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
  <library_geometries><geometry id="solid"><mesh>
    <source id="points">
      <float_array id="numbers" count="12">{" ".join(map(str, 100 * CORNERS.ravel()))}</float_array>
      <technique_common><accessor source="#numbers" count="4" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
      </accessor></technique_common>
    </source>
    <vertices id="corners"><input semantic="POSITION" source="#points"/></vertices>
    <triangles count="4">
      <input semantic="VERTEX" source="#corners" offset="0"/>
      <p>{" ".join(str(k) for face in FACES for k in face)}</p>
    </triangles>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="scene"><node id="node">
    <translate>0 0 200</translate><instance_geometry url="#solid"/>
  </node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>
"""
ARM = """<robot name="arm">
  <link name="world"/>
  <link name="arm">
    <inertial>
      <origin xyz="0.1 0.2 0.3" rpy="0.4 0 0"/><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
    <visual>
      <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>
      <geometry>SOLID</geometry>
    </visual>
  </link>
  <joint name="hinge" type="continuous">
    <parent link="world"/><child link="arm"/>
    <origin xyz="0.5 0.6 0.7" rpy="1.0 -0.5 0.3"/><axis xyz="0 0 1"/>
  </joint>
  <link name="tool"/>
  <joint name="mount" type="fixed">
    <parent link="arm"/><child link="tool"/><origin xyz="0 0 1" rpy="0 1.2 0"/>
  </joint>
</robot>
"""


def load_arm(folder, solid, **options):
    path = folder / "arm.urdf"
    path.write_text(ARM.replace("SOLID", solid))
    return rj.models.load(path, meshes=True, **options)


def place(points, position, angles):
    """Points in the outer frame, from fixed-axis angles of the format."""
    return np.array(position) + Rotation.from_euler("xyz", angles).apply(points)


def in_space(model, angle=0.0):
    """The vertices of the body's shape in space."""
    (body,) = model.system.bodies
    state = rj.jointed_state(model.system, {"hinge": angle}) if angle else model.state
    R = Rotation.from_quat(np.array(state.orientation[0]), scalar_first=True)
    return np.array(state.position[0]) + R.apply(np.array(body.shape.vertices))


def place_by_frames(points, angle=0.0):
    """Place points through the frames of the file: visual, hinge, joint."""
    in_link = place(points, (1, 2, 3), (0.1, 0.2, 0.3))
    turned = Rotation.from_euler("z", angle).apply(in_link)
    return place(turned, (0.5, 0.6, 0.7), (1.0, -0.5, 0.3))


@pytest.fixture
def meshes(tmp_path):
    folder = tmp_path / "robot_description" / "meshes"
    folder.mkdir(parents=True)
    (folder / "solid.obj").write_text(OBJ)
    (folder / "solid.dae").write_text(COLLADA)
    lines = [
        f"facet normal 0 0 0\nouter loop\n{vertices}\nendloop\nendfacet"
        for vertices in (
            "\n".join("vertex " + " ".join(map(str, CORNERS[k])) for k in face) for face in FACES
        )
    ]
    (folder / "solid.stl").write_text("solid x\n" + "\n".join(lines) + "\nendsolid x\n")
    return tmp_path


def test_meshes_are_placed_and_scaled(meshes):
    solid = '<mesh filename="package://robot_description/meshes/solid.{}" scale="2 1 0.5"/>'
    scaled = CORNERS * [2, 1, 0.5]
    model = load_arm(meshes, solid.format("obj"))
    for angle in (0.0, 0.8):
        np.testing.assert_allclose(
            in_space(model, angle), place_by_frames(scaled, angle), atol=1e-13
        )
    of_stl = in_space(load_arm(meshes, solid.format("stl")))
    corners = scaled[np.ravel(FACES)]
    np.testing.assert_allclose(of_stl, place_by_frames(corners), atol=1e-13)


def test_packages_are_searched(meshes, tmp_path_factory):
    solid = '<mesh filename="package://robot_description/meshes/solid.obj"/>'
    other = tmp_path_factory.mktemp("elsewhere")
    model = load_arm(other, solid, packages=[meshes])
    np.testing.assert_allclose(in_space(model), place_by_frames(CORNERS), atol=1e-13)
    model = load_arm(other, solid)
    assert model.system.bodies[0].shape is None
    (warning,) = model.report.of_kind("warning")
    assert "solid.obj is not found" in warning.text


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_collada_is_read_in_metres(meshes):
    pytest.importorskip("collada")
    model = load_arm(meshes, '<mesh filename="robot_description/meshes/solid.dae"/>')
    # Single precision of the reader.
    points = place_by_frames(CORNERS + np.array([0, 0, 2]))
    np.testing.assert_allclose(in_space(model), points, atol=1e-6)


def test_collada_needs_the_extra(meshes, monkeypatch):
    monkeypatch.setitem(sys.modules, "collada", None)
    model = load_arm(meshes, '<mesh filename="robot_description/meshes/solid.dae"/>')
    (warning,) = model.report.of_kind("warning")
    assert 'pip install "rigidjax[meshes]"' in warning.text
    assert model.system.bodies[0].shape is None


def test_other_contents_are_no_collada(tmp_path):
    with (tmp_path / "large.dae").open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(ValueError, match="large.dae has more than 67108864 bytes"):
        read_collada(tmp_path / "large.dae")
    path = tmp_path / "a.dae"
    for content, message in (
        ("PK", "is no Collada file"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + COLLADA, "is no Collada file"),
        (COLLADA.replace("#corners", "#none"), "cannot be read as Collada"),
        (COLLADA.replace('<instance_geometry url="#solid"/>', ""), "has no triangles"),
    ):
        path.write_text(content)
        if "DOCTYPE" not in content and "PK" not in content:
            pytest.importorskip("collada")
        with pytest.raises(ValueError, match=message):
            read_collada(path)


@pytest.mark.parametrize(
    ("solid", "half"),
    [
        ('<box size="0.2 0.4 0.6"/>', (0.1, 0.2, 0.3)),
        ('<cylinder radius="0.1" length="0.6"/>', (0.1, 0.1, 0.3)),
        ('<sphere radius="0.3"/>', (0.3, 0.3, 0.3)),
        ('<capsule radius="0.1" length="0.6"/>', (0.1, 0.1, 0.4)),
    ],
)
def test_primitives_are_closed_and_placed(tmp_path, solid, half):
    model = load_arm(tmp_path, solid)
    (body,) = model.system.bodies
    # Back into the frame of the visual, the surface has the size of the solid about its middle.
    R, Q = (Rotation.from_euler("xyz", angles) for angles in ((1.0, -0.5, 0.3), (0.1, 0.2, 0.3)))
    points = Q.inv().apply(R.inv().apply(in_space(model) - [0.5, 0.6, 0.7]) - [1, 2, 3])
    np.testing.assert_allclose(points.max(axis=0), half, atol=1e-12)
    np.testing.assert_allclose(points.min(axis=0), np.negative(half), atol=1e-12)
    assert body.shape.solid().volume > 0.8 * 4 / 3 * np.pi * np.prod(half) * (1 - 1e-9)
    np.testing.assert_allclose(points[body.shape.faces].mean(axis=(0, 1)), 0, atol=1e-12)
