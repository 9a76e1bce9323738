"""Arms whose inertial parameters are found by regression, and their data."""

import numpy as np

import rigidjax as rj
from rigidjax import identification as ident

FRICTION = ("viscous", "coulomb", "offset")


def planar_arm(gravity=-9.81):
    """Two links in the x-z plane; the frame of each is at its joint."""
    moments = (0.02, 0.03, 0.04)
    bodies = [
        rj.Body("upper", 1.3, moments),
        rj.Body("fore", 0.7, moments, position=(0.25, 0.0, 0.0)),
    ]
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), (0, 1, 0), name="shoulder"),
        rj.Revolute("upper", "fore", (0.25, 0, 0), (0, 1, 0), name="elbow"),
    ]
    return rj.System(bodies, joints, rj.Gravity((0, 0, gravity)))


def mixed_tree():
    """A hinge, a slider turned round and a hinge in general position, with springs."""
    p = (0.5, 0.5, -0.5, 0.5)
    inertia = np.array([[0.5, 0.02, -0.1], [0.02, 0.6, 0.05], [-0.1, 0.05, 0.7]])
    bodies = [
        rj.Body("a", 1.3, inertia, (0.2, 0.1, 0.3), p),
        rj.Body("b", 0.7, (0.1, 0.15, 0.2), (0.5, -0.2, 0.6)),
        rj.Body("c", 2.0, 0.3 * inertia, (0.9, 0.3, 0.1), p),
    ]
    joints = [
        rj.Revolute("ground", "a", (0, 0.1, 0), (0.1, 0.3, 1.0), name="first"),
        rj.Prismatic("b", "a", (0, 1, 0.2), name="second"),
        rj.Revolute("b", "c", (0.4, 0, 0), (1, 1, 0), name="third"),
    ]
    forces = [
        rj.Gravity((0.3, -1, -9.81)),
        rj.Spring("a", "c", (0, 0, 0), (0.9, 0.5, 0.1), 5.0, 0.2),
    ]
    return rj.System(bodies, joints, forces)


def excitation(joints, count=200, seed=0):
    """Sums of three sines: coordinates, rates, accelerations, (count, joints) each."""
    rng = np.random.default_rng(seed)
    size, phase, rate = rng.normal(size=(3, joints, 3))
    rate = 2 + 2 * np.abs(rate)
    angle = rate * np.linspace(0, 4, count)[:, None, None] + phase
    return (
        np.sum(size * np.sin(angle), axis=2),
        np.sum(size * rate * np.cos(angle), axis=2),
        -np.sum(size * rate**2 * np.sin(angle), axis=2),
    )


PLANTED = np.concatenate([np.zeros(20), [0.3, 0.2, 0.1, 0.15, 0.02, -0.03]])
PLANTED[:10] = rj.MassProperties(2.0, (0.12, 0.01, -0.02), (0.03, 0.04, 0.02)).parameters()
PLANTED[10:20] = rj.MassProperties(1.1, (0.1, -0.02, 0.03), (0.02, 0.025, 0.02)).parameters()


def arm_data(noise, count=200, seed=0):
    """The planar arm with the planted parameters, and noise on its torques."""
    moved = excitation(2, count, seed)
    zero = np.zeros((count, 2))
    exact = ident.joint_data(planar_arm(), *moved, zero, terms=FRICTION)
    torques = exact.matrix @ PLANTED
    torques += noise * np.random.default_rng(seed + 1).normal(size=torques.shape)
    return ident.joint_data(planar_arm(), *moved, torques, terms=FRICTION)
