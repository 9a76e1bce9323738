"""Every joint, and relative poses that it allows, made from its coordinates."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.joints import RelativePose

POINT, POINT_2 = (0.3, -0.2, 0.7), (0.9, 0.4, -0.1)
AXIS, AXIS_2 = (1.0, 2.0, -0.5), (2.0, -1.0, 0.0)
PITCH = 0.4
T = 0.6


class Sine(eqx.Module):
    """A motion with a parameter."""

    amplitude: jnp.ndarray = eqx.field(converter=jnp.asarray)

    def __call__(self, t):
        return self.amplitude * jnp.sin(2.0 * t) + 0.3 * t


MOTION = Sine(1.2)
MOTION_RATE = 2.4 * np.cos(2.0 * T) + 0.3
KINDS: dict[str, Callable] = {
    "Spherical": lambda a, b, **kw: rj.Spherical(a, b, POINT, **kw),
    "Revolute": lambda a, b, **kw: rj.Revolute(a, b, POINT, AXIS, **kw),
    "Prismatic": lambda a, b, **kw: rj.Prismatic(a, b, AXIS, point=POINT, **kw),
    "Cylindrical": lambda a, b, **kw: rj.Cylindrical(a, b, POINT, AXIS, **kw),
    "Planar": lambda a, b, **kw: rj.Planar(a, b, POINT, AXIS, **kw),
    "Universal": lambda a, b, **kw: rj.Universal(a, b, POINT, AXIS, AXIS_2, **kw),
    "Screw": lambda a, b, **kw: rj.Screw(a, b, POINT, AXIS, PITCH, **kw),
    "Weld": lambda a, b, **kw: rj.Weld(a, b, POINT, **kw),
    "Distance": lambda a, b, **kw: rj.Distance(a, b, POINT, POINT_2, **kw),
    "driven Revolute": lambda a, b, **kw: rj.Revolute(a, b, POINT, AXIS, MOTION, **kw),
    "driven Prismatic": lambda a, b, **kw: rj.Prismatic(a, b, AXIS, MOTION, POINT, **kw),
}
NUM_CONSTRAINTS = {
    "Spherical": 3, "Revolute": 5, "Prismatic": 5, "Cylindrical": 4, "Planar": 3, "Universal": 4,
    "Screw": 5, "Weld": 6, "Distance": 1, "driven Revolute": 6, "driven Prismatic": 6,
}  # fmt: skip
# Joints whose coordinates are lengths and angles that are measured one by one.
SCALAR = tuple(kind for kind in KINDS if kind not in ("Spherical", "Weld"))


def rotation(psi) -> np.ndarray:
    """Rotation matrix of a rotation vector."""
    return Rotation.from_rotvec(np.asarray(psi, float)).as_matrix()


def random_coordinates(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return random coordinates, with angles of several revolutions where the joint supports
    them.
    """
    count = {"Spherical": 3, "Cylindrical": 2, "Planar": 3, "Universal": 2, "Weld": 0}.get(kind, 1)
    q = rng.uniform(-1.5, 1.5, count)
    if kind in ("Revolute", "Cylindrical", "Planar", "Screw"):
        q[-1] = rng.uniform(-10.0, 10.0)
    if kind == "Universal":
        q = rng.uniform((-10.0, -3.0), (10.0, 3.0))
    if kind.startswith("driven"):
        q = np.array([MOTION(T)])
    return q


def displacement(kind: str, q) -> np.ndarray:
    """Displacement in the joint frame that the coordinates `q` stand for."""
    if kind.endswith("Prismatic") or kind == "Cylindrical":
        return np.array([0.0, 0.0, q[0]])
    if kind == "Planar":
        return np.array([q[0], q[1], 0.0])
    if kind == "Screw":
        return np.array([0.0, 0.0, PITCH * q[0] / (2 * np.pi)])
    return np.subtract(POINT_2, POINT) if kind == "Distance" else np.zeros(3)


def relative(kind: str, q, rng: np.random.Generator | None = None) -> RelativePose:
    """The relative pose with the coordinates `q`, written independently of the joint."""
    d, Q, angle = displacement(kind, q), np.eye(3), 0.0
    if kind == "Spherical":
        Q = rotation(q)
    elif kind == "Universal":
        Q, angle = rotation((q[0], 0.0, 0.0)) @ rotation((0.0, q[1], 0.0)), q[0]
    elif kind in ("Revolute", "Cylindrical", "Planar", "Screw", "driven Revolute"):
        Q, angle = rotation((0.0, 0.0, q[-1])), q[-1]
    elif kind == "Distance" and rng is not None:
        d, Q = rotation(rng.normal(size=3)) @ d, rotation(rng.normal(size=3))
    turns = 2 * np.pi * np.round(angle / (2 * np.pi))
    return RelativePose(jnp.asarray(d), jnp.asarray(Q), jnp.asarray(turns, float))


def reference(kind: str) -> RelativePose:
    """The relative pose in the reference configuration."""
    return relative(kind, np.zeros(3))
