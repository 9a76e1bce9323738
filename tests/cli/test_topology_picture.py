"""The picture of a system's trees and loops."""

import rigidjax as rj
from rigidjax import plotting


def test_every_body_and_joint_is_drawn():
    names = ("crank", "coupler", "rocker", "satellite")
    bodies = [rj.Body(name, 1.0, (1.0, 1.0, 1.0)) for name in names]
    pairs = [("ground", "crank"), ("crank", "coupler"), ("ground", "rocker"), ("coupler", "rocker")]
    joints = [rj.Revolute(a, b, (0, 0, 0), (0, 0, 1)) for a, b in pairs]
    figure = plotting.plot_topology(rj.System(bodies, joints))
    (ax,) = figure.axes
    drawn = [text.get_text() for text in ax.texts]
    assert sorted(drawn) == sorted([*names, "ground", *4 * ["Revolute"]])
    styles = [line.get_linestyle() for line in ax.lines]
    # Three joints of the trees, one that closes the loop, one free body.
    assert styles.count("-") == 3 and styles.count("--") == 1 and styles.count(":") == 1
    boxes = {text.get_text(): text.get_position() for text in ax.texts if text.get_text() in names}
    assert len(set(boxes.values())) == 4
