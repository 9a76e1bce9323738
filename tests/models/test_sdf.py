"""SDF files: poses of all versions, kinds of joints, and closed loops."""

import pathlib
import re
import tempfile

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.models import load
from rigidjax.models.report import Report
from rigidjax.models.sdf import read_sdf
from rigidjax.models.xml_source import parse_bytes

LINKAGE = pathlib.Path(__file__).parent / "data" / "linkage.sdf"


def read(text, ignore=(), **options):
    """Return the description of an SDF text."""
    report = Report("m.sdf", ignore)
    description = read_sdf(parse_bytes(text.encode(), "m.sdf"), report, **options)
    report.check()
    return description


def pose(matrix):
    angles = Rotation.from_matrix(matrix[:3, :3]).as_euler("xyz")
    return " ".join(repr(float(x)) for x in (*matrix[:3, 3], *angles))


def load_text(text):
    """Return the model of an SDF text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.sdf"
        path.write_text(text)
        return load(path)


def words(values):
    return " ".join(repr(float(x)) for x in values)


def random_pose(rng):
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.random(random_state=rng.integers(1 << 30)).as_matrix()
    matrix[:3, 3] = rng.standard_normal(3)
    return matrix


def test_one_mechanism_in_all_versions(rng):
    # Placements in the model; those of joints j and k are given in their children a and b.
    model, a, b, in_a, in_b = (random_pose(rng) for _ in range(5))
    j, k, of_j, of_k = a @ in_a, b @ in_b, np.array([0, 0.6, 0.8]), np.array([1.0, 0, 0])
    inverse = np.linalg.inv

    def text(version, poses, axes, attributes="", more="", child="b"):
        def joint(name, kind, parent, child):
            xyz, flag = axes[name]
            return (
                f'<joint name="{name}" type="{kind}"><parent>{parent}</parent>'
                f"<child>{child}</child>{poses[name]}<axis>{xyz}{flag}</axis></joint>"
            )

        return (
            f'<sdf version="{version}"><model name="m"{attributes}>{poses["model"]}'
            f'<link name="a">{poses["a"]}</link><link name="b">{poses["b"]}</link>{more}'
            f"{joint('j', 'revolute', 'world', 'a')}{joint('k', 'prismatic', 'a', child)}"
            "</model></sdf>"
        )

    def plain(**poses):
        return {name: f"<pose>{pose(matrix)}</pose>" for name, matrix in poses.items()}

    given = plain(model=model, a=a, b=b, j=in_a, k=in_b)
    in_model = {"j": j[:3, :3] @ of_j, "k": k[:3, :3] @ of_k}
    flag = "<use_parent_model_frame>1</use_parent_model_frame>"
    of_model = {name: (f"<xyz>{words(xyz)}</xyz>", flag) for name, xyz in in_model.items()}
    of_joint = {"j": (f"<xyz>{words(of_j)}</xyz>", ""), "k": (f"<xyz>{words(of_k)}</xyz>", "")}

    def relative(matrix, to, **attributes):
        extra = "".join(f' {name}="{value}"' for name, value in attributes.items())
        return f'<pose relative_to="{to}"{extra}>{pose(matrix)}</pose>'

    quaternion = Rotation.from_matrix((inverse(a) @ b)[:3, :3]).as_quat()
    chain = {
        "model": given["model"], "a": relative(inverse(k) @ a, "k"),
        "b": '<pose relative_to="f" rotation_format="quat_xyzw">'
        + words([*(inverse(a) @ b)[:3, 3], *(-3 * quaternion)]) + "</pose>",
        "j": relative(j, "__model__"), "k": relative(model @ k, "world"),
    }  # fmt: skip
    expressed = {
        "j": (f'<xyz expressed_in="__model__">{words(2 * in_model["j"])}</xyz>', ""),
        "k": (f'<xyz expressed_in="g">{words(b[:3, :3].T @ in_model["k"])}</xyz>', ""),
    }
    frames = (
        f'<frame name="f" attached_to="a">{"<pose/>"}</frame>'
        f'<frame name="g" attached_to="k">{relative(np.eye(4), "b")}</frame>'
    )
    # The child is a frame on a joint frame of `b`: their poses do not depend on each other.
    turned = frames.replace('attached_to="k"', 'attached_to="b"')
    at_b = dict(given, model=f"<pose>{pose(model @ b)}</pose>")
    texts = [
        text("1.4", given, {name: (xyz, "") for name, (xyz, _) in of_model.items()}),
        text("1.6", given, of_joint),
        text("1.5", given, of_model),
        text("1.6", given | {"k": relative(k, "__model__").replace("relative_to", "frame")},
             of_joint),
        text("1.7", given, of_joint),
        text("1.11", chain, expressed, more=turned, child="g"),
        text("1.8", at_b, of_joint, ' placement_frame="b" canonical_link="b"'),
    ]  # fmt: skip
    for one in texts:
        found = read(one)
        for link, matrix in zip(found.links, (a, b), strict=True):
            np.testing.assert_allclose(link.placement.position, (model @ matrix)[:3, 3], atol=3e-15)
            np.testing.assert_allclose(
                link.placement.rotation, (model @ matrix)[:3, :3], atol=3e-15
            )
            # Defaults of the format.
            assert link.mass == 1 and np.array_equal(link.inertia, np.eye(3))
        for joint, matrix, axis in zip(found.joints, (j, k), (of_j, of_k), strict=True):
            np.testing.assert_allclose(joint.point, (model @ matrix)[:3, 3], atol=4e-15)
            np.testing.assert_allclose(joint.axes[0], (model @ matrix)[:3, :3] @ axis, atol=3e-15)
        assert [(joint.parent, joint.child) for joint in found.joints] == [
            ("ground", "a"), ("a", "b"),
        ]  # fmt: skip


def test_linkage_has_a_loop_and_gears():
    model = load(LINKAGE)
    assert model.names.closing == ("cross",)
    assert model.names.bodies == ("crank", "rotor", "rod", "rocker")
    # A crank with a geared rotor: one degree of freedom is left.
    assert model.system.num_dof == 1
    report = str(model.report)
    for line in (
        "joint 'rotor axle': the tree leads from 'base' to 'rotor': ends exchanged",
        "<joint name='gears'>: `Coupling`: 'drive' is 0.25 times 'rotor axle'",
        "joint 'cross': closes a loop",
        "<frame name='pin'>: on 'rod'",
        "<sensor>: 1 sensors", "<plugin>: 1 plugins", "<visual>: 1 visuals",
    ):  # fmt: skip
        assert line in report, (line, report)
    assert model.limits["drive"] == rj.models.model.JointLimits((-6.0, np.inf), None, 20.0)
    assert model.frames["axle"].body == "ground" and model.frames["pin"].body == "rod"


def pair(joint, more="", version="1.11", ends=("a", "b")):
    """Two links and a joint between them."""
    kind, inside = joint
    return (
        f'<sdf version="{version}"><model name="m"><link name="a"/><link name="b">'
        f"<pose>1 0 0 0 0 0</pose></link>"
        f'<joint name="base" type="fixed"><parent>world</parent><child>a</child></joint>'
        f'<joint name="j" type="{kind}"><parent>{ends[0]}</parent><child>{ends[1]}</child>'
        f"{inside}</joint>{more}</model></sdf>"
    )


@pytest.mark.parametrize(
    "thread, pitch",
    [
        ("<screw_thread_pitch>0.2</screw_thread_pitch>", 0.2),
        ("<screw_thread_pitch>0.2</screw_thread_pitch><thread_pitch>5</thread_pitch>", 0.2),
        (f"<thread_pitch>{-2 * np.pi / 0.2!r}</thread_pitch>", 0.2),
        ("", 1.0),
    ],
)
def test_pitch_of_screws(thread, pitch):
    found = read(pair(("screw", thread + "<axis><xyz>0 0 1</xyz></axis><axis2/>")))
    joint = found.joints[1]
    assert "<joint name='j'>: <axis2> of a screw joint" in str(found.report)
    assert joint.kind == "screw"
    assert joint.pitch == pytest.approx(pitch, abs=1e-15)


AXES = "<axis><xyz>1 0 0</xyz>{}</axis><axis2><xyz>{} 0 1</xyz></axis2>"


@pytest.mark.parametrize("ends", [("a", "b"), ("b", "a")])
def test_two_hinges_move_like_the_universal_joint(ends):
    damped = "<dynamics><damping>0.1</damping><friction>0.2</friction></dynamics>"
    crossed = load_text(pair(("universal", AXES.format("", 0)), ends=ends))
    chain = load_text(pair(("revolute2", AXES.format(damped, 0)), ends=ends))
    assert crossed.names.kinds == ("universal",)
    assert chain.names.kinds == ("revolute", "revolute")
    assert chain.names.bodies == ("b", "j.cross")
    assert "two hinges with the massless link 'j.cross'" in str(chain.report)
    damping = {joint.name: joint.damping for joint in chain.system.joints}
    assert damping["j.axis"] == 0.1 and damping["j.axis2"] is None
    angles = (0.4, -0.7) if ends == ("a", "b") else (-0.7, 0.4)
    at_once = rj.jointed_state(crossed.system, {"j": angles})
    by_hinges = rj.jointed_state(chain.system, {"j.axis": 0.4, "j.axis2": -0.7})
    np.testing.assert_allclose(at_once.position[0], by_hinges.position[0], atol=1e-14)
    np.testing.assert_allclose(
        np.abs(at_once.orientation[0] @ by_hinges.orientation[0]), 1, atol=1e-14
    )


@pytest.mark.parametrize("name", ["j.cross", "j.axis2"])
def test_names_that_two_hinges_need(name):
    with pytest.raises(ValueError, match=f"becomes two hinges, which need the name '{name}'"):
        read(pair(("revolute2", AXES.format("", 0.1)), f'<link name="{name}"/>'))


def test_axes_that_are_not_perpendicular_need_two_hinges():
    found = read(pair(("revolute2", AXES.format("", 0.1))))
    assert [joint.kind for joint in found.joints] == ["fixed", "revolute", "revolute"]
    loop = '<joint name="k" type="revolute2"><parent>a</parent><child>b</child>{}</joint>'
    free = ("ball", "")
    with pytest.raises(ValueError, match="joint 'k' closes a loop and has axes that are not perp"):
        read(pair(free, loop.format(AXES.format("", 0.1))))
    assert [j.closes_loop for j in read(pair(free, loop.format(AXES.format("", 0)))).joints] == [
        False, False, True,
    ]  # fmt: skip
    damped = AXES.format("<dynamics><damping>0.1</damping></dynamics>", 0)
    with pytest.raises(ValueError, match=re.escape('ignore=("universal",)')):
        read(pair(free, loop.format(damped)))
    limited = AXES.format("<limit><lower>-1</lower><upper>1</upper></limit>", 0)
    assert "limits or friction of <axis> in a joint" in str(
        read(pair(free, loop.format(limited))).report
    )


def gearbox(first, second, axis2="1 0 0", reference="base"):
    """A gearbox between two links on hinges; `first` and `second` give ends and axis of each."""

    def hinge(name, ends, axis):
        return (
            f'<joint name="{name}" type="revolute"><parent>{ends[0]}</parent>'
            f"<child>{ends[1]}</child><axis><xyz>{axis}</xyz></axis></joint>"
        )

    return (
        '<sdf version="1.6"><model name="m"><link name="base"/><link name="p"/><link name="c"/>'
        '<joint name="b" type="fixed"><parent>world</parent><child>base</child></joint>'
        f"{hinge('one', *first)}{hinge('two', *second)}"
        '<joint name="g" type="gearbox"><parent>p</parent><child>c</child>'
        f"<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>{reference}"
        "</gearbox_reference_body><axis><xyz>1 0 0</xyz></axis>"
        f"<axis2><xyz>{axis2}</xyz></axis2></joint></model></sdf>"
    )


@pytest.mark.parametrize(
    "first, second, ratio",
    [
        ((("base", "p"), "1 0 0"), (("base", "c"), "1 0 0"), -3),
        ((("base", "p"), "-1 0 0"), (("base", "c"), "1 0 0"), 3),
        ((("p", "base"), "1 0 0"), (("base", "c"), "1 0 0"), 3),
        ((("p", "base"), "-1 0 0"), (("c", "base"), "1 0 0"), 3),
    ],
)
def test_gearboxes(first, second, ratio):
    (coupling,) = read(gearbox(first, second)).couplings
    assert (coupling.joint, coupling.by, coupling.ratio) == ("two", "one", ratio)
    # Angles of both links about x, from the poses: theta_2 = -3 theta_1.
    model = load_text(gearbox(first, second))
    state = rj.jointed_state(model.system, {"one": 0.2})
    theta = [
        Rotation.from_quat(np.asarray(q), scalar_first=True).as_rotvec()[0]
        for q in state.orientation
    ]
    assert model.names.bodies == ("p", "c")
    assert abs(theta[0]) == pytest.approx(0.2)
    assert theta[1] == pytest.approx(-3 * theta[0])


def test_gearboxes_need_both_axes():
    text = gearbox((("base", "p"), "1 0 0"), (("base", "c"), "1 0 0"))
    with pytest.raises(ValueError, match="<joint name='g'>: the element <axis2> is missing"):
        read(text.replace("<axis2><xyz>1 0 0</xyz></axis2>", ""))


def test_joints_between_links_that_are_fixed_to_each_other():
    hinge = '<joint name="k" type="revolute"><parent>a</parent><child>b</child><axis/></joint>'
    with pytest.raises(ValueError, match="the joint 'k' is between links that are fixed to each"):
        load_text(pair(("fixed", ""), hinge))


def test_axes_of_loops_that_rounding_would_lock():
    # A parallelogram in the xz-plane; the last hinge is turned by 1e-6 rad about z.
    def hinge(name, parent, child, x, z, axis="0 1 0"):
        return (
            f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child>'
            f'<pose relative_to="__model__">{x} 0 {z} 0 0 0</pose><axis>'
            f'<xyz expressed_in="__model__">{axis}</xyz></axis></joint>'
        )

    def bars(axis):
        return (
            '<sdf version="1.8"><model name="m"><link name="a"/><link name="b"/><link name="c"/>'
            + hinge("p", "world", "a", 0, 0) + hinge("q", "a", "b", 0, 1)
            + hinge("r", "b", "c", 2, 1.5) + hinge("s", "world", "c", 2, 0, axis)
            + "</model></sdf>"
        )  # fmt: skip

    found = read(bars("1e-6 -1 0"))
    assert [joint.closes_loop for joint in found.joints] == [False, False, False, True]
    assert found.joints[3].axes[0].tolist() == [0, -1, 0]
    assert "joint 's': axis turned by 1e-06 rad, to be parallel" in str(found.report)
    assert "turned" not in str(read(bars("0 2 0")).report)
    assert read(bars("1e-3 1 0")).joints[3].axes[0][0] == pytest.approx(1e-3)


def test_loops_at_a_dead_point():
    # Two hinges and a slider across the line between them: both may turn, but only at first.
    def text(slide):
        return (
            '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/>'
            '<joint name="p" type="revolute"><parent>world</parent><child>a</child>'
            "<axis><xyz>0 0 1</xyz></axis></joint>"
            '<joint name="q" type="revolute"><parent>world</parent><child>b</child>'
            "<pose>1 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint>"
            '<joint name="s" type="prismatic"><parent>a</parent><child>b</child>'
            f"<axis><xyz>{slide}</xyz></axis></joint></model></sdf>"
        )

    # Both hinges turn by the angle a, and the slider is off its line by 1 - cos a; x^2 is 2 a^2.
    message = (
        "joint 's': closes a loop at a dead point: with 'p', 'q' it allows one .* by 0.25 times"
    )
    with pytest.raises(ValueError, match=message):
        read(text("0 1 0"))
    left_out = read(text("0 1 0"), ignore=("dead point",))
    assert [joint.name for joint in left_out.joints] == ["p", "q"]
    assert [joint.name for joint in read(text("1 1 0")).joints] == ["p", "q", "s"]


def test_mimic():
    text = pair(
        ("revolute", "<axis><xyz>1 0 0</xyz></axis>"),
        '<link name="c"/><joint name="k" type="prismatic"><parent>b</parent><child>c</child><axis>'
        '<xyz>0 0 1</xyz><mimic joint="j"><multiplier>2</multiplier><offset>0.5</offset>'
        "<reference>0.1</reference></mimic></axis></joint>",
    )
    (coupling,) = read(text).couplings
    assert (coupling.joint, coupling.by, coupling.ratio) == ("k", "j", 2)
    assert coupling.offset == pytest.approx(0.5 - 2 * 0.1)
    model = load_text(text)
    # The reference configuration satisfies the equation in the coordinates of the file.
    assert model.zeros["k"] == pytest.approx(2 * (model.zeros["j"] - 0.1) + 0.5, abs=1e-14)
    assert not read(text, mimic=False).couplings


def test_gravity():
    def gravity(version, world="", flags=("", "")):
        a, b = (f"<gravity>{flag}</gravity>" if flag else "" for flag in flags)
        return read(
            f'<sdf version="{version}"><world name="w">{world}<model name="m">'
            f'<link name="a">{a}</link><link name="b">{b}</link></model></world></sdf>'
        ).gravity

    assert gravity("1.6", "<gravity>0 1 -3</gravity>").tolist() == [0, 1, -3]
    assert gravity("1.5", "<physics><gravity>0 1 -3</gravity></physics>").tolist() == [0, 1, -3]
    assert gravity("1.6").tolist() == [0, 0, -9.8]
    assert gravity("1.6", flags=("false", "0")).tolist() == [0, 0, 0]
    assert read('<sdf version="1.6"><model name="m"><link name="a"/></model></sdf>').gravity is None
    with pytest.raises(ValueError, match="gravity on other links only"):
        gravity("1.6", flags=("false", "true"))
