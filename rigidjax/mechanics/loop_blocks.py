"""Which minimal velocities each loop acts on: loops that share no joint are independent."""

from typing import TYPE_CHECKING

import numpy as np

from .pseudo_inverses import Blocks
from .trees import owners

if TYPE_CHECKING:
    from .mechanics import SystemMechanics


def loop_blocks(mechanics: "SystemMechanics") -> Blocks | None:
    """Blocks of the gradient of the constraints of the loops on the minimal velocities.

    A joint that closes a loop acts on those of the joints along the loop. `None` if all of them
    are one block.
    """
    system, owner = mechanics.system, owners(mechanics)
    ancestors = system.topology.ancestors
    paths = np.concatenate([ancestors, np.zeros((1, len(ancestors)), bool)])
    index = {"ground": -1, **{body.name: i for i, body in enumerate(system.bodies)}}
    index |= {frame: index[body] for frame, body in system.body_of.items()}

    def around(first, second):
        return paths[first] ^ paths[second]

    ends = system.joined_bodies.items()
    joints = {name: around(index[parent], index[child]) for name, (parent, child) in ends}
    bodies = [
        (group.joint.num_constraints, around(parent, child))
        for group in mechanics.groups
        if group.closes_loops
        for parent, child in zip(group.parents, group.children, strict=True)
    ]
    for one in system.constraints:
        masks = [paths[index[name]] for name in one.body_names()]
        masks += [joints[name] for name in one.joint_names()]
        bodies.append((one.num_constraints, np.any(masks, axis=0)))
    ends = np.cumsum([count for count, _ in bodies])
    blocks = Blocks.of(
        (range(end - count, end), np.flatnonzero(mask[owner]))
        for end, (count, mask) in zip(ends, bodies, strict=True)
    )
    whole = len(blocks.parts) == 1 and len(blocks.parts[0][1]) == len(owner)
    return None if whole else blocks
