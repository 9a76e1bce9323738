"""Loading of models from files."""

import os
import pathlib
from collections.abc import Collection, Sequence
from typing import Literal

from ..checks import ArrayInput
from ..joints import Stop
from .assembly import assemble
from .closure import close_loops
from .description import Description
from .joint_laws import JointLaws
from .mjcf import read_mjcf
from .model import Model
from .report import Report
from .sdf import read_sdf
from .urdf import read_urdf
from .xml_source import Element, parse


def load(
    path: str | os.PathLike[str],
    ignore: Collection[str] = (),
    *,
    strict: bool = False,
    fixed_base: bool | None = None,
    mimic: bool = True,
    lump_fixed: bool | Literal["massless"] = True,
    physical: Literal["keep", "nearest", "error"] = "keep",
    gravity: ArrayInput | None = None,
    packages: Sequence[str | os.PathLike[str]] = (),
    meshes: bool = False,
    friction_velocity: float | None = 0.01,
    stops: Stop | None = None,
) -> Model:
    """Load a robot or mechanism from a URDF, SDF or MJCF file.

    Every element of the file appears in `Model.report`. Features that are not supported raise an
    error with their lines, unless they are named in `ignore`. Attributes and elements that an
    exporter added have no effect on the motion, nor do transmissions and actuators of other kinds,
    since actuators exert no forces: they are skipped, with one warning.

    **Arguments:**

    - `path`, of a file `.urdf`, `.sdf` or `.xml` (MJCF, with the extra `rigidjax[mjcf]`).
    - `ignore`, names of unsupported features to leave out, as the error gives them.
    - `strict`: whether to raise an error instead of skipping them.
    - `fixed_base`: whether links without a joint above them are fixed to the ground; by default
      links named `world` or `ground`, and those without mass, are. A URDF file without such a link
      has a floating base.
    - `mimic`: whether joints with `<mimic>` follow the others (a `Coupling` each).
    - `lump_fixed`: whether links at fixed joints become part of the body that they are fixed to,
      with a `Frame` each; otherwise they are bodies with a `Weld`. With `"massless"` only links
      without mass become frames, as in a system with frames and `Weld`s that was saved.
    - `physical`, for inertias that no distribution of mass has: `"keep"` them with a warning,
      replace them by the `"nearest"` physical one with a warning, or raise an `"error"`.
    - `gravity`, (3,) m/s^2; by default that of the file, or (0, 0, -9.81) if it has none.
    - `packages`, folders in which `package://` meshes are searched, and that an MJCF file may refer
      to besides its own folder and those beside it; `meshes`, whether the viewer shows the shapes
      and meshes of the file (STL and OBJ; Collada with the extra `rigidjax[meshes]`).
    - `friction_velocity`, m/s or rad/s: Coulomb friction of joints is an `rj.Friction` with this
      regularisation velocity; `None` leaves it out.
    - `stops`, the stops at the position limits of joints, such as `rj.Stop(1e4)`; by default limits
      are recorded in `Model.limits` and exert no forces.

    **Errors:** `OSError` for a file that cannot be read; `ValueError` with line and element for a
    file that is not well-formed, refers to something that does not exist, or has unsupported
    features.
    """
    path = pathlib.Path(path)
    for name, value, allowed in (
        ("physical", physical, ("keep", "nearest", "error")),
        ("lump_fixed", lump_fixed, (True, False, "massless")),
        ("fixed_base", fixed_base, (None, True, False)),
        ("mimic", mimic, (True, False)),
        ("meshes", meshes, (True, False)),
        ("strict", strict, (True, False)),
    ):
        if value not in allowed:
            *words, last = (f'"{word}"' if isinstance(word, str) else str(word) for word in allowed)
            raise ValueError(
                f"`load({name}=...)` must be {', '.join(words)} or {last}; got {value!r}."
            )
    for name, value in (("ignore", ignore), ("packages", packages)):
        if isinstance(value, str | os.PathLike):
            raise ValueError(
                f"`load({name}=...)` takes several; got {value!r} alone. Write ({str(value)!r},)."
            )
    laws = JointLaws(friction_velocity, stops)
    laws.check()
    if path.suffix.lower() == ".xacro":
        raise ValueError(
            f"{path}: macros of xacro are not expanded. Run `xacro {path.name} > "
            f"{path.stem}_expanded.urdf` and load the result."
        )
    root, _ = parse(path)
    report = Report(str(path), ignore, strict)
    description = describe(root, report, mimic, packages)
    return assemble(description, fixed_base, lump_fixed, physical, gravity, packages, meshes, laws)


def describe(
    root: Element, report: Report, mimic: bool, packages: Sequence[str | os.PathLike[str]] = ()
) -> Description:
    """Return the description of a model file; see `load`.

    **Arguments:** `root` element; `report`, to which every element is added.
    """
    if root.tag == "robot":
        description = read_urdf(root, report, mimic)
    elif root.tag == "mujoco":
        description = read_mjcf(root, report, packages)
    elif root.tag == "sdf":
        description = read_sdf(root, report, mimic, packages)
    else:
        raise root.error("is no model: a file starts with <robot>, <sdf> or <mujoco>.")
    return close_loops(description)
