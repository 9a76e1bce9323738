"""Systems with joints, consistent states of them, and forward kinematics of the tests' own."""

import jax
import jax.numpy as jnp
import numpy as np
from formulations.cases import PRINCIPAL, TENSOR
from joints import cases as joint_cases
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.rotations import euler_map

# Parent, child, kind. The child of the first joint is attached to the ground, which reverses it.
TREE = (
    ("body 0", "ground", "Spherical"),
    ("body 0", "body 1", "Revolute"),
    ("body 2", "body 1", "Cylindrical"),
    ("body 1", "body 3", "Universal"),
    ("body 4", "body 0", "Screw"),
    ("body 5", "body 6", "Planar"),
    ("body 6", "body 7", "Weld"),
    ("body 7", "body 8", "driven Revolute"),
    ("body 9", "body 5", "driven Prismatic"),
    ("ground", "body 10", "Prismatic"),
)
T = joint_cases.T


def unit_quaternions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random unit quaternions, scalar first."""
    return Rotation.random(count, rng).as_quat(scalar_first=True)


def bodies(rng: np.random.Generator, count: int) -> list[rj.Body]:
    """Bodies in random reference poses; every other one has a full tensor of inertia."""
    x, p = rng.uniform(-1.0, 1.0, (count, 3)), unit_quaternions(rng, count)
    inertias = [np.array(PRINCIPAL) / 50.0 if i % 2 else TENSOR for i in range(count)]
    return [
        rj.Body(f"body {i}", rng.uniform(0.5, 3.0), inertias[i], x[i], p[i]) for i in range(count)
    ]


def forces(names: list[str]) -> tuple:
    """Gravity, a force at a point, a follower force and a moment that depends on everything."""
    return (
        rj.Gravity((0.3, -0.2, -9.81)),
        rj.PointForce(names[1], (0.1, -0.4, 0.2), lambda t: jnp.stack([t, 2.0 - t, t * t])),
        rj.PointForce(names[-1], (0.3, 0.2, 0.1), (1.0, -2.0, 0.5), "body"),
        rj.Torque(names[2], lambda t, R, omega: jnp.sin(t) * R[2] - 0.3 * omega),
    )


def tree() -> rj.System:
    """All joints that trees may have, both ways round, on the ground and on a free body."""
    parts = bodies(np.random.default_rng(1), 11)
    joints = [joint_cases.KINDS[kind](a, b) for a, b, kind in TREE]
    return rj.System(parts, joints, forces([body.name for body in parts]))


def matrices(orientation) -> np.ndarray:
    """Rotation matrices of quaternions, scalar first."""
    return Rotation.from_quat(np.asarray(orientation), scalar_first=True).as_matrix()


def pose_across(joint, relative, body, on, x, R, forward: bool):
    """Pose of the body `body` on the other side of a joint from the pose (x, R) of `on`.

    `body`, `on`: reference poses. `forward`: whether `body` is the joint's child.
    """
    F, points = np.asarray(joint.frame()), [np.asarray(p) for p in joint.points()]
    d, Q = np.asarray(relative.displacement), np.asarray(relative.rotation)
    here, there = points if forward else points[::-1]
    turned = R @ on[1].T
    frame, point = turned @ F, x + turned @ (here - on[0])
    if forward:
        frame, point = frame @ Q, point + frame @ d
    else:
        frame = frame @ Q.T
        point = point - frame @ d
    turned = frame @ F.T
    return point - turned @ (there - body[0]), turned @ body[1]


def random_positions(system: rj.System, joints, rng: np.random.Generator):
    """Positions and orientations that satisfy the tree joints `joints`: (parent, child, kind)."""
    reference = system.reference_state()
    poses = dict(zip(
        [body.name for body in system.bodies],
        zip(np.asarray(reference.position), matrices(reference.orientation), strict=True),
        strict=True,
    ))  # fmt: skip
    ground = (np.zeros(3), np.eye(3))
    found, left = {"ground": ground}, list(range(len(joints)))
    free = [name for name in poses if name not in system_children(system)]
    for name in free:
        found[name] = (rng.normal(size=3), Rotation.random(rng=rng).as_matrix())
    while left:
        j = next(j for j in left if joints[j][0] in found or joints[j][1] in found)
        left.remove(j)
        a, b, kind = joints[j]
        forward = a in found
        here, there = (a, b) if forward else (b, a)
        relative = joint_cases.relative(kind, joint_cases.random_coordinates(kind, rng), rng)
        found[there] = pose_across(
            system.joints[j], relative, poses[there], poses.get(here, ground), *found[here], forward
        )
    x = np.stack([found[name][0] for name in poses])
    R = np.stack([found[name][1] for name in poses])
    return x, Rotation.from_matrix(R).as_quat(scalar_first=True)


def system_children(system: rj.System) -> set[str]:
    """Bodies that hang on a joint."""
    return {
        body.name
        for body, joint in zip(system.bodies, system.topology.joints, strict=True)
        if joint is not None
    }


def consistent(model, state: rj.State, t: float = T) -> rj.State:
    """The state with the nearest velocities that the joints allow."""
    return model.decode(jnp.asarray(t), model.pack(state, None, jnp.asarray(t)))


def random_state(system: rj.System, joints, rng: np.random.Generator) -> rj.State:
    """A random state whose poses satisfy the joints, and any twists."""
    x, p = random_positions(system, joints, rng)
    return rj.State(x, p, rng.normal(size=x.shape), rng.normal(size=x.shape))


def stack_states(states) -> rj.State:
    """States with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def attitudes(state: rj.State) -> jnp.ndarray:
    """Rotation matrices of all bodies."""
    return jax.vmap(euler_map)(jnp.asarray(state.orientation))
