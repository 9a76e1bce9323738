"""Systems and models as MJCF files, loaded again by rigidjax and by MuJoCo."""

import pathlib
import re

import numpy as np
import pytest
from same_systems import assert_same_system
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.models import load
from rigidjax.models.save_mjcf import save_mjcf

mujoco = pytest.importorskip("mujoco")

DATA = pathlib.Path(__file__).parent / "data"


def compile_model(path):
    model = mujoco.MjModel.from_xml_path(str(path))
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("name", ["mechanism", "gripper"])
def test_saved_models_are_loaded_again(name, tmp_path):
    path = DATA / f"{name}.xml"
    model = load(path)
    save_mjcf(model, tmp_path / "saved.xml", "saved")
    saved = load(tmp_path / "saved.xml")
    assert_same_system(saved.system, model.system)
    assert (saved.limits, saved.zeros) == (model.limits, model.zeros)
    assert saved.frames.keys() == model.frames.keys()
    for actuator, given in zip(saved.actuators, model.actuators, strict=True):
        assert (actuator.name, actuator.gear, actuator.gain) == (given.name, given.gear, given.gain)
        np.testing.assert_allclose(actuator.bias, given.bias, atol=1e-14)
    # MuJoCo has the same mass matrix and bias forces of both files.
    (reference, data), (again, data_again) = map(compile_model, (path, tmp_path / "saved.xml"))
    q, v = np.array(reference.qpos0), np.linspace(-1, 1, reference.nv)
    mujoco.mj_integratePos(reference, q, np.sin(np.arange(reference.nv)), 1.0)
    forces = []
    for compiled_model, of_model in ((reference, data), (again, data_again)):
        of_model.qpos, of_model.qvel = q, v
        mujoco.mj_forward(compiled_model, of_model)
        forces.append(of_model.qfrc_bias - of_model.qfrc_passive)
    np.testing.assert_allclose(*forces, rtol=1e-12, atol=1e-12)


def bodies(*names, **changes):
    return [
        rj.Body(name, changes.get("mass", 1.0), changes.get("inertia", [0.1, 0.2, 0.25]), [0, 0, k])
        for k, name in enumerate(names)
    ]


def test_other_joints_become_series_of_hinges_and_slides(tmp_path):
    system = rj.System(
        bodies("a", "b", "c", "d", "e"),
        [
            rj.Cylindrical("ground", "a", [0, 0, 0], [0, 1, 1], "shaft", damping=[0.1, 0.2]),
            rj.Universal("a", "b", [0, 0, 0.5], [1, 0, 0], [0, 1, 0], "cross"),
            rj.Planar("ground", "c", [0, 0, 2], [1, 2, 3], "plane"),
            rj.Weld("c", "d", name="weld"),
            rj.Revolute("e", "c", [0.1, 0, 2], [0, 0, 1], name="reversed"),
            rj.Weld("b", "e", name="brace"),
        ],
        [rj.TorsionSpring("shaft", 3.0, angle=0.2, component=1), rj.Gravity([0, 0, -9.81])],
        closing=["brace"],
    )
    save_mjcf(system, tmp_path / "saved.xml", "saved")
    model = load(tmp_path / "saved.xml")
    kinds = dict(zip(model.names.joints, model.names.kinds, strict=True))
    assert kinds == {
        "shaft displacement": "prismatic", "shaft angle": "revolute",
        "cross first angle": "revolute", "cross second angle": "revolute",
        "plane first displacement": "prismatic", "plane second displacement": "prismatic",
        "plane angle": "revolute", "reversed": "revolute", "brace": "fixed",
    }  # fmt: skip
    (spring,) = (f for f in model.system.forces if isinstance(f, rj.TorsionSpring))
    assert (spring.joint, float(spring.angle)) == ("shaft angle", pytest.approx(0.2))
    angle = model.system.joints[model.system.joint_index("reversed")]
    assert (angle.parent, angle.child) == ("c", "e")
    np.testing.assert_allclose(angle.axis, [0, 0, -1], atol=1e-15)


def test_flat_bodies_are_not_refused_for_rounding(tmp_path):
    for seed in range(10):
        axes = Rotation.random(random_state=seed).as_matrix()
        inertia = axes @ np.diag([0.3, 0.7 + seed / 7, 1.0 + seed / 7]) @ axes.T
        body = rj.Body("plate", 1.0, 0.5 * (inertia + inertia.T))
        save_mjcf(rj.System([body]), tmp_path / "plate.xml", "plate")
        (again,) = load(tmp_path / "plate.xml").system.bodies
        np.testing.assert_allclose(again.inertia, inertia, atol=1e-15 * 32)


A, B = bodies("a", "b")
HINGE = rj.Revolute("ground", "a", [0, 0, 0], [0, 0, 1], name="hinge")
ARM = rj.Revolute("a", "b", [0, 0, 0], [0, 0, 1], name="arm")
NOT_WRITTEN = {
    "MJCF has no counterpart of the Screw 'screw'": lambda: (
        [A], [rj.Screw("ground", "a", [0, 0, 0], [0, 0, 1], 0.1, "screw")],
    ),
    "The motion of the joint 'drive' is prescribed": lambda: (
        [A], [rj.Revolute("ground", "a", [0, 0, 0], [0, 0, 1], lambda t: t, "drive")],
    ),
    "The Revolute 'arm' closes a loop": lambda: (
        [A, B], [HINGE, rj.Revolute("ground", "b", [0, 0, 0], [0, 0, 1], name="other"), ARM],
    ),
    "The Free joint 'apart' has the parent 'a'": lambda: (
        [A, B], [HINGE, rj.Free("b", "apart", "a")],
    ),
    "MJCF has no counterpart of the force `Drag`": lambda: ([A], [HINGE], [rj.Drag("a", 1.0)]),
    "no counterpart of the Constraint 'level'": lambda: (
        [A, B],
        [HINGE, ARM, rj.Constraint(lambda t, poses: poses["b"][0][2] - 1.0, "b", name="level")],
    ),
    "The body 'm' has no mass": lambda: (
        [*bodies("m", mass=0.0, inertia=np.zeros(3)), A],
        [rj.Revolute("ground", "m", [0, 0, 0], [0, 0, 1], name="one"), HINGE],
    ),
    "massless body above 'a' is between a ball joint": lambda: (
        [*bodies("m", mass=0.0, inertia=np.zeros(3)), A],
        [rj.Revolute("ground", "m", [0, 0, 0], [0, 0, 1], name="one"),
         rj.Spherical("m", "a", [0, 0, 0], "ball")],
    ),
    "A body is called 'world'": lambda: ([*bodies("world")], []),
    "The mass of the body 'rocket' varies": lambda: (
        [rj.Body("rocket", lambda t: 1.0 - 0.1 * t, [0.1, 0.2, 0.25])], [],
    ),
    "The inertia of the body 'thin' is not physical": lambda: (
        [rj.Body("thin", 1.0, [0.1, 0.1, 0.3], physical=False)], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", NOT_WRITTEN)
def test_systems_that_mjcf_cannot_express_are_refused(message, tmp_path):
    system = rj.System(*NOT_WRITTEN[message]())
    with pytest.raises(ValueError, match=re.escape(message)):
        save_mjcf(system, tmp_path / "saved.xml", "saved")
