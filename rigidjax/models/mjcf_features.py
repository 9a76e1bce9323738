"""Account of elements of an MJCF file besides bodies, joints, sites, actuators, equalities."""

import numpy as np

from .mjcf_compiled import CompiledModel
from .mjcf_loops import is_active
from .report import Report

# Sizes of a model that count elements without effect on the motion of rigid bodies.
_WITHOUT_MEANING = {
    "ngeom": ("<geom>", "geoms: shapes; contacts are not simulated"),
    "npair": ("<pair>", "pairs of geoms; contacts are not simulated"),
    "nexclude": ("<exclude>", "excluded pairs of bodies; contacts are not simulated"),
    "nhfield": ("<hfield>", "height fields; contacts are not simulated"),
    "nmesh": ("<mesh>", "meshes, of geoms"),
    "nskin": ("<skin>", "skins"),
    "ncam": ("<camera>", "cameras"),
    "nlight": ("<light>", "lights"),
    "ntex": ("<texture>", "textures"),
    "nmat": ("<material>", "materials"),
    "nsensor": ("<sensor>", "sensors"),
    "nkey": ("<key>", "keyframes; `Model.from_mujoco` takes their coordinates"),
    "nnumeric": ("<numeric>", "numbers of a user"),
    "ntext": ("<text>", "texts of a user"),
    "ntuple": ("<tuple>", "tuples of a user"),
}
_TENDON_FORCES = ("stiffness", "damping", "armature", "frictionloss", "stiffnesspoly",
                  "dampingpoly", "springyield")  # fmt: skip


def account_for_rest(compiled: CompiledModel, report: Report) -> None:
    """Report elements without meaning here and refuse unsupported ones."""
    model = compiled.model
    integrator = compiled.word("mjtIntegrator", model.opt.integrator)
    report.add(
        "no meaning", "<option>",
        f"time step {model.opt.timestep:g} s, integrator {integrator}, solver of contacts",
    )  # fmt: skip
    for field, (subject, text) in _WITHOUT_MEANING.items():
        count = getattr(model, field)
        if count:
            report.add("no meaning", subject, f"{count} {text}")
    if model.opt.density or model.opt.viscosity:
        report.refuse(
            "fluid", "<option>",
            f"forces of a medium of density {model.opt.density:g} kg/m^3 and viscosity "
            f"{model.opt.viscosity:g} Pa s are not supported",
            compiled.line("density", "option") or compiled.line("viscosity", "option"),
        )  # fmt: skip
    elif np.any(model.opt.wind):
        report.add("no meaning", "<option>", "wind without a medium")
    if model.nflex:
        report.refuse("flex", "<flex>", f"{model.nflex} deformable bodies are not supported")
    if model.nplugin:
        report.refuse("plugin", "<plugin>", f"{model.nplugin} plugins are not supported")
    _account_for_bodies(compiled, report)
    _account_for_sleep(compiled, report)
    _account_for_tendons(compiled, report)


def _account_for_bodies(compiled: CompiledModel, report: Report) -> None:
    """Refuse compensation of gravity, and mocap bodies that guide others."""
    model = compiled.model
    guides = _bodies_of_equalities(compiled) | {
        int(model.body_rootid[b]) for b in range(model.nbody) if model.body_dofnum[b]
    }
    for b in range(1, model.nbody):
        name = compiled.bodies[b]
        subject, line = f"body {name!r}", compiled.line(name, "body")
        if model.body_gravcomp[b]:
            text = "compensation of gravity is not supported"
            report.refuse("gravcomp", subject, text, line)
        if model.body_mocapid[b] >= 0:
            if b in guides:
                text = "a mocap body that guides other bodies is not supported"
                report.refuse("mocap", subject, text, line)
            else:
                text = "mocap body, fixed to the ground; nothing is attached to it"
                report.add("translated", subject, text, line)


def _account_for_sleep(compiled: CompiledModel, report: Report) -> None:
    """Refuse bodies that stay where they are until something wakes them."""
    model = compiled.model
    flag = getattr(compiled.mujoco.mjtEnableBit, "mjENBL_SLEEP", 0)  # not in MuJoCo 3.3
    for tree in range(model.ntree) if model.opt.enableflags & flag else ():
        if compiled.word("mjtSleepPolicy", model.tree_sleep_policy[tree]) == "init":
            name = compiled.bodies[model.tree_bodyadr[tree]]
            text = "a body that starts asleep is not supported"
            report.refuse("sleep", f"body {name!r}", text, compiled.line(name, "body"))


def _bodies_of_equalities(compiled: CompiledModel) -> set[int]:
    """Return the bodies that active equalities connect."""
    model = compiled.model
    result: set[int] = set()
    for e in range(model.neq):
        kind = compiled.word("mjtObj", model.eq_objtype[e])
        if is_active(compiled, e) and kind in ("body", "site"):
            ids = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
            result |= {int(model.site_bodyid[k]) for k in ids} if kind == "site" else set(ids)
    return result


def _account_for_tendons(compiled: CompiledModel, report: Report) -> None:
    """Refuse tendons that exert forces of their own."""
    model = compiled.model
    for k in range(model.ntendon):
        given = compiled.name("tendon", k)
        subject = f"tendon {given or k!r}"
        line = compiled.line_in_section("tendon", k) or compiled.line(given, "fixed", "spatial")
        forces = [
            what for what in _TENDON_FORCES
            if np.any(compiled.parameters(f"tendon_{what}", 0.0, k))
        ]  # fmt: skip
        added = int(compiled.parameters("tendon_actuatorid", -1, k))
        if added >= 0:
            forces += [
                f"{what} of its actuator" for what in ("armature", "damping")
                if np.any(compiled.parameters(f"actuator_{what}", 0.0, added))
            ]  # fmt: skip
        for what in forces:
            report.refuse("tendon", subject, f"the {what} of a tendon is not supported", line)
        if model.tendon_limited[k]:
            report.add("warning", subject, "the limits of its length are left out", line)
        if not forces:
            report.add("no meaning", subject, "exerts no force of its own", line)
