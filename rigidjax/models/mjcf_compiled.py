"""Models that MuJoCo has compiled from an MJCF file."""

import re
from typing import Any

import numpy as np

from ..extras import import_optional
from .description import Placement, from_quaternion, make_unique
from .xml_source import Element

# Arrays of a model whose entries are finite, and of limits, which may be infinite.
_FINITE = (
    "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia",
    "body_gravcomp", "jnt_pos", "jnt_axis", "jnt_stiffness", "qpos0", "qpos_spring", "dof_damping",
    "dof_armature", "dof_frictionloss", "eq_data", "site_pos", "site_quat", "wrap_prm",
    "actuator_gear", "actuator_gainprm", "actuator_biasprm", "actuator_armature",
    "actuator_damping",
)  # fmt: skip
_RANGES = ("jnt_range", "jnt_actfrcrange", "actuator_ctrlrange", "actuator_forcerange")


class CompiledModel:
    """An MJCF file, compiled by MuJoCo.

    **Attributes:** `mujoco`, the module; `model`, its `MjModel`; `bodies`, a name for each body,
    in the order of the model; `path` of the file.

    **Errors:** `ModuleNotFoundError` without MuJoCo; `ValueError` for a file that it cannot
    compile.
    """

    def __init__(self, root: Element):
        self.mujoco = import_optional("mujoco", "MJCF files")
        self.path = root.path
        try:
            self.model = self.mujoco.MjModel.from_xml_path(root.path)
        except (ValueError, RuntimeError, MemoryError, self.mujoco.FatalError) as error:
            text = " ".join(str(error).split())
            raise ValueError(f"{root.path}: MuJoCo cannot compile the file: {text}") from None
        self._check_numbers(root)
        self._lines: dict[tuple[str, str], int] = {}
        for element in root.walk():
            given = element.attributes.get("name", "")
            # Options have no name; an attribute tells them apart.
            for name in element.attributes if element.tag == "option" else [given]:
                self._lines.setdefault((element.tag, name), element.line)
        counts = {
            "equality": self.model.neq, "tendon": self.model.ntendon,
            "actuator": len(self.model.actuator_trntype),
        }  # fmt: skip
        lines = {s: [e.line for section in root.all(s) for e in section.children] for s in counts}
        # Elements of included files are part of the model, but not of this file.
        self._lines_of_sections = {s: of for s, of in lines.items() if len(of) == counts[s]}
        given = [self.name("body", b) for b in range(self.model.nbody)]
        taken = {name for name in given if name}
        self.bodies = [name or make_unique(f"body {b}", taken) for b, name in enumerate(given)]

    def _check_numbers(self, root: Element) -> None:
        """Raise `ValueError` for numbers that are not finite, which MuJoCo accepts."""
        fields = [getattr(self.model, name) for name in _FINITE if hasattr(self.model, name)]
        ranges = [getattr(self.model, name) for name in _RANGES]
        infinite = any(
            not np.isfinite(values).all() for values in (*fields, self.model.opt.gravity)
        )
        if not infinite and not any(np.isnan(values).any() for values in ranges):
            return
        for element in root.walk():
            for name, text in element.attributes.items():
                if re.search(r"(?i)(?<!\S)[+-]?(nan|inf|infinity)(?!\S)", text):
                    raise element.error(f"`{name}` must be finite numbers; got {text[:60]!r}.")
        raise ValueError(f"{self.path}: the file contains numbers that are not finite.")

    def name(self, kind: str, index: int) -> str | None:
        """Return the name in the file of an element of a kind, such as `"body"`."""
        of_kind = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        return self.mujoco.mj_id2name(self.model, of_kind, index) or None

    def line(self, name: str | None, *tags: str) -> int:
        """Return the line of an element; 0 without a name, or in an included file."""
        lines = (self._lines.get((tag, name), 0) for tag in tags if name)
        return next(filter(None, lines), 0)

    def line_in_section(self, section: str, index: int) -> int:
        """Return the line of an element of `equality`, `tendon` or `actuator`, 0 if not known."""
        lines = self._lines_of_sections.get(section)
        return 0 if lines is None else lines[index]

    def parameters(self, field: str, default: float, index: int) -> Any:
        """Return an entry of an array of the model; `default` if this MuJoCo does not have it."""
        values = getattr(self.model, field, None)
        return default if values is None or len(values) == 0 else values[index]

    def disables(self, what: str) -> bool:
        """Return whether the file has a flag that disables something, such as `"GRAVITY"`."""
        bits = self.mujoco.mjtDisableBit
        # MuJoCo before 3.3.6 has one flag for springs and dampers.
        flags = getattr(bits, f"mjDSBL_{what}", None) or bits.mjDSBL_PASSIVE
        if what in ("EQUALITY", "FRICTIONLOSS", "LIMIT"):
            flags |= bits.mjDSBL_CONSTRAINT  # the solver of all constraints
        return bool(self.model.opt.disableflags & flags)

    def disables_actuator(self, actuator: int) -> bool:
        """Return whether a flag, or the group of an actuator, switches its force off."""
        group = int(self.model.actuator_group[actuator])
        # Higher groups cannot be disabled.
        is_off = 0 <= group <= 30 and self.model.opt.disableactuator >> group & 1
        return bool(is_off) or self.disables("ACTUATION")

    def placement(self, data: Any, body: int) -> Placement:
        """Return the placement in space of a body in the configuration of an `MjData`."""
        return from_quaternion(data.xpos[body], data.xquat[body])

    def site_placement(self, data: Any, site: int) -> Placement:
        """Return the placement in space of a site in the configuration of an `MjData`."""
        on_body = from_quaternion(self.model.site_pos[site], self.model.site_quat[site])
        return self.placement(data, self.model.site_bodyid[site]).then(on_body)

    def first_output(self, actuator: int) -> int:
        """Return the row of an actuator in arrays of outputs."""
        return int(self.parameters("actuator_outadr", actuator, actuator))

    def word(self, enum: str, value: int) -> str:
        """Return the name of a value of an enumeration of MuJoCo, such as `"joint"`."""
        return getattr(self.mujoco, enum)(value).name.split("_", 1)[-1].lower()
