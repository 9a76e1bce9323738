"""Chains of bodies between branchings, along which recursions over trees run."""

from typing import NamedTuple

import numpy as np

from ..declared.system import AbstractSystem


class Segment(NamedTuple):
    """Bodies of a chain, parents first, whose joints have equally padded motion subspaces.

    `parent`, the segment that ends with the parent of the first body, `None` for the ground;
    `width`, the number of rows of the motion subspaces, with rows of zeros.
    """

    bodies: np.ndarray
    parent: int | None
    width: int


def find_segments(system: AbstractSystem) -> list[Segment]:
    """Return the bodies of the trees as chains between branchings, parents before children."""
    topology, counts = system.topology, system.rates_of_bodies
    widths = [next(width for width in (1, 3, 6) if width >= count) for count in counts]
    num_children = np.bincount(np.array(topology.parents) + 1, minlength=len(counts) + 1)[1:]
    chains: list[list[int]] = []
    above: list[int | None] = []
    segment_of: dict[int, int] = {}
    for body in topology.order:
        parent = topology.parents[body]
        segment = segment_of.get(parent)
        extends = segment is not None and num_children[parent] == 1
        if segment is None or not (extends and widths[parent] == widths[body]):
            above.append(segment)
            chains.append([])
            segment = len(chains) - 1
        chains[segment].append(body)
        segment_of[body] = segment
    return [
        Segment(np.array(chain, int), parent, widths[chain[0]])
        for chain, parent in zip(chains, above, strict=True)
    ]
