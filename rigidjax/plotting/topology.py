"""A figure of the trees of bodies."""

from typing import TYPE_CHECKING

from ..mechanics import System
from ..mechanics.declared.topology import GROUND
from .style import GREY, PALETTE, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_topology(system: System) -> "Figure":
    """Plot the spanning trees of a system, the ground on top; joints that close loops are dashed.

    **Returns:** a matplotlib `Figure`; see `save_figure`.
    """
    positions = _node_positions(system)
    width = max(x for x, _ in positions.values()) - min(x for x, _ in positions.values()) + 2
    depth = 1 - min(y for _, y in positions.values())
    index = {body.name: i for i, body in enumerate(system.bodies)} | {"ground": GROUND}
    ends = system.joined_bodies
    with style():
        figure = new_figure(min(16.0, 1.6 * width), min(20.0, 1.0 * depth + 0.6))
        ax = figure.add_subplot()
        for j, joint in enumerate(system.joints):
            loop = j in system.topology.loops
            (x0, y0), (x1, y1) = (positions[index[name]] for name in ends[joint.name])
            color = PALETTE[1] if loop else PALETTE[0]
            ax.plot([x0, x1], [y0, y1], color=color, linestyle="--" if loop else "-", zorder=1)
            middle = (0.5 * (x0 + x1), 0.5 * (y0 + y1))
            ax.text(
                *middle, type(joint).__name__, color=color, fontsize=7, ha="center", va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0}, zorder=2,
            )  # fmt: skip
        for i, by in enumerate(system.topology.joints):
            if by is None:
                (x, y) = positions[i]
                ax.plot([x, x], [y, 0], color=GREY, linestyle=":", zorder=0)
        for i, (x, y) in positions.items():
            name = "ground" if i == GROUND else system.bodies[i].name
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": GREY}
            ax.text(x, y, name, ha="center", va="center", bbox=box, zorder=2)
        ax.set_axis_off()
        ax.set_title(f"{len(system.bodies)} bodies, {len(system.joints)} joints")
        ax.margins(0.15)
    return figure


def _node_positions(system: System) -> dict[int, tuple[float, float]]:
    """Return the position of each body: leaves side by side, parents above their children."""
    topology = system.topology
    depths = topology.depths
    children: dict[int, list[int]] = {i: [] for i in (GROUND, *range(topology.num_bodies))}
    for i in topology.order:
        children[topology.parents[i]].append(i)
    across: dict[int, float] = {}
    leaves, order, stack = 0, [], [*reversed(children[GROUND])]
    while stack:
        order.append(stack.pop())
        stack += reversed(children[order[-1]])
    for i in (*reversed(order), GROUND):
        below = [across[c] for c in children[i]]
        if not below:
            across[i] = float(-leaves)
            leaves += 1
        else:
            across[i] = 0.5 * (min(below) + max(below))
    return {i: (x, 0.0 if i == GROUND else -1.0 - float(depths[i])) for i, x in across.items()}
