"""Writing of systems and models to files."""

import os
import pathlib

from ..mechanics import System
from .model import Model
from .save_mjcf import save_mjcf
from .save_urdf import save_urdf


def save(model: Model | System, path: str | os.PathLike[str], name: str | None = None) -> None:
    """Write a model or a system to a URDF file (trees) or an MJCF file (closed loops as well).

    `load` gives the same bodies, joints and couplings. All numbers are written in full. Shapes and
    initial velocities are not written.

    A URDF file contains the frames of a `Model` as links, with the mass of a body at the link of
    its name, and the fixed joints between links of a body. The mass of links on the ground is left
    out, as it does not move. The link of a body of a plain `System` has the axes of the body and
    its origin in the point of the joint that attaches it; `Weld`s are fixed joints, frames links
    without mass, and `load(lump_fixed="massless")` tells these apart. URDF demands limits of
    prismatic joints, and all limits where there is one: 1e30 stands for a limit that is not given.
    Actuators are written as transmissions with their gears, and armature as the inertia of a rotor.

    **Arguments:** `model`, to write; `path`, of a file `.urdf` or `.xml` (MJCF); `name`, of the
    model in the file, by default the name of the file.
    **Errors:** `ValueError` for another suffix, and for whatever the format cannot express: in URDF
    closed loops, other joints than `Revolute`, `Prismatic`, `Weld`, `Free`, `Planar` and
    `Spherical`, prescribed motions, constraints other than a `Coupling`, forces, and another
    gravity than (0, 0, -9.81); `OSError` for a file that cannot be written.
    **Warnings:** in a URDF file, for actuators that are more than a motor, and for those of joints
    that are not in the system.
    """
    path = pathlib.Path(path)
    name = path.stem if name is None else name
    suffix = path.suffix.lower()
    if suffix == ".urdf":
        save_urdf(model, path, name)
    elif suffix == ".xml":
        save_mjcf(model, path, name)
    else:
        raise ValueError(f"`save(path=...)` must end in .urdf or .xml; got {str(path)!r}.")
