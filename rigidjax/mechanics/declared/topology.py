"""Spanning trees of a system and the joints that close loops."""

import dataclasses
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ...bodies.frame import Frame
from ...joints.base import AbstractJoint

GROUND = -1


@dataclasses.dataclass(frozen=True)
class Topology:
    """Spanning trees of a system; static, hashable. `GROUND` (-1) stands for the inertial frame.

    One entry for each body, in the order of the system: `parents`, the body that it is attached to;
    `joints`, the index of the joint that attaches it, `None` for a free body; `reversed`, whether
    that joint has the body as its parent. `loops` are the indices of the joints that close loops;
    `order`, the bodies, parents first.
    """

    parents: tuple[int, ...]
    joints: tuple[int | None, ...]
    reversed: tuple[bool, ...]
    loops: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return len(self.parents)

    @property
    def roots(self) -> np.ndarray:
        """First body of the tree of each body, shape (L,)."""
        roots = np.arange(self.num_bodies)
        for i in self.order:
            if self.parents[i] != GROUND:
                roots[i] = roots[self.parents[i]]
        return roots

    @property
    def depths(self) -> np.ndarray:
        """Number of bodies between each body and the ground, shape (L,)."""
        depths = np.zeros(self.num_bodies, int)
        for i in self.order:
            if self.parents[i] != GROUND:
                depths[i] = depths[self.parents[i]] + 1
        return depths

    @property
    def ancestors(self) -> np.ndarray:
        """Whether body j is body i or an ancestor of it, shape (L, L), boolean."""
        mask = np.zeros((self.num_bodies, self.num_bodies), bool)
        for i in self.order:
            if self.parents[i] != GROUND:
                mask[i] = mask[self.parents[i]]
            mask[i, i] = True
        return mask


def find_topology(
    names: Sequence[str],
    joints: Sequence[AbstractJoint],
    frames: Sequence[Frame] = (),
    closing: Collection[str] = (),
) -> Topology:
    """Find spanning trees, breadth first from the ground, then from the first body left.

    Joints are taken in their order; a joint named in `closing`, one between bodies that are
    connected already, and one that has no global basis of its null space, closes a loop. If that is
    a joint with `armature`, which only joints of trees can have, another joint of the loop closes
    it, unless `closing` decides.
    """
    allowed = [j for j, joint in enumerate(joints) if joint.name not in closing]
    topology = _breadth_first(names, joints, frames, allowed)
    needed = [j for j, joint in enumerate(joints) if needs_tree(joint)]
    if closing or set(needed).isdisjoint(topology.loops):
        return topology
    tree = (j for j in topology.joints if j is not None)
    ranked = dict.fromkeys([*needed, *tree, *topology.loops])
    return _breadth_first(names, joints, frames, _forest(names, joints, frames, ranked))


def needs_tree(joint: AbstractJoint) -> bool:
    """Return whether a joint has an armature that acts on a coordinate."""
    return joint.armatures is not None and not joint.is_driven


def _rows(names: Sequence[str], frames: Sequence[Frame]) -> dict[str, int]:
    """Return the index of the body of each name that joints may use."""
    index = {"ground": GROUND, **{name: i for i, name in enumerate(names)}}
    return index | {frame.name: index[frame.body] for frame in frames}


def _forest(
    names: Sequence[str],
    joints: Sequence[AbstractJoint],
    frames: Sequence[Frame],
    ranked: Iterable[int],
) -> list[int]:
    """Return the joints of spanning trees, in their order; those ranked first are preferred."""
    index = _rows(names, frames)
    tree_of = {i: i for i in index.values()}
    chosen = []
    for j in ranked:
        first, second = (tree_of[index[name]] for name in (joints[j].parent, joints[j].child))
        if first != second and not joints[j].closes_loops_only:
            chosen.append(j)
            tree_of = {i: second if root == first else root for i, root in tree_of.items()}
    return sorted(chosen)


def _breadth_first(
    names: Sequence[str],
    joints: Sequence[AbstractJoint],
    frames: Sequence[Frame],
    allowed: Iterable[int],
) -> Topology:
    """Return the trees that the allowed joints span, breadth first."""
    index = _rows(names, frames)
    joints_at: dict[int, list[int]] = {i: [] for i in index.values()}
    for j in allowed:
        joint = joints[j]
        if not joint.closes_loops_only:
            joints_at[index[joint.parent]].append(j)
            joints_at[index[joint.child]].append(j)
    count = len(names)
    parents, flipped = [GROUND] * count, [False] * count
    joint_of: list[int | None] = [None] * count
    reached, order, used = {GROUND}, [], set()

    def grow(start):
        queue = [start]
        while queue:
            body = queue.pop(0)
            for j in joints_at[body]:
                first, second = index[joints[j].parent], index[joints[j].child]
                neighbour = second if first == body else first
                if neighbour in reached:
                    continue
                reached.add(neighbour)
                used.add(j)
                parents[neighbour], joint_of[neighbour], flipped[neighbour] = (
                    body,
                    j,
                    neighbour == first,
                )
                order.append(neighbour)
                queue.append(neighbour)

    grow(GROUND)
    for i in range(count):
        if i not in reached:
            reached.add(i)
            order.append(i)
            grow(i)
    loops = tuple(j for j in range(len(joints)) if j not in used)
    return Topology(tuple(parents), tuple(joint_of), tuple(flipped), loops, tuple(order))


def draw(names: Sequence[str], joints: Sequence[AbstractJoint], topology: Topology) -> str:
    """Return the trees and loops as lines of text."""
    lines = ["ground"]
    children: dict[int, list[int]] = {i: [] for i in range(GROUND, topology.num_bodies)}
    for i in topology.order:
        children[topology.parents[i]].append(i)
    # An explicit stack: a chain may be longer than the recursion limit of Python.
    stack = [(i, "") for i in reversed(children[GROUND])]
    while stack:
        i, prefix = stack.pop()
        last = i == children[topology.parents[i]][-1]
        j = topology.joints[i]
        kind = "free" if j is None else f"{type(joints[j]).__name__} '{joints[j].name}'"
        lines.append(f"{prefix}{'└─' if last else '├─'} {names[i]} ({kind})")
        stack += [(k, prefix + ("   " if last else "│  ")) for k in reversed(children[i])]
    for j in topology.loops:
        joint = joints[j]
        lines.append(
            f"loop: {joint.parent} ~ {joint.child} ({type(joint).__name__} '{joint.name}')"
        )
    return "\n".join(lines)
