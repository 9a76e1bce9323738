"""Systems, formulations and random states under test, and measures of error."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.rotations import euler_map

PRINCIPAL = (50.0, 42.0, 10.0)
# Symmetric, positive definite, with positive principal Euler values (0.8, 1.4, 1.9, about).
TENSOR = ((3.0, 0.3, -0.2), (0.3, 2.5, 0.4), (-0.2, 0.4, 2.2))
MINIMAL = (
    rj.RotationVector(),
    rj.RodriguesParameters(),
    rj.ConformalRotationVector(),
    rj.LinearParameters(),
    rj.EulerAngles("ZXZ"),
    rj.EulerAngles("ZYX"),
)
ROTATIONS = (rj.Quaternion(), rj.Quaternion(radial_inertia="half-trace"), rj.Directors(), *MINIMAL)
REDUNDANT = ROTATIONS[:3]


def rotation_name(rotation) -> str:
    """Test identifier: the class, with what there is to choose."""
    if isinstance(rotation, rj.EulerAngles):
        return rotation.sequence
    if isinstance(rotation, rj.Quaternion):
        return f"Quaternion-{rotation.radial_inertia}"
    return type(rotation).__name__


def model_name(model) -> str:
    """Test identifier of a formulation."""
    if isinstance(model, rj.EulerParameters):
        return f"EulerParameters-{model.form}"
    rates = f"-{model.rates}" if isinstance(model, rj.NullSpace) else ""
    return f"{type(model).__name__}-{rotation_name(model.rotation)}{rates}"


def models(system, rotations=ROTATIONS) -> list:
    """Every formulation of `system` with every parametrization."""
    out = []
    for rotation in rotations:
        out += [rj.NullSpace(system, rotation, rates=rates) for rates in ("body", "space")]
        out.append(rj.Absolute(system, rotation))
    return [*out, rj.EulerParameters(system)]


def heavy_top() -> rj.FixedPointBody:
    """Lang's Example A."""
    return rj.FixedPointBody(PRINCIPAL, potential=rj.AxialGravityPotential(108.79))


def loaded_top() -> rj.FixedPointBody:
    """A full tensor of inertia, gravity off the axis, and a moment that depends on everything."""

    def moment(t, R, omega):
        return jnp.sin(t) * R[2] - 0.3 * omega

    potential = rj.GravityPotential((0.4, -0.3, 1.2), (0.5, -1.0, -9.0))
    return rj.FixedPointBody(TENSOR, potential, moment)


def two_bodies() -> rj.System:
    """Principal moments and a full tensor; every kind of force."""

    def energy(positions, rotations):
        stretch = positions[0] + rotations[0] @ jnp.array([0.2, 0.1, -0.3]) - positions[1]
        return 2.0 * jnp.sum(stretch * stretch) + jnp.sum(rotations[0] * rotations[1])

    bodies = (rj.Body("one", 2.0, (0.5, 0.42, 0.3)), rj.Body("two", 3.0, TENSOR))
    forces = (
        rj.Gravity((0.3, -0.2, -9.81)),
        rj.PointForce("one", (0.1, -0.4, 0.2), (1.0, 2.0, -0.5)),
        rj.PointForce("two", (0.3, 0.2, 0.1), lambda t: jnp.stack([t, 1.0 - t, t * t]), "body"),
        rj.Torque("two", lambda t, R, omega: -0.2 * omega),
        rj.Torque("one", (0.1, 0.2, 0.3), "space"),
        rj.Potential(energy),
    )
    return rj.System(bodies, forces=forces)


def random_states(rng: np.random.Generator, system, count: int, angle: float = np.pi) -> rj.State:
    """`count` random states of all bodies, rotation angles up to `angle`."""
    translates = isinstance(system, rj.System)
    shape = (count, system.num_bodies if translates else 1)
    axis = rng.normal(size=(*shape, 3))
    axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
    half = 0.5 * rng.uniform(0.0, angle, (*shape, 1))
    quaternion = np.concatenate([np.cos(half), np.sin(half) * axis], -1)
    shift = rng.normal(size=(2, *shape, 3)) if translates else np.zeros((2, *shape, 3))
    omega = rng.normal(size=(*shape, 3))
    parts = (jnp.asarray(x) for x in (shift[0], quaternion, shift[1], omega))
    return jax.vmap(rj.State)(*parts)


def reach(model) -> float:
    """The largest rotation angle that every direction of the axis allows."""
    return 1.5 if isinstance(model.rotation, rj.LinearParameters) else 3.1


def error(value, reference) -> jax.Array:
    """Largest difference, relative to the largest entry of the reference or to 1."""
    value, reference = jnp.asarray(value), jnp.asarray(reference)
    assert value.shape == reference.shape, (value.shape, reference.shape)
    scale = jnp.maximum(jnp.max(jnp.abs(reference), initial=0.0), 1.0)
    return jnp.max(jnp.abs(value - reference), initial=0.0) / scale


def round_off(factor: float) -> float:
    """`factor` units of round-off of the precision that the tests run in."""
    return factor * float(jnp.finfo(jnp.result_type(float)).eps)


def attitude(states: rj.State) -> np.ndarray:
    """Rotation matrices, which have no sign to choose."""
    p = jnp.asarray(states.orientation)
    flat = jax.vmap(euler_map)(p.reshape(-1, 4))
    return np.asarray(flat).reshape(*p.shape[:-1], 3, 3)
