"""Constraints of each joint and a motion that satisfies them, for the reference."""

import functools
import html

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.joints.relative_pose import RelativePose

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
    corner = np.array([0.6 if name == "Distance" else 0.0, 0.0, 0.0])
    if name == "Distance":
        joint = rj.Distance("ground", "body", (0, 0, 0), corner)
    else:
        joint = getattr(rj, name)("ground", "body", point=(0, 0, 0), **arguments)
    body = rj.Body.box("body", (0.5, 0.2, 0.1), mass=1.0, position=corner + offset)
    system = rj.System(body, joint)
    ts = np.linspace(0.0, 8.0, 161)
    d, Q = relative_poses(name, ts)
    matrices = jnp.asarray(Q.as_matrix())
    constraint = jax.vmap(lambda d, Q: joint.constraint(RelativePose(d, Q, 0.0), 0.0))
    gap = constraint(jnp.asarray(d), matrices)
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
    if name == "Universal":  # one rotation after the other, about the axes of parent and child
        return d, Rotation.from_euler("XY", vectors[:, :2])
    return d, Rotation.from_rotvec(vectors)


def motion(name):
    system, states, ts = motion_of(name)
    return rj.view(system, state=states, ts=ts, title=name)
