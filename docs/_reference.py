"""Pages of the reference: every public name by concept, and a page for each class of some
concepts.
"""

import functools
import gzip
import html
import importlib
import inspect
import json
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
from mkdocs.structure.files import File
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.joints.relative_pose import RelativePose

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
# Constraints of each joint on the displacement d and the rotation Q, and a motion: arguments, and d and the
# rotation vector of Q for two angles.
JOINTS = {
    "Revolute": (
        r"d = 0,\quad Q_{13} = Q_{23} = 0",
        {"axis": (0, 0, 1)},
        lambda a, b: ((0, 0, 0), (0, 0, a)),
    ),
    "Prismatic": (
        r"d_1 = d_2 = 0,\quad Q_{32} - Q_{23} = Q_{13} - Q_{31} = Q_{21} - Q_{12} = 0",
        {"axis": (0, 0, 1)},
        lambda a, b: ((0, 0, 0.3 * a), (0, 0, 0)),
    ),
    "Cylindrical": (
        r"d_1 = d_2 = 0,\quad Q_{13} = Q_{23} = 0",
        {"axis": (0, 0, 1)},
        lambda a, b: ((0, 0, 0.3 * b), (0, 0, a)),
    ),
    "Planar": (
        r"d_3 = 0,\quad Q_{13} = Q_{23} = 0",
        {"normal": (0, 0, 1)},
        lambda a, b: ((0.3 * a, 0.3 * b, 0), (0, 0, b)),
    ),
    "Screw": (
        r"d_1 = d_2 = 0,\quad Q_{13} = Q_{23} = 0,\quad d_3 = \frac{h}{2\pi}\,\varphi",
        {"axis": (0, 0, 1), "pitch": 0.5},
        lambda a, b: ((0, 0, 0.5 * a / (2 * np.pi)), (0, 0, a)),
    ),
    "Universal": (
        r"d = 0,\quad Q_{12} = 0",
        {"axis1": (1, 0, 0), "axis2": (0, 1, 0)},
        lambda a, b: ((0, 0, 0), (a, b, 0)),
    ),
    "Spherical": (r"d = 0", {}, lambda a, b: ((0, 0, 0), (0.5 * b, 0.8 * a, 0.6 * a))),
    "Weld": (
        r"d = 0,\quad Q_{32} - Q_{23} = Q_{13} - Q_{31} = Q_{21} - Q_{12} = 0",
        {},
        lambda a, b: ((0, 0, 0), (0, 0, 0)),
    ),
    "Distance": (
        r"\frac12 \left(\frac{d \cdot d}{l} - l\right) = 0",
        None,
        lambda a, b: (
            (0.6 * np.cos(a), 0.6 * np.sin(a) * np.cos(b), 0.6 * np.sin(a) * np.sin(b)),
            (0, 0.5 * b, 0.5 * a),
        ),
    ),
}


def on_config(config):
    """Add pages of single classes to the menu, below their concept."""
    entries = next(entry["API"] for entry in config["nav"] if "API" in entry)
    for title in OWN_PAGES:
        page = f"reference/{title.lower()}.md"
        names = sorted(classes(title))
        entries[entries.index(page)] = {title: [page, *(own_page(title, name) for name in names)]}
    return config


def on_files(files, config):
    """Add the pages."""

    def add(path, text):
        files.append(File.generated(config, path, content=text))

    add("reference.md", index())
    for title, names in reference().items():
        alone = classes(title) if title in OWN_PAGES else {}
        add(f"reference/{title.lower()}.md", group_page(title, names, alone))
        for name in alone:
            add(own_page(title, name), class_page(title, name))
            if title == "Joints" and name in JOINTS:
                add(f"reference/joints/{name}-view.html", motion(name).page)
            elif (RUNS / f"{name}.py").exists():
                page = own_page(title, name).replace(".md", "-view.html")
                scene = json.loads(gzip.decompress((RUNS / f"{name}.json.gz").read_bytes()))
                add(page, rj.viewer.View({**scene, "title": name}).page)
    return files


@functools.cache
def reference():
    """Return public names by group, with the full names of their definitions, each once."""
    groups = {title: {} for title in (*CONCEPTS.values(), "Simulation", *MODULES.values())}
    for module, title in MODULES.items():
        for name, thing in public(importlib.import_module(f"rigidjax.{module}")):
            groups[title][name] = defined(thing)
    known = {path for names in groups.values() for path in names.values()}
    for name in dir(rj):
        thing = getattr(rj, name)
        if name.startswith("_") or not hasattr(thing, "__qualname__") or defined(thing) in known:
            continue
        title = CONCEPTS.get(defined(thing).split(".")[1], "Simulation")
        groups[title][name] = defined(thing)
    return groups


def public(module):
    for name in dir(module):
        thing = getattr(module, name)
        is_ours = getattr(thing, "__module__", "").startswith("rigidjax")
        if not name.startswith("_") and is_ours and hasattr(thing, "__qualname__"):
            yield name, thing


def defined(thing):
    return f"{thing.__module__}.{thing.__qualname__}"


@functools.cache
def classes(title):
    """Return the public classes of a group, by name."""
    names = reference()[title]
    return {name: getattr(rj, name) for name in names if inspect.isclass(getattr(rj, name, None))}


def own_page(title, name):
    return f"reference/{title.lower()}/{name}.md"


def page_of(title, name):
    return (
        own_page(title, name)
        if title in OWN_PAGES and name in classes(title)
        else f"reference/{title.lower()}.md"
    )


def index():
    lines = ["# Reference", "", "Every public name, by concept.", ""]
    for title, names in reference().items():
        links = ", ".join(
            f"[`{name}`]({page_of(title, name)}#{path})" for name, path in sorted(names.items())
        )
        lines += [f"**[{title}](reference/{title.lower()}.md)**: {links}", ""]
    return "\n".join(lines)


def group_page(title, names, alone):
    """Return a table of the classes of a concept, and all other names in full."""
    lines = [f"# {title}", ""]
    if alone:
        lines += ["| | |", "|---|---|"]
        lines += [
            f"| [`{name}`]({title.lower()}/{name}.md) | {first_sentence(alone[name])} |"
            for name in sorted(alone)
        ]
        lines += [""]
    lines += [f"::: {path}\n" for name, path in sorted(names.items()) if name not in alone]
    return "\n".join(lines)


def first_sentence(thing):
    text = " ".join(inspect.cleandoc(thing.__doc__).split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", text)[0].replace("|", r"\|")


def class_page(title, name):
    """Return the docstring of a class, computed facts, and links to examples."""
    parts = [f"# {name}", ""]
    if title == "Joints" and name in JOINTS:
        parts += joint_facts(name)
    if title == "Formulations":
        parts += [
            "[Concepts](../../concepts.md) derives the equations; [what runs with what](../../support.md) has the solvers.",
            "",
        ]
    if (RUNS / f"{name}.py").exists():
        _, text, code = (RUNS / f"{name}.py").read_text("utf-8").split('"""', 2)
        parts += [frame_of(name, text), "", f"{text} The code is [below](#example).", ""]
        example = ["## Example", "", f"```python\n{code.strip()}\n```", ""]
    else:
        example = []
    parts += [f"::: {defined(getattr(rj, name))}", "", *example]
    used = [
        path
        for path in sorted((ROOT / "docs" / "gallery").glob("*.py"))
        if f"rj.{name}(" in path.read_text("utf-8")
    ]
    if used:
        links = ", ".join(
            f"[{path.stem.replace('_', ' ')}](../../gallery/{path.stem}.md)"
            for path in used
            if path.stem != "make"
        )
        parts += [f"In the [gallery](../../gallery.md): {links}.", ""]
    return "\n".join(parts)


def frame_of(name, text):
    return (
        f'<iframe src="{name}-view.html" title="{html.escape(text)}" loading="lazy" '
        'style="width: 100%; height: 22rem; border: 0; border-radius: 8px"></iframe>'
    )


def joint_facts(name):
    """Return constraints, rates and coordinates of a joint, and a motion."""
    joint = motion_of(name)[0].joints[0]
    loops = "none of a tree: it closes a loop" if joint.closes_loops_only else str(joint.num_rates)
    return [
        frame_of(name, f"A body on the joint {name}"),
        "",
        "| constraints | rates |",
        "|---:|---:|",
        f"| {joint.num_constraints} | {loops} |",
        "",
        "With the displacement $d$ and the rotation $Q$ of the child's joint frame, in components of the parent's "
        "([systems](../../systems.md#joints)):",
        "",
        f"$${JOINTS[name][0]}$$",
        "",
    ]


@functools.cache
def motion_of(name):
    """Return a system of one body on the joint, admissible states, and their times."""
    arguments = JOINTS[name][1]
    offset = np.array([0.35, 0.0, 0.0])
    if name == "Distance":
        joint, corner = (
            rj.Distance("ground", "body", (0, 0, 0), (0.6, 0, 0)),
            np.array([0.6, 0.0, 0.0]),
        )
    else:
        joint, corner = (
            getattr(rj, name)("ground", "body", point=(0, 0, 0), **arguments),
            np.zeros(3),
        )
    system = rj.System(
        rj.Body.box("body", (0.5, 0.2, 0.1), mass=1.0, position=corner + offset), joint
    )
    ts = np.linspace(0.0, 8.0, 161)
    d, Q = relative_poses(name, ts)
    matrices = jnp.asarray(Q.as_matrix())
    gap = jax.vmap(lambda d, Q: joint.constraint(RelativePose(d, Q, 0.0), 0.0))(
        jnp.asarray(d), matrices
    )
    if not np.all(np.abs(gap) < 1e-5):
        raise ValueError(
            f"The motion on the page of `{name}` violates its constraints by {np.abs(gap).max()}."
        )
    frame = np.asarray(joint.frame(), float)
    turns = frame @ Q.as_matrix() @ frame.T
    positions = (d @ frame.T + turns @ offset)[:, None]
    orientations = Rotation.from_matrix(turns).as_quat(scalar_first=True)[:, None]
    before, after = (relative_poses(name, ts + h)[1] for h in (-1e-5, 1e-5))
    rates = ((before.inv() * after).as_rotvec() / 2e-5 @ frame.T)[:, None]
    return system, jax.vmap(rj.State)(positions, orientations, np.zeros_like(positions), rates), ts


def relative_poses(name, ts):
    """Return displacements (T, 3) and rotations of the child's joint frame, components of the
    parent's.
    """
    a, b = 1.2 * np.sin(0.25 * np.pi * ts), 0.9 * np.sin(0.5 * np.pi * ts)
    d, vectors = (np.array(rows, float) for rows in zip(*map(JOINTS[name][2], a, b), strict=True))
    if (
        name == "Universal"
    ):  # One turn after the other, about the axes of the parent and of the child.
        return d, Rotation.from_euler("XY", vectors[:, :2])
    return d, Rotation.from_rotvec(vectors)


def motion(name):
    system, states, ts = motion_of(name)
    return rj.view(system, state=states, ts=ts, title=name)
