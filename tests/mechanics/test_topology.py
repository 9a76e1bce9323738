"""Spanning trees, loops, degrees of freedom, and the names of bodies and joints."""

import itertools
import sys

import numpy as np
import pytest
from joints import cases as joint_cases

import rigidjax as rj
from rigidjax.mechanics.declared.system import AbstractSystem
from rigidjax.mechanics.declared.topology import GROUND, draw, find_topology

P, X, Z = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def body(name, position=P):
    return rj.Body(name, 1.0, (1.0, 1.0, 1.0), position)


def system(names, links, kind=rj.Weld):
    """Bodies with one-letter names, and joints between them given as pairs."""
    full = {"0": "ground"}
    joints = [kind(full.get(a, a), full.get(b, b)) for a, b in links.split()] if links else []
    return rj.System([body(name) for name in names], joints)


@pytest.mark.parametrize(
    ("names", "links", "parents", "flipped", "loops", "order"),
    [
        ("abc", "0a ab bc", (-1, 0, 1), (0, 0, 0), (), (0, 1, 2)),
        ("abc", "bc ab 0a", (-1, 0, 1), (0, 0, 0), (), (0, 1, 2)),
        ("cba", "cb ba a0", (1, 2, -1), (1, 1, 1), (), (2, 1, 0)),
        ("abcd", "ab ac d0", (-1, 0, 0, -1), (0, 0, 0, 1), (), (3, 0, 1, 2)),
        ("abc", "0a ab bc c0", (-1, 0, -1), (0, 0, 1), (2,), (0, 2, 1)),
        ("ab", "ab ba", (-1, 0), (0, 0), (1,), (0, 1)),
        ("ab", "0a 0b 0a", (-1, -1), (0, 0), (2,), (0, 1)),
        ("a", "", (-1,), (0,), (), (0,)),
    ],
)
def test_spanning_trees(names, links, parents, flipped, loops, order):
    topology = system(names, links).topology
    assert topology.parents == parents
    assert topology.reversed == tuple(map(bool, flipped))
    assert topology.loops == loops
    assert topology.order == order
    position = {i: k for k, i in enumerate(order)}
    for i, parent in enumerate(parents):
        assert parent == GROUND or position[parent] < position[i]


def test_roots_depths_and_ancestors():
    topology = system("abcdef", "0a ab bc 0d ef").topology
    assert topology.num_bodies == 6
    assert topology.roots.tolist() == [0, 0, 0, 3, 4, 4]
    assert topology.depths.tolist() == [0, 1, 2, 0, 0, 1]
    assert topology.ancestors.astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1],
    ]  # fmt: skip
    assert topology.joints == (0, 1, 2, 3, None, 4)


def test_a_distance_always_closes_a_loop():
    bodies = [body("a"), body("b", X)]
    rod = rj.Distance("a", "b", P, X)
    assert rj.System(bodies, [rod]).topology.loops == (0,)
    joined = rj.System(bodies, [rod, rj.Spherical("ground", "a", P)])
    assert joined.topology.joints == (1, None)
    assert joined.num_dof == 8


def test_a_joint_with_armature_is_part_of_the_tree():
    """Breadth first, it would close the loop ground-a-c-b; a driven one may close it."""

    def hinge(first, second, **options):
        return rj.Revolute(first, second, P, Z, name=f"{first}-{second}", **options)

    bodies = [body(name) for name in "abc"]
    links = [hinge("ground", "a"), hinge("ground", "b"), hinge("a", "c")]
    closing = hinge("b", "c", armature=0.1)
    topology = rj.System(bodies, [*links, closing]).topology
    assert topology.joints == (0, 1, 3) and topology.loops == (2,)
    driven = hinge("b", "c", armature=0.1, motion=lambda t: 0.0 * t)
    assert rj.System(bodies, [*links, driven]).topology.loops == (3,)
    with pytest.raises(ValueError, match="closes a loop of which every joint has `armature`"):
        all_of = [("ground", "a"), ("ground", "b"), ("a", "c"), ("b", "c")]
        rj.System(bodies, [hinge(*ends, armature=0.1) for ends in all_of])


def test_repr_draws_the_trees_and_the_loops():
    drawn = repr(system("abcd", "0a ab ac bc 0d"))
    assert drawn == (
        "System with 4 bodies, 5 joints, 0 forces\n"
        "ground\n"
        "├─ a (Weld 'weld ground-a')\n"
        "│  ├─ b (Weld 'weld a-b')\n"
        "│  └─ c (Weld 'weld a-c')\n"
        "└─ d (Weld 'weld ground-d')\n"
        "loop: b ~ c (Weld 'weld b-c')"
    )
    assert repr(system("a", "")).endswith("ground\n└─ a (free)")


def test_repr_of_a_long_chain():
    # Deeper than Python lets functions call themselves.
    names = [f"{i}" for i in range(1100)]
    joints = [rj.Weld(*ends) for ends in itertools.pairwise(["ground", *names])]
    assert draw(names, joints, find_topology(names, joints)).count("\n") == len(names)


def test_large_systems_are_built_in_linear_time():
    """Calls of functions, which unlike times are always the same: eight times as many bodies."""

    def calls(count):
        names = [f"{i}" for i in range(count)]
        bodies = [body(name, (i, 0.0, 0.0)) for i, name in enumerate(names)]
        joints = [
            rj.Revolute(parent, child, P, Z, name=f"hinge of {child}")
            for parent, child in itertools.pairwise(["ground", *names])
        ]
        motors = [rj.Motor(joint.name, 1.0) for joint in joints]
        number = 0

        def tell(frame, event, argument):
            nonlocal number
            number += event in ("call", "c_call")

        sys.setprofile(tell)
        try:
            assert len(rj.System(bodies, joints, motors).tracked_joints) == count
        finally:
            sys.setprofile(None)
        return number

    calls(2)  # what is made once
    assert calls(80) < 10 * calls(10)


@pytest.mark.parametrize("kind", [k for k in joint_cases.KINDS if k != "Distance"])
def test_degrees_of_freedom_of_trees(kind):
    free = 6 - joint_cases.NUM_CONSTRAINTS[kind]
    bodies = [body("a"), body("b")]
    build = joint_cases.KINDS[kind]
    assert rj.System(bodies, [build("a", "b")]).num_dof == 6 + free
    assert rj.System(bodies, [build("b", "ground"), build("a", "b")]).num_dof == 2 * free
    assert rj.System(bodies).num_dof == 12


def test_rigid_triangle_has_no_freedom():
    points = np.array([P, (0.0, 1.0, 0.0), (2.0, 1.5, 0.0)])
    rods = [body("0", 0.5 * (points[0] + points[1])), body("1", 0.5 * (points[1] + points[2]))]
    ends = [("ground", "0"), ("0", "1"), ("1", "ground")]
    hinges = [rj.Revolute(*pair, x, Z) for pair, x in zip(ends, points, strict=True)]
    assert rj.System(rods, hinges).num_dof == 0


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: system("aba", ""), ValueError, r"needs a name of its own; got \['a'\]"),
        (lambda: system("ab", "ac"), ValueError, "There is no body called 'c'"),
        (lambda: rj.System(body("arm"), [rj.Weld("ground", "amr")]), ValueError,
         "no body called 'amr'. Did you mean 'arm'"),
        (lambda: rj.System(body("arm"), [rj.Weld("Ground", "arm")]), ValueError, "called 'Ground'"),
        (lambda: system("ab", "0a").joint_index("weld ground-b"), ValueError,
         "no joint called 'weld ground-b'. Did you mean 'weld ground-a'"),
        (lambda: system("ab", "0a").joint_index("x"), ValueError,
         r"no joint called 'x'. The joints are \['weld ground-a'\]"),
        (lambda: rj.NullSpace(system("ab", "0a"), rates="space"), ValueError,
         "is for bodies without joints"),
    ],
)  # fmt: skip
def test_invalid_systems_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()


def test_unnamed_joints_get_unique_names():
    doubled = system("ab", "ab ab ab")
    assert [joint.name for joint in doubled.joints] == ["weld a-b", "weld a-b 2", "weld a-b 3"]
    assert doubled.joint_index("weld a-b 2") == 1
    with pytest.raises(ValueError, match="name of its own; got 'x' more than once"):
        rj.System([body("a"), body("b")], [rj.Weld("a", "b", name="x") for _ in range(2)])


def test_chosen_joints_close_loops():
    bodies = [body(name) for name in "abc"]
    ends = [("ground", "a"), ("a", "b"), ("b", "c"), ("ground", "c")]
    joints = [rj.Weld(*pair, name=f"j{k}") for k, pair in enumerate(ends)]
    for k in range(4):
        base = rj.System(bodies, joints, closing=[f"j{k}"])
        assert base.topology.loops == (k,)
        more = rj.System(rj.Torque("a", Z), base, rj.Free("d"), body("d"))
        assert (more.topology.loops, more.bodies[:3], len(more.forces)) == ((k,), base.bodies, 1)
    # A joint that nothing else replaces may be chosen too: its child is free then.
    free = rj.System(bodies[:1], joints[:1], closing=["j0"]).topology
    assert (free.loops, free.joints) == ((0,), (None,))
    with pytest.raises(ValueError, match="j9"):
        rj.System(bodies, joints, closing=["j9"])
    armed = [rj.Revolute("ground", "a", P, Z, name="m", armature=0.1)]
    with pytest.raises(ValueError, match="'m' closes a loop of which every joint has `armature`"):
        rj.System(bodies[:1], armed, closing=["m"])


def test_free_joint_between_bodies():
    joints = [rj.Free("b", "f", "a"), rj.Weld("ground", "a", name="w")]
    assert rj.System([body("a"), body("b", X)], joints).topology.parents == (GROUND, 0)
    with pytest.raises(ValueError, match="'b' is attached to .* already; leave `Free` out"):
        rj.System([body("a"), body("b", X)], [*joints[1:], rj.Weld("a", "b"), joints[0]])


def test_couplings_do_not_search_the_system(monkeypatch):
    """Methods of a system under construction take a time that grows with it."""

    def refuse(*arguments):
        raise AssertionError(arguments)

    monkeypatch.setattr(AbstractSystem, "joint_index", refuse)
    monkeypatch.setattr(AbstractSystem, "locate", refuse)
    bodies = [rj.Body(name, 1.0, (1.0, 1.0, 1.0)) for name in "abc"]
    hinges = [rj.Revolute("ground", name, (0, 0, 0), (0, 0, 1), name=name) for name in "abc"]
    couplings = [rj.Coupling("b", "a", 2.0), rj.Coupling("c", "a", 3.0)]
    assert len(rj.System(bodies, [*hinges, *couplings]).constraints) == 2
