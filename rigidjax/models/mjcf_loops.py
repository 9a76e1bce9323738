"""Closed loops and couplings of a compiled MJCF file, from its equality constraints."""

from typing import Any, NamedTuple

import numpy as np

from .description import CouplingData, Description, JointKind, JointRecord
from .mjcf_compiled import CompiledModel, make_unique
from .report import Report

# Violation of an equality, relative to the size of the model, that counts as rounding.
_CLOSED = 1e-12
_MOST_STEPS = 100
_SOFT = "rigid here; its `solref` and `solimp` have no meaning"


def find_closed_configuration(compiled: CompiledModel, report: Report) -> Any:
    """Return an `MjData` in MuJoCo's `qpos0`, or a configuration near it that closes all loops.

    Ball joints keep their rotation, which is the zero of their coordinates. The configuration is
    found by Newton steps of least norm in MuJoCo's velocities.

    **Errors:** `ValueError` if no configuration is found.
    """
    mujoco, model = compiled.mujoco, compiled.model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    if not any(_is_active(compiled, e) for e in range(model.neq)):
        return data
    # Sparse Jacobians have another layout; flags must not remove the equalities.
    kept = model.opt.disableflags, model.opt.jacobian
    flags = mujoco.mjtDisableBit
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.disableflags = (
        flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT | flags.mjDSBL_FRICTIONLOSS | flags.mjDSBL_ISLAND
    )
    held = [
        dof for dof in range(model.nv)
        if compiled.word("mjtJoint", model.jnt_type[model.dof_jntid[dof]]) == "ball"
    ]  # fmt: skip
    size = max(float(model.stat.extent), 1e-3)
    steps = 0
    while True:
        mujoco.mj_fwdPosition(model, data)
        violation = data.efc_pos.copy()
        largest = float(np.abs(violation).max(initial=0.0))
        if largest <= _CLOSED * size:
            break
        if steps == _MOST_STEPS:
            raise ValueError(
                f"{compiled.path}: no configuration is found that satisfies all equalities; the "
                f"largest violation is {largest:.3g} after {steps} steps from `qpos0`. Correct "
                'the file, or make an equality inactive (active="false").'
            )
        steps += 1
        jacobian = np.array(data.efc_J).reshape(len(violation), model.nv)
        jacobian[:, held] = 0.0
        change = np.linalg.lstsq(jacobian, -violation, rcond=1e-9)[0]
        # Angles change by less than half a radian in a step.
        change *= min(1.0, 0.5 / max(float(np.abs(change).max()), 1e-300))
        mujoco.mj_integratePos(model, data.qpos, change, 1.0)
    model.opt.disableflags, model.opt.jacobian = kept
    if steps:
        moved = float(np.abs(data.qpos - model.qpos0).max())
        report.add(
            "translated", "<equality>",
            f"violated in `qpos0`: the reference configuration is one close to it that satisfies "
            f"all equalities; coordinates differ by {moved:.3g} at most",
        )  # fmt: skip
    return data


def _is_active(compiled: CompiledModel, e: int) -> bool:
    """Return whether an equality holds, as far as the file decides it."""
    disabled = compiled.disables("EQUALITY") or compiled.disables("CONSTRAINT")
    return bool(compiled.model.eq_active0[e]) and not disabled


def add_equalities(
    compiled: CompiledModel, data: Any, joints: list[JointRecord], description: Description
) -> None:
    """Add the equalities as joints that close loops, and as couplings.

    **Arguments:** `data`, in the reference configuration; `joints` of the file.
    """
    model, report = compiled.model, description.report
    taken = {joint.name for joint in description.joints}
    for e in range(model.neq):
        kind = compiled.word("mjtEq", model.eq_type[e])
        given = compiled.name("equality", e)
        equality = _Equality(
            e, kind, make_unique(given or f"{kind} {e}", taken), compiled.line(given, kind)
        )
        subject = f"{kind} {equality.name!r}"
        if not _is_active(compiled, e):
            report.add("no meaning", subject, "is not active", equality.line)
        elif kind in ("connect", "weld"):
            _add_loop(compiled, data, equality, description)
        elif kind in ("joint", "tendon"):
            _add_coupling(compiled, joints, equality, description)
        else:
            report.refuse(
                f"equality {kind}", subject, f"an equality {kind} is not supported", equality.line
            )


class _Equality(NamedTuple):
    row: int
    kind: str
    name: str
    line: int

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.name!r}"


def _add_loop(
    compiled: CompiledModel, data: Any, equality: _Equality, description: Description
) -> None:
    """Add a `connect` or `weld` as a joint that closes a loop."""
    model, report, e = compiled.model, description.report, equality.row
    ends = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
    values = model.eq_data[e]
    if compiled.word("mjtObj", model.eq_objtype[e]) == "site":
        point = compiled.site_placement(data, ends[0]).position
        ends = [int(model.site_bodyid[site]) for site in ends]
    else:
        # The anchor on the second body comes first in a weld.
        anchor = values[:3] if equality.kind == "connect" else values[3:6]
        point = compiled.placement(data, ends[0]).of_point(np.array(anchor))
    parent, child = (compiled.bodies[b] for b in ends)
    if model.body_weldid[ends[0]] == model.body_weldid[ends[1]]:
        text = f"connects {parent!r} and {child!r}, which are fixed to each other"
        report.add("no meaning", equality.subject, text, equality.line)
        return
    if ends[1] == 0:
        parent, child = child, parent
    kind: JointKind = "fixed"
    if equality.kind == "connect" or values[10] == 0:
        # A weld with `torquescale` zero leaves rotations free.
        kind = "spherical"
    description.joints.append(
        JointRecord(equality.name, kind, parent, child, point, closes_loop=True, line=equality.line)
    )
    text = f"{kind} joint between {parent!r} and {child!r}, {_SOFT}"
    report.add("translated", equality.subject, text, equality.line)


def _add_coupling(
    compiled: CompiledModel,
    joints: list[JointRecord],
    equality: _Equality,
    description: Description,
) -> None:
    """Add an equality of joints or tendons as a coupling of two joints, or a joint that is held."""
    model, report, e = compiled.model, description.report, equality.row
    values = model.eq_data[e]
    first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    if np.any(values[2:5]) and second >= 0:
        report.refuse(
            "polynomial equality", equality.subject,
            f"`polycoef` {' '.join(f'{value:g}' for value in values[:5])} is not linear",
            equality.line,
        )  # fmt: skip
        return
    # In the coordinates of the system the sum of coefficients times coordinates is zero.
    coefficients: dict[int, float] = {}
    for object_id, factor in ((first, 1.0), (second, -float(values[1]))):
        for j, own in _coefficients(compiled, equality.kind, object_id).items():
            coefficients[j] = coefficients.get(j, 0.0) + factor * own
    terms = [(joints[j], value) for j, value in coefficients.items() if value]
    if len(terms) == 1:
        ((held, _),) = terms
        description.joints.append(
            JointRecord(
                equality.name, "fixed", held.parent, held.child, held.point, closes_loop=True,
                line=equality.line,
            )
        )  # fmt: skip
        text = f"the joint {held.name!r} is held at {held.zero:g}"
    elif len(terms) == 2:
        (joint, own), (by, other) = terms
        coupling = CouplingData(joint.name, by.name, -other / own, equality.name, equality.line)
        description.couplings.append(coupling)
        text = f"`Coupling` of {joint.name!r} with {coupling.ratio:g} times {by.name!r}"
    else:
        report.refuse(
            "equality of several joints", equality.subject,
            f"an equality of {len(terms)} joints is not supported; two can be coupled",
            equality.line,
        )  # fmt: skip
        return
    report.add("translated", equality.subject, f"{text}, {_SOFT}", equality.line)


def _coefficients(compiled: CompiledModel, kind: str, index: int) -> dict[int, float]:
    """Return the joints of a joint or fixed tendon with their coefficients."""
    model = compiled.model
    if index < 0:
        return {}
    if kind == "joint":
        return {index: 1.0}
    result: dict[int, float] = {}
    first = int(model.tendon_adr[index])
    for k in range(first, first + int(model.tendon_num[index])):
        if compiled.word("mjtWrap", model.wrap_type[k]) != "joint":
            return {}
        j = int(model.wrap_objid[k])
        result[j] = result.get(j, 0.0) + float(model.wrap_prm[k])
    return result
