"""SDF models inside of models, nested and included, against products of transforms by hand."""

import numpy as np
import pytest
from same_systems import assert_same_system
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.models import load

MASS = (
    "<inertial><mass>{}</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.25</izz></inertia>"
    "</inertial>"
)
TOOL = f"""<model name="tool" {{attributes}}>{{pose}}
<link name="l1"><pose>0 0 .2 0 0 0</pose>{MASS.format(0.5)}</link>
<link name="l2"><pose relative_to="l1">.1 0 .3 .2 0 0</pose>{MASS.format(0.3)}</link>
<frame name="grip" attached_to="l2"><pose>0 .1 .1 0 .5 0</pose></frame>
<joint name="turn" type="revolute"><pose>0 .05 0 0 .3 0</pose><parent>l1</parent><child>l2</child>
<axis><xyz expressed_in="__model__">0 0 3</xyz></axis></joint></model>"""
OUTER = f"""<sdf version="1.9"><model name="outer"><pose>1 2 3 .1 .2 .3</pose>
<link name="base"><pose>0 0 .5 0 0 .4</pose>{MASS.format(2)}</link>
<joint name="ground" type="fixed"><parent>world</parent><child>base</child></joint>
<frame name="mount" attached_to="base"><pose>.2 0 .1 0 1 0</pose></frame>{{inner}}
<joint name="hold" type="revolute"><parent>base</parent><child>{{prefix}}l1</child>
<axis><xyz>1 0 0</xyz></axis></joint></model></sdf>"""
POSE = '<pose relative_to="mount">0 .1 0 .5 0 -.2</pose>'


def transform(x, y, z, *angles):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_euler("xyz", angles).as_matrix()
    T[:3, 3] = x, y, z
    return T


MOUNT = transform(1, 2, 3, 0.1, 0.2, 0.3) @ transform(0, 0, 0.5, 0, 0, 0.4)
MOUNT = MOUNT @ transform(0.2, 0, 0.1, 0, 1, 0)
L1 = transform(0, 0, 0.2, 0, 0, 0)
L2 = L1 @ transform(0.1, 0, 0.3, 0.2, 0, 0)
GRIP = L2 @ transform(0, 0.1, 0.1, 0, 0.5, 0)


def read(tmp_path, inner, prefix="tool::", name="outer.sdf", **options):
    path = tmp_path / name
    path.write_text(OUTER.format(inner=inner, prefix=prefix))
    return load(path, **options)


def check_poses(model, tool, prefix="tool::"):
    state = model.system.reference_state()
    for name, link in (("l1", L1), ("l2", L2)):
        row = model.names.bodies.index(prefix + name)
        np.testing.assert_allclose(state.position[row], (tool @ link)[:3, 3], atol=1e-12)
    axis = np.asarray(next(j for j in model.system.joints if j.name == f"{prefix}turn").axis)
    np.testing.assert_allclose(axis, tool[:3, 2], atol=1e-12)


@pytest.mark.parametrize("frame", ["", "grip"])
def test_poses_of_nested_models(tmp_path, frame):
    """The pose is that of the model, or of its placement frame."""
    attributes = f'placement_frame="{frame}"' if frame else ""
    model = read(tmp_path, TOOL.format(attributes=attributes, pose=POSE))
    at = MOUNT @ transform(0, 0.1, 0, 0.5, 0, -0.2)
    check_poses(model, at @ np.linalg.inv(GRIP) if frame else at)
    assert {"tool", "tool::grip", "mount"} <= set(model.frames)


def test_included_models_equal_nested_ones(tmp_path):
    folder = tmp_path / "parts" / "tool_model"
    folder.mkdir(parents=True)
    text = TOOL.format(attributes="", pose="<pose>9 9 9 0 0 0</pose>").replace("tool", "drill")
    (folder / "model.sdf").write_text(f'<sdf version="1.8">{text}</sdf>')
    uri = f"<uri>model://tool_model</uri>{POSE}"
    packages = (tmp_path / "parts",)
    nested = read(tmp_path, TOOL.format(attributes="", pose=POSE))
    include = f"<include><name>tool</name>{uri}</include>"
    included = read(tmp_path, include, packages=packages)
    assert_same_system(included.system, nested.system)
    merged = read(tmp_path, f'<include merge="true">{uri}</include>', "", packages=packages)
    check_poses(merged, MOUNT @ transform(0, 0.1, 0, 0.5, 0, -0.2), "")
    with pytest.raises(ValueError, match="there is no file for 'model://tool_model' beside the"):
        read(tmp_path, include)
    with pytest.raises(ValueError, match="`update` changes one file; this one includes others"):
        path = tmp_path / "outer.sdf"
        rj.models.update(path, included, tmp_path / "new.sdf", packages=packages)
    (folder / "model.sdf").write_text(f'<sdf version="1.6">{text}</sdf>')
    with pytest.raises(ValueError, match="must be an SDF file of version 1.7 or later with one"):
        read(tmp_path, include, packages=packages)
    again = "<include><uri>outer.sdf</uri></include>"
    with pytest.raises(ValueError, match="nested or included more than 50 deep"):
        read(tmp_path, again)


def test_unsupported_nested_models_raise(tmp_path):
    inner = TOOL.format(attributes="", pose=f"<static>true</static>{POSE}")
    with pytest.raises(ValueError, match="a static model inside another"):
        read(tmp_path, inner)
    with pytest.raises(ValueError, match="no link, joint or frame 'drill::l1'"):
        read(tmp_path, TOOL.format(attributes="", pose=POSE), "drill::")
