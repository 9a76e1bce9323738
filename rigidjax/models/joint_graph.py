"""Choice of trees among the joints of a mechanism."""

import dataclasses
from collections.abc import Mapping, Sequence

from .description import GROUND, JointRecord
from .report import Report


def choose_trees(
    links: Sequence[str], joints: Sequence[JointRecord], report: Report
) -> list[JointRecord]:
    """Return the joints with those that close loops marked, and trees that lead away from roots.

    Fixed joints are part of the trees first, then joints in file order whose child has no joint
    above it yet, then others; joints that are left close loops. A tree that is not on the ground
    starts at its first link that is no child. Joints against that direction have their ends
    exchanged, and axes that keep their coordinate.
    """
    tree_of = {name: name for name in (GROUND, *links)}

    def find(name: str) -> str:
        while tree_of[name] != name:
            tree_of[name] = tree_of[tree_of[name]]
            name = tree_of[name]
        return name

    tree: dict[str, JointRecord] = {}
    children: set[str] = set()

    def take(joint: JointRecord) -> None:
        first, second = find(joint.parent), find(joint.child)
        if first != second:
            tree_of[second] = first
            tree[joint.name] = joint
            children.add(joint.child)

    for joint in joints:
        if joint.kind == "fixed":
            take(joint)
    for joint in joints:
        if joint.name not in tree and joint.child not in children:
            take(joint)
    for joint in joints:
        if joint.name not in tree:
            take(joint)

    at: dict[str, list[JointRecord]] = {name: [] for name in tree_of}
    for joint in tree.values():
        at[joint.parent].append(joint)
        at[joint.child].append(joint)
    reached: set[str] = set()
    exchanged: set[str] = set()
    roots = [GROUND, *(name for name in links if name not in children), *links]
    for root in roots:
        queue = [] if root in reached else [root]
        reached.add(root)
        for link in queue:
            for joint in at[link]:
                other = joint.child if joint.parent == link else joint.parent
                if other not in reached:
                    reached.add(other)
                    queue.append(other)
                    if other == joint.parent:
                        exchanged.add(joint.name)
    chosen = []
    for joint in joints:
        if joint.name in exchanged:
            report.add(
                "translated", f"joint {joint.name!r}",
                f"the tree leads from {joint.child!r} to {joint.parent!r}: ends exchanged",
                joint.line,
            )  # fmt: skip
            # With the axes reversed too, the coordinates stay the same.
            axes = tuple(-axis for axis in reversed(joint.axes))
            ends = {"parent": joint.child, "child": joint.parent}
            joint = dataclasses.replace(joint, axes=axes, **ends)
        chosen.append(dataclasses.replace(joint, closes_loop=joint.name not in tree))
    return chosen


def find_cycle(by: Mapping[str, str]) -> str | None:
    """Return a name on a cycle of names that follow others, or `None`."""
    done: set[str] = set()
    for start in by:
        path: set[str] = set()
        at = start
        while at in by and at not in done:
            if at in path:
                return at
            path.add(at)
            at = by[at]
        done |= path
    return None


def order_after_leaders(by: Mapping[str, str]) -> list[str]:
    """Return all names, each after the one that it follows; without cycles."""
    ordered: dict[str, None] = {}
    for start in by:
        # Without recursion: a chain may be longer than Python's recursion limit.
        path = [start]
        while path[-1] in by and path[-1] not in ordered:
            path.append(by[path[-1]])
        ordered |= dict.fromkeys(reversed(path))
    return list(ordered)
