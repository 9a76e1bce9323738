"""Masses, joints and dynamics of published robots, by Pinocchio.

Run once, in an environment with Pinocchio and the models, not needed by the tests:

    pip install pin==4.1.0 example-robot-data==6.0.0
    python tools/exact/robots.py

It writes one file for each robot to `tests/robots/data`, which `test_robots.py` compares with; its
`README.md` says where the models come from. The files follow the conventions of rigidjax: the frame
of a body stands in its centre of mass; points and axes of joints are in space components of the
configuration in which all joint coordinates are zero and the free base is at `BASE`; rates of the
free base are the velocity of its centre of mass in space and its angular velocity in body
components, and mass matrix, forces and Jacobians are those of these rates. Links that are fixed to
each other are one body, those that are fixed to the ground none.
"""

import pathlib
import site
import sys

import numpy as np
import pinocchio as pin

# File of the model, last frame, whether the base is free. The rotors of the UR5 are ours.
ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand_tcp", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "tool0", False),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", "link_eef", False),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "left_rubber_hand", True),
}
ROTORS = {"ur5": (0.3, 0.3, 0.2, 0.05, 0.05, 0.04)}
# Pose of a free base in the reference configuration, quaternion (x, y, z, w).
BASE = (0.3, -0.2, 0.8, 0.1, -0.5, 0.7, 0.5)
STATES = 3


def load(folder: pathlib.Path, name: str):
    """Pinocchio's model, what is fixed to the ground left out."""
    path, _, floats = ROBOTS[name]
    base = [pin.JointModelFreeFlyer()] if floats else []
    model = pin.buildModelFromUrdf(str(folder / path), *base)
    model.inertias[0] = pin.Inertia.Zero()
    model.armature[:] = ROTORS.get(name, 0.0)
    return model


def describe_model(model) -> dict:
    """Bodies and joints in the reference configuration."""
    data, q = model.createData(), pin.neutral(model)
    if model.joints[1].nv == 6:
        q[:7] = BASE
    J = pin.computeJointJacobians(model, data, q)
    links = {f.parentJoint: f.name for f in reversed(model.frames) if f.type == pin.BODY}
    out = {
        key: []
        for key in (
            "names", "parents", "masses", "inertias", "positions", "rotations",
            "kinds", "points", "axes",
        )
    }  # fmt: skip
    for j in range(1, model.njoints):
        joint, own, pose = model.joints[j], model.inertias[j], data.oMi[j]
        column = J[:, joint.idx_v]
        turns = np.linalg.norm(column[3:]) > 0.5
        out["names"].append(links[j])
        out["parents"].append(model.parents[j] - 1)
        out["masses"].append(own.mass)
        out["inertias"].append(own.inertia)
        out["positions"].append(pose.act(own.lever))
        out["rotations"].append(pose.rotation)
        free = joint.nv == 6
        out["kinds"].append("free" if free else "revolute" if turns else "prismatic")
        out["points"].append(pose.translation)
        out["axes"].append(np.zeros(3) if free else column[3:] if turns else column[:3])
    return {key: np.array(value) for key, value in out.items()}


def of_base(model, data, nu):
    r"""$X$ and $\dot X$ with $\nu_{Pinocchio} = X \nu$, at a state of the model."""
    X, X_dot = np.eye(model.nv), np.zeros((model.nv, model.nv))
    if model.joints[1].nv == 6:
        R, omega = data.oMi[1].rotation, nu[3:6]
        X[:3, :3], X[:3, 3:6] = R.T, pin.skew(model.inertias[1].lever)
        X_dot[:3, :3] = -pin.skew(omega) @ R.T
    return X, X_dot


def state(model, kinds, frame, rng) -> dict:
    """Return a random state and its quantities by Pinocchio."""
    q = rng.uniform(-0.1, 0.1, model.nq)
    for joint, kind in zip(model.joints[1:], kinds, strict=True):
        if kind == "free":
            q[3:7] = rng.normal(size=4)
            q[3:7] /= np.linalg.norm(q[3:7])
        elif kind == "revolute":
            q[joint.idx_q] = rng.uniform(-2.0, 2.0)
    nu, nu_dot = rng.normal(size=(2, model.nv))
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    X, X_dot = of_base(model, data, nu)
    v = X @ nu
    M = pin.crba(model, data, q).copy()
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.nonLinearEffects(model, data, q, v).copy()
    drift = X_dot @ nu
    free = pin.aba(model, data, q, v, np.zeros(model.nv)).copy()
    torques = pin.rnea(model, data, q, v, X @ nu_dot + drift).copy()
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    pin.updateFramePlacements(model, data)
    axes = pin.LOCAL_WORLD_ALIGNED
    J = pin.getFrameJacobian(model, data, frame, axes).copy()
    J_dot = pin.getFrameJacobianTimeVariation(model, data, frame, axes).copy()
    momentum = pin.computeCentroidalMomentum(model, data, q, v)
    bodies = [data.oMi[j] * pin.SE3(np.eye(3), model.inertias[j].lever)
              for j in range(1, model.njoints)]  # fmt: skip
    coordinates = q.copy()
    if model.joints[1].nv == 6:
        coordinates[:3] = bodies[0].translation
        coordinates[3:7] = np.roll(q[3:7], 1)
    return {
        "coordinates": coordinates,
        "rates": nu,
        "rates_dot": nu_dot,
        "mass_matrix": X.T @ M @ X,
        "bias_forces": X.T @ (h + M @ drift),
        "inverse_dynamics": X.T @ torques,
        "accelerations": np.linalg.solve(X, free - drift),
        "jacobian": J @ X,
        "jacobian_rate": J_dot @ X + J @ X_dot,
        "frame_position": data.oMf[frame].translation.copy(),
        "frame_rotation": data.oMf[frame].rotation.copy(),
        "body_positions": np.array([pose.translation for pose in bodies]),
        "body_rotations": np.array([pose.rotation for pose in bodies]),
        "centre_of_mass": pin.centerOfMass(model, data, q).copy(),
        "linear_momentum": momentum.linear.copy(),
        "angular_momentum": momentum.angular.copy(),
        "kinetic_energy": pin.computeKineticEnergy(model, data, q, v),
        "potential_energy": pin.computePotentialEnergy(model, data, q),
    }


def main():
    """Write all robots."""
    packages = [*site.getsitepackages(), *sys.path]
    robots = "cmeel.prefix/share/example-robot-data/robots"
    folder = next(p for p in (pathlib.Path(s) / robots for s in packages) if p.is_dir())
    out = pathlib.Path("tests/robots/data")
    out.mkdir(exist_ok=True)
    for number, (name, (_, frame, _)) in enumerate(ROBOTS.items()):
        model = load(folder, name)
        rng = np.random.default_rng(2026 + number)
        k = model.getFrameId(frame)
        if k == model.nframes:
            raise ValueError(f"{name} has no frame {frame!r}: {[f.name for f in model.frames]}")
        parts, body = describe_model(model), model.frames[k].parentJoint
        states = [state(model, parts["kinds"], k, rng) for _ in range(STATES)]
        parts |= {key: np.array([s[key] for s in states]) for key in states[0]}
        parts |= {
            "armature": model.armature,
            "gravity": model.gravity.linear,
            "frame_body": parts["names"][body - 1],
            "frame_axes": model.frames[k].placement.rotation,
            "frame_point": model.frames[k].placement.translation - model.inertias[body].lever,
        }
        path = out / f"{name}.npz"
        np.savez_compressed(path, **parts)
        print(path, path.stat().st_size, "bytes;", len(parts["names"]), "bodies", parts["kinds"])


if __name__ == "__main__":
    main()
