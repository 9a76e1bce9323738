"""Accelerations of random trees by Pinocchio's articulated-body algorithm.

Run once, in an environment with Pinocchio (`pip install pin`); the tests do not need it:

    python tools/exact/random_trees.py

It writes `tests/mechanics/data/trees.npz`, the reference of `test_random_trees.py`. There is one
flat array per quantity with the trees one after the other, `counts` bodies each. For each body it
has the index of the parent (-1 the ground), the kind of joint, point and axes of the joint, mass,
inertia, reference pose; pose and twist; the external force at the centre of mass (space components)
and moment (body components); and the resulting acceleration of the centre of mass (space) and
angular acceleration (body).
"""

import pathlib

import numpy as np
import pinocchio as pin

KINDS = (
    "Spherical", "Revolute", "Prismatic", "Cylindrical", "Planar", "Universal", "Screw", "Weld",
    "free",
)  # fmt: skip
SIZES = (3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 8, 9, 10, 12, 20, 40)
PITCH = 0.3
GRAVITY = np.array([0.4, -1.1, -9.5])


def joint_model(kind: str):
    """Pinocchio's joint, in a frame whose third axis is that of the joint (first: universal)."""
    composite = pin.JointModelComposite
    if kind == "Cylindrical":
        joint = composite(pin.JointModelPZ())
        joint.addJoint(pin.JointModelRZ())
        return joint
    if kind == "Universal":
        joint = composite(pin.JointModelRX())
        joint.addJoint(pin.JointModelRY())
        return joint
    if kind == "Screw":
        return pin.JointModelHZ(PITCH / (2 * np.pi))
    return {
        "Spherical": pin.JointModelSpherical, "Revolute": pin.JointModelRZ,
        "Prismatic": pin.JointModelPZ, "Planar": pin.JointModelPlanar,
        "free": pin.JointModelFreeFlyer,
    }[kind]()  # fmt: skip


def frame_of(axis, second, kind):
    """Joint frame in the reference configuration: columns in space components."""
    if kind == "Universal":
        return np.stack([axis, second, np.cross(axis, second)], axis=1)
    return np.stack([second, np.cross(axis, second), axis], axis=1)


def random_tree(rng, count):
    """Bodies, their joints and reference poses, drawn at random."""
    kinds = rng.choice(len(KINDS) - 1, count)
    parents = np.array([rng.integers(-1 if i % 4 == 0 else 0, max(i, 1)) for i in range(count)])
    parents[0] = -1
    for i in np.flatnonzero(parents == -1):
        # A few trees float freely; every kind of joint sometimes connects to the ground.
        if rng.random() < 0.3:
            kinds[i] = KINDS.index("free")
    axes = np.stack([np.linalg.qr(rng.normal(size=(3, 3)))[0][:, :2].T for _ in range(count)])
    half = rng.normal(size=(count, 3, 3))
    inertias = half @ np.swapaxes(half, 1, 2) / 6.0 + 0.2 * np.eye(3)
    # A, B, C of a body obey the triangle inequality if they are tr(E) 1 - E, E positive.
    inertias = np.trace(inertias, axis1=1, axis2=2)[:, None, None] * np.eye(3) - inertias
    return {
        "kinds": kinds, "parents": parents, "axes": axes,
        "points": rng.uniform(-1.0, 1.0, (count, 3)),
        "masses": rng.uniform(0.5, 3.0, count), "inertias": inertias,
        "reference_positions": rng.uniform(-1.0, 1.0, (count, 3)),
        "reference_rotations": np.stack([pin.SE3.Random().rotation for _ in range(count)]),
        "forces": rng.normal(size=(count, 3)), "moments": rng.normal(size=(count, 3)),
    }  # fmt: skip


def build(tree):
    """The model; the index of each body's joint; its pose in the frame of that joint."""
    model = pin.Model()
    model.gravity.linear = GRAVITY
    ids, local = [], []
    placed = {-1: (0, pin.SE3.Identity())}  # joint that carries it, reference pose of its frame
    for i, kind in enumerate(tree["kinds"]):
        name = KINDS[kind]
        on, frame_on = placed[tree["parents"][i]]
        body = pin.SE3(tree["reference_rotations"][i], tree["reference_positions"][i])
        inertia = pin.Inertia(tree["masses"][i], np.zeros(3), tree["inertias"][i])
        if name == "Weld":
            frame, j = frame_on, on
        else:
            frame = pin.SE3(frame_of(*tree["axes"][i], name), tree["points"][i])
            frame = body if name == "free" else frame
            start = pin.SE3.Identity() if name == "free" else frame_on.actInv(frame)
            j = model.addJoint(on, joint_model(name), start, f"joint {i}")
        if j > 0:
            model.appendBodyToJoint(j, inertia, frame.actInv(body))
        placed[i] = (j, frame)
        ids.append(j)
        local.append(frame.actInv(body))
    return model, ids, local


def solve(model, ids, local, tree, rng):
    """Poses, twists and accelerations of all bodies in a random state."""
    data = model.createData()
    low, high = np.full(model.nq, -1.0), np.full(model.nq, 1.0)
    model.lowerPositionLimit, model.upperPositionLimit = low, high
    q, v = pin.randomConfiguration(model), rng.normal(size=model.nv)
    q = pin.integrate(model, q, rng.normal(size=model.nv))
    pin.forwardKinematics(model, data, q, v)
    f = [pin.Force.Zero() for _ in range(model.njoints)]
    for i, j in enumerate(ids):
        R = (data.oMi[j] * local[i]).rotation
        f[j] += local[i].act(pin.Force(R.T @ tree["forces"][i], tree["moments"][i]))
    a = pin.aba(model, data, q, v, np.zeros(model.nv), f)
    pin.forwardKinematics(model, data, q, v, a)
    out = {
        key: [] for key in ("positions", "rotations", "velocities", "spins", "linear", "angular")
    }
    for i, j in enumerate(ids):
        pose = data.oMi[j] * local[i]
        twist, change = local[i].actInv(data.v[j]), local[i].actInv(data.a[j])
        R = pose.rotation
        out["positions"].append(pose.translation)
        out["rotations"].append(R)
        out["velocities"].append(R @ twist.linear)
        out["spins"].append(twist.angular)
        # Spatial acceleration to that of the centre of mass.
        out["linear"].append(R @ (change.linear + np.cross(twist.angular, twist.linear)))
        out["angular"].append(change.angular)
    return {key: np.array(value) for key, value in out.items()}


def main():
    """Write all trees into one file."""
    rng = np.random.default_rng(2026)
    pin.seed(2026)
    parts = []
    for count in SIZES:
        tree = random_tree(rng, count)
        parts.append(tree | solve(*build(tree), tree, rng))
    stacked = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    path = pathlib.Path("tests/mechanics/data/trees.npz")
    np.savez_compressed(path, counts=SIZES, gravity=GRAVITY, pitch=PITCH, **stacked)
    print(path, path.stat().st_size, "bytes;", "kinds", np.bincount(stacked["kinds"]))


if __name__ == "__main__":
    main()
