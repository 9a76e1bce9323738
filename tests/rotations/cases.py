"""The parametrizations under test, random rotations within their reach, and measures of error."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rigidjax.rotations import (
    ConformalRotationVector,
    Directors,
    EulerAngles,
    LinearParameters,
    Quaternion,
    RodriguesParameters,
    RotationVector,
    so3,
)

PROPER = ("ZXZ", "XYX", "YZY", "ZYZ", "XZX", "YXY")
TAIT_BRYAN = ("XYZ", "YZX", "ZXY", "XZY", "ZYX", "YXZ")
VECTORIAL = (RotationVector(), RodriguesParameters(), ConformalRotationVector(), LinearParameters())
EULER = tuple(EulerAngles(sequence) for sequence in PROPER + TAIT_BRYAN)
INERTIA = np.array([[3.0, 0.2, -0.1], [0.2, 2.5, 0.3], [-0.1, 0.3, 1.5]])  # kg m^2
ROTATIONS = (Quaternion(), Directors(), *VECTORIAL, *EULER)
# One of each kind, where all twelve sequences would say nothing new, and fewer.
SOME = (
    *(Quaternion(), RotationVector(), LinearParameters()),
    *(EulerAngles("ZXZ"), EulerAngles("ZYX")),
)
FEW = (Quaternion(), Directors(), *VECTORIAL, EulerAngles("ZXZ"), EulerAngles("ZYX"))


def name(rotation) -> str:
    """Test identifier: the class, and the sequence of Euler angles."""
    return getattr(rotation, "sequence", type(rotation).__name__)


def reach(rotation) -> float:
    """The largest rotation angle that every direction of the axis allows."""
    return 0.5 * np.pi if isinstance(rotation, LinearParameters) else np.pi


def unit_vectors(rng, n: int) -> np.ndarray:
    """Random unit vectors, shape (n, 3)."""
    u = rng.normal(size=(n, 3))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def quaternions(rng, n: int, angle: float = np.pi) -> jax.Array:
    """Random unit quaternions of rotations by less than `angle`, either sign, shape (n, 4)."""
    psi = unit_vectors(rng, n) * rng.uniform(0.0, angle, size=(n, 1))
    p = np.asarray(exponentials(jnp.asarray(psi)))
    return jnp.asarray(p * rng.choice([-1.0, 1.0], size=(n, 1)).astype(p.dtype))


exponentials = jax.jit(jax.vmap(so3.exp_quaternion))


@eqx.filter_jit
def coordinates_of(rotation, p):
    """Coordinates of quaternions, and whether they are at least 0.02 rad from a singularity."""
    a = jax.vmap(rotation.from_quaternion)(p)
    return a, jax.vmap(rotation.singularity)(a) > 0.02


def coordinates(rotation, rng, n: int, principal: bool = True) -> jax.Array:
    """Random coordinates, at least 0.02 rad from a singularity, one row each.

    Within the range of `from_quaternion`, or beyond it where the parametrization goes on to angle
    2 pi.
    """
    angle = 2.0 * np.pi - 0.02
    if not principal and isinstance(rotation, RotationVector):
        return jnp.asarray(rng.uniform(0.0, angle, size=(n, 1)) * unit_vectors(rng, n))
    if not principal and isinstance(rotation, ConformalRotationVector):
        quarter = 0.25 * rng.uniform(0.0, angle, size=(n, 1))
        return jnp.asarray(4.0 * np.tan(quarter) * unit_vectors(rng, n))
    p = quaternions(rng, 3 * n, reach(rotation) - 0.02)
    a, safe = map(np.asarray, coordinates_of(rotation, p))
    return jnp.asarray(a[safe][:n])


def functions(rotation, rates, dtype=None):
    """Everything a formulation differentiates, as functions of the coordinates alone."""
    w = jnp.array([0.3, -0.7, 1.1], dtype)
    inertia = jnp.asarray(INERTIA, dtype)
    rate = jnp.linspace(-1.0, 1.0, rotation.num_coordinates, dtype=dtype)
    return {
        "to_matrix": rotation.to_matrix,
        "to_quaternion": rotation.to_quaternion,
        "from_matrix": lambda a: rotation.from_matrix(rotation.to_matrix(a)),
        "from_quaternion": lambda a: rotation.from_quaternion(rotation.to_quaternion(a)),
        "rate": lambda a: rotation.rate(a, w, rates),
        "null_space": lambda a: rotation.null_space(a, rates),
        "tangent": lambda a: rotation.tangent(a, rates),
        "angular_velocity": lambda a: rotation.angular_velocity(a, rate, rates),
        "acceleration": lambda a: rotation.acceleration(a, w, w, rates),
        "constraint_jacobian": lambda a: rotation.constraint_jacobian(a, rates),
        "mass_matrix": lambda a: rotation.mass_matrix(a, inertia),
        "half_rotation": rotation.half_rotation,
        "singularity_function": rotation.singularity_function,
        "project": rotation.project,
    }


def error(x, y):
    """Largest difference relative to the largest entry of `y`."""
    return jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(y))


def eps() -> float:
    """Unit round-off of the working precision."""
    return float(jnp.finfo(jnp.result_type(float)).eps)
