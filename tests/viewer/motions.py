"""Motions to view, without a simulation: positions as closed functions of time."""

import jax
import numpy as np

import rigidjax as rj

TS = np.linspace(0.0, 2.0, 41)


def mechanism():
    """One joint of every kind, a spring, gravity, and a frame at the end of the arm."""
    names = ("arm", "drum", "egg", "ball", "slider", "nut", "puck", "collar", "cube")
    bodies = [
        rj.Body.box(name, (0.3, 0.2, 0.1), mass=1.0, position=(0.6 * k, 0, 0))
        for k, name in enumerate(names)
    ]
    at = dict(zip(names, ((0.6 * k, 0.0, 0.0) for k in range(9)), strict=True))
    joints = [
        rj.Revolute("ground", "arm", (-0.2, 0, 0), axis=(0, 1, 0)),
        rj.Universal("arm", "drum", (0.3, 0, 0), axis1=(1, 0, 0), axis2=(0, 1, 0)),
        rj.Spherical("drum", "egg", (0.9, 0, 0)),
        rj.Distance("egg", "ball", at["egg"], at["ball"]),
        rj.Prismatic("ground", "slider", axis=(0, 0, 1), point=at["slider"]),
        rj.Screw("ground", "nut", at["nut"], axis=(0, 0, 1), pitch=0.1),
        rj.Planar("ground", "puck", at["puck"], normal=(0, 0, 1)),
        rj.Cylindrical("ground", "collar", at["collar"], axis=(0, 0, 1)),
        rj.Weld("collar", "cube", at["cube"]),
    ]
    points = [("ground", (1.8, 0, 0.9)), ("ball", None), ("ground", (1.6, 0, 1))]
    forces = [rj.Gravity((0, 0, -9.81)), rj.Cable(points, 5.0)]
    forces += [rj.Spring("ground", "ball", (1.8, 0, 1), at["ball"], 10.0)]
    return rj.System(bodies, joints, forces, frames=rj.Frame("tip", "arm", (0.15, 0, 0)))


def turned_states(count, ts=TS):
    """States of `count` bodies that turn about oblique axes and go up and down, (T, ...)."""
    angle = np.outer(ts, 1.0 + 0.1 * np.arange(count))
    axis = np.array([0.6, 0.0, 0.8])
    orientation = np.concatenate(
        [np.cos(angle / 2)[..., None], np.sin(angle / 2)[..., None] * axis], axis=-1
    )
    position = np.zeros((len(ts), count, 3))
    position[..., 0] = 0.6 * np.arange(count)
    position[..., 2] = 0.2 * np.sin(angle)
    rate = np.broadcast_to((1.0 + 0.1 * np.arange(count))[:, None] * axis, position.shape)
    return jax.vmap(rj.State)(position, orientation, np.zeros_like(position), rate)
