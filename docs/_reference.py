"""Pages of the reference: public names by concept, and a page for each class of some concepts."""

import functools
import gzip
import importlib
import inspect
import json
import pathlib
import posixpath
import re

from _entries import defined, entry
from _joint_motions import JOINTS, frame_of, joint_facts, motion

import rigidjax as rj

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Short examples for classes of these names, and their runs, stored by `docs/gallery/make.py`.
RUNS = ROOT / "docs" / "reference_runs"

# Groups of the reference: modules with their titles, then folders whose names `rj` exports.
MODULES = {
    "solvers": "Solvers",
    "projection": "Projections",
    "identification": "Identification",
    "ensembles": "Ensembles",
    "native": "Native",
    "problems": "Problems",
    "io": "Files",
    "models": "Models",
    "plotting": "Figures",
    "viewer": "Viewer",
}
CONCEPTS = {
    "bodies": "Bodies",
    "rotations": "Rotations",
    "joints": "Joints",
    "forces": "Forces",
    "formulations": "Formulations",
}
# Groups whose classes have separate pages.
OWN_PAGES = ("Rotations", "Joints", "Forces", "Formulations")
# Names that come first on the page of their group; the others follow in alphabetical order, and base
# classes come last.
FIRST = {
    "Bodies": "Body FixedPointBody Frame",
    "Joints": "Revolute Prismatic Cylindrical Planar Screw Universal Spherical Free Weld Distance Coupling",
    "Forces": "Gravity Spring Motor PointForce Torque Bushing Cable",
    "Formulations": "NullSpace Relative Absolute",
    "Simulation": "simulate System State Solution RESULTS view jointed_state consistent_state equilibrium linearize",
    "Rotations": "Quaternion Directors EulerAngles RotationVector",
    "Solvers": "Radau5 BDF EnergyMomentum Variational MuntheKaas GeneralizedAlpha Odex Seulex",
    "Identification": "identify Parameter Measurements Fit read read_case identify_batch",
    "Ensembles": "ensemble Ensemble grid normal uniform sobol",
    "Native": "jit Backend",
    "Models": "load Model save update",
    "Problems": "find compare Problem",
    "Figures": "plot_filmstrip save_animation",
    "Viewer": "view View",
}
# Names that serve the package.
HIDDEN = (
    "Unrolled",
    "unroll_stages",
    "unrolled",
    "dae_term",
    "check_target",
    "replacing",
    "together",
)
# Names of `rigidjax.native` for users; the others serve the package.
NATIVE = ("jit", "Backend", "why_not", "NoRule")
# Classes whose methods users call.
WITH_METHODS = {
    "Body", "FixedPointBody", "Frame", "System", "State", "Solution", "SystemView", "Linearisation",
    "Fit", "Measurements", "Regression", "ConsistentRegression", "JointData", "Trajectory",
    "Ensemble", "Stepper", "Model", "View", "Signal", "Profile", "Posterior",
    "ModelComparison", "Validation", "IntervalTable",
}  # fmt: skip
# Methods of models, by topic. `NullSpace` and `Relative` have all of them.
METHODS = {
    "Dynamics": "mass_matrix bias_forces forward_dynamics inverse_dynamics accelerations reactions "
    "multipliers apply_impulse",
    "Kinematics": "forward_kinematics jacobian jacobian_rate joint_coordinates centre_of_mass",
    "Energy and momentum": "energy kinetic_energy potential_energy momentum centroidal_momentum",
    "States and unknowns": "encode decode project drift vector_field",
}


def on_config(config):
    """Add pages of single classes to the menu, below their concept."""
    entries = next(entry["Reference"] for entry in config["nav"] if "Reference" in entry)
    for title in OWN_PAGES:
        page = f"reference/{title.lower()}.md"
        names = ordered(title, classes(title))
        pages = [page_of(title), *(page_of(title, name) for name in names)]
        entries[entries.index(page)] = {title: pages}
    return config


def on_files(files, config):
    """Add the pages."""
    from mkdocs.structure.files import File  # tests of the pages do without MkDocs

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for title in OWN_PAGES:
        for name in classes(title):
            page = page_of(title, name).replace(".md", "-view.html")
            if title == "Joints" and name in JOINTS:
                files.append(File.generated(config, page, content=motion(name).page))
            elif (RUNS / f"{name}.py").exists():
                scene = json.loads(gzip.decompress((RUNS / f"{name}.json.gz").read_bytes()))
                view = rj.viewer.View({**scene, "title": name})
                files.append(File.generated(config, page, content=view.page))
    return files


def on_page_content(content, page, config, files):
    """Link the classes of the package in signatures to their entries."""

    def link(found):
        target = class_targets().get(found[1])
        if target is None:
            return found[0]
        return f'<a href="{posixpath.relpath(target, posixpath.dirname(page.url))}">{found[0]}</a>'

    def link_all(found):
        return re.sub(r'(?<!<span class="o">\.</span>)<span class="n">(\w+)</span>', link, found[0])

    return re.sub(r'<div class="signature.*?</div>', link_all, content, flags=re.DOTALL)


@functools.cache
def class_targets():
    """Return the addresses of the entries of all classes by their names in annotations."""
    return {
        thing.__name__: f"{page_of(title, name)[:-3]}.html#{defined(thing)}"
        for title, names in reference().items()
        for name, (_, thing) in names.items()
        if inspect.isclass(thing)
    }


def pages():
    """Return the pages in Markdown by path."""
    made = {"reference.md": index(), "reference/methods.md": methods_page()}
    for title in reference():
        made[page_of(title)] = group_page(title)
        if title in OWN_PAGES:
            for name in classes(title):
                made[page_of(title, name)] = class_page(title, name)
    return made


@functools.cache
def reference():
    """Return classes and functions by group, each once, with the calls that users write."""
    groups = {title: {} for title in (*CONCEPTS.values(), "Simulation", *MODULES.values())}
    for module, title in MODULES.items():
        for name, thing in public(importlib.import_module(f"rigidjax.{module}")):
            groups[title][name] = (f"rj.{module}.{name}", thing)
    groups["Native"] = {name: (f"rj.native.{name}", getattr(rj.native, name)) for name in NATIVE}
    by_definition = {
        defined(thing): (title, name)
        for title, names in groups.items()
        for name, (_, thing) in names.items()
    }
    for name in dir(rj):
        thing = getattr(rj, name)
        if name.startswith("_") or not hasattr(thing, "__qualname__"):
            continue
        if defined(thing) in by_definition:
            title, other = by_definition[defined(thing)]
            del groups[title][other]
        else:
            titles = {**CONCEPTS, "cli": "Identification"}  # case files
            title = titles.get(defined(thing).split(".")[1], "Simulation")
        groups[title][name] = (f"rj.{name}", thing)
    return groups


def public(module):
    """Yield the names of a module that are classes and functions of the package."""
    for name in dir(module):
        thing = getattr(module, name)
        is_ours = getattr(thing, "__module__", "").startswith("rigidjax")
        hidden = name.startswith("_") or name in HIDDEN
        if not hidden and is_ours and hasattr(thing, "__qualname__"):
            yield name, thing


def ordered(title, names):
    """Return names by importance."""
    first = FIRST.get(title, "").split()
    rank = {name: k for k, name in enumerate(first)}

    def key(name):
        return name.startswith("Abstract"), rank.get(name, len(first)), name

    return sorted(names, key=key)


@functools.cache
def classes(title):
    """Return the classes of a group that have separate pages, by name."""
    return {name: x for name, (_, x) in reference()[title].items() if inspect.isclass(x)}


def page_of(title, name=None):
    """Return the path of the page of a group, or of a name in it."""
    if title not in OWN_PAGES:
        return f"reference/{title.lower()}.md"
    if name is None or name not in classes(title):
        return f"reference/{title.lower()}/index.md"
    return f"reference/{title.lower()}/{name}.md"


def index():
    """Return the page with all names."""
    lines = ["# API reference", "", "All public names by concept, the most used ones first.", ""]
    lines += [
        "**[Methods of models](reference/methods.md)**: mass matrix, Jacobians, reactions, energy.",
        "",
    ]
    for title, names in reference().items():
        links = ", ".join(
            f"[`{name}`]({page_of(title, name)}#{defined(names[name][1])})"
            for name in ordered(title, names)
        )
        lines += [f"**[{title}]({page_of(title)})**: {links}", ""]
    return "\n".join(lines)


def group_page(title):
    """Return a table of the classes of a concept, and all other names in full."""
    names, alone = reference()[title], classes(title) if title in OWN_PAGES else {}
    up = "../../" if title in OWN_PAGES else "../"
    lines = [f"# {title}", ""]
    if alone:
        lines += ["| | |", "|---|---|"]
        lines += [
            f"| [`{name}`]({name}.md) | {first_sentence(alone[name])} |"
            for name in ordered(title, alone)
        ]
        lines += [""]
    for name in ordered(title, names):
        if name not in alone:
            lines += [entry(*names[name], 2, up), *methods_of(names[name], up)]
    return "\n".join(lines)


def methods_of(named, up):
    """Return entries of the methods of a class that users call."""
    call, thing = named
    if not inspect.isclass(thing) or thing.__name__ not in WITH_METHODS:
        return []
    lines = []
    for name in dir(thing):
        method = inspect.getattr_static(thing, name)
        documented = name[0] != "_" and (inspect.getdoc(getattr(thing, name)) or "").strip()
        if not documented or name in getattr(thing, "__annotations__", {}):
            continue
        if isinstance(method, property):
            text = first_sentence(getattr(thing, name))
            lines += [f"### {thing.__name__}.{name} {{#{defined(thing)}.{name}}}", "", text, ""]
        elif callable(getattr(thing, name)) and not inspect.isclass(method):
            is_constructor = isinstance(method, classmethod | staticmethod)
            variable = f"{call if is_constructor else thing.__name__.lower()}.{name}"
            heading = f"{thing.__name__}.{name}"
            lines += [entry(variable, getattr(thing, name), 3, up, heading), ""]
    return lines


def methods_page():
    """Return the page of the methods of models."""
    lines = [
        "# Methods of models",
        "",
        "`model` is `rj.NullSpace(system)` or `rj.Relative(system)`, which have all of these methods; `rj.Absolute` has those of energy, "
        "momentum, reactions, states and unknowns. `y` are the unknowns at the time `t`: `model.encode(state)`, or a row of `sol.ys`. "
        "Rates, forces and matrices are in the order of [`rj.rate_labels(system)`](simulation.md). "
        "All methods have derivatives and work under `jax.vmap`.",
        "",
    ]
    for topic, names in METHODS.items():
        lines += [f"## {topic}", ""]
        lines += [
            entry(f"model.{name}", getattr(rj.Relative, name), 3, "../") for name in names.split()
        ]
    return "\n".join(lines)


def first_sentence(thing):
    text = " ".join(inspect.cleandoc(thing.__doc__).split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", text)[0].replace("|", r"\|")


def class_page(title, name):
    """Return the entry of a class, computed facts, and links to examples."""
    call, thing = reference()[title][name]
    parts = [f"# {name}", ""]
    if title == "Joints" and name in JOINTS:
        parts += joint_facts(name)
    if title == "Formulations":
        parts += [
            "[Concepts](../../concepts.md) derives the equations, [supported combinations](../../support.md) lists the "
            "solvers, and [methods of models](../methods.md) what a model computes.",
            "",
        ]
    run = []
    if (RUNS / f"{name}.py").exists():
        _, text, code = (RUNS / f"{name}.py").read_text("utf-8").split('"""', 2)
        parts += [frame_of(name, text), "", f"{text} The code is [below](#the-view-above).", ""]
        run = ["## The view above", "", f"```python\n{code.strip()}\n```", ""]
    parts += [entry(call, thing, 2, "../../"), *run]
    used = [
        path
        for path in sorted((ROOT / "docs" / "gallery").glob("*.py"))
        if f"rj.{name}(" in path.read_text("utf-8")
    ]
    if used:
        links = ", ".join(
            f"[{path.stem.replace('_', ' ')}](../../gallery/{path.stem}.md)"
            for path in used
            if path.stem not in ("make", "clips")
        )
        parts += [f"In the [gallery](../../gallery.md): {links}.", ""]
    return "\n".join(parts)
