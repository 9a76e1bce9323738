"""Identities that hold for every parametrization, with body and with space rates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rotations import cases

from rigidjax.rotations import (
    ConformalRotationVector,
    Directors,
    EulerAngles,
    LinearParameters,
    Quaternion,
    RodriguesParameters,
    RotationVector,
    euler_differential,
    euler_map,
    half_rotation_matrix,
    so3,
)


def angular_velocity(R, R_dot, rates):
    return so3.unskew(R.T @ R_dot if rates == "body" else R_dot @ R.T)


def first_order(rotation, rates, a, omega, b):
    """Relative errors of the identities of T, H and G; `b` is any rate that the manifold allows."""
    T, H = rotation.null_space(a, rates), rotation.tangent(a, rates)
    G = rotation.constraint_jacobian(a, rates)
    a_dot = rotation.rate(a, omega, rates)
    b = rotation.project_rate(a, b)
    R, R_dot = jax.jvp(rotation.to_matrix, (a,), (a_dot,))
    _, B_dot = jax.jvp(rotation.to_matrix, (a,), (b,))
    v = rotation.angular_velocity(a, b, rates)
    return {
        "rotation": cases.error(R @ R.T, jnp.eye(3)),
        "T against the derivative of R": cases.error(angular_velocity(R, R_dot, rates), omega),
        "H against the derivative of R": cases.error(v, angular_velocity(R, B_dot, rates)),
        "rate": cases.error(a_dot, T @ omega),
        "angular velocity": cases.error(v, H @ b),
        "H T = 1": cases.error(H @ a_dot, omega),
        "G T = 0": jnp.max(jnp.abs(G @ T), initial=0.0),
        "G": jnp.max(
            jnp.abs(G - jax.jacfwd(lambda a: rotation.constraint(a, rates))(a)), initial=0.0
        ),
        "on the manifold": jnp.max(jnp.abs(rotation.constraint(a, rates)), initial=0.0),
        "to_quaternion": cases.error(euler_map(rotation.to_quaternion(a)), R),
        "project": cases.error(rotation.project(a), a),
        "project_rate": cases.error(rotation.project_rate(a, a_dot), a_dot),
    }


def second_order(rotation, rates, a, omega, omega_dot):
    """Relative errors of what is built on them: accelerations, half rotation, extraction."""
    a_dot = rotation.rate(a, omega, rates)
    a_ddot = rotation.acceleration(a, omega, omega_dot, rates)
    R = rotation.to_matrix(a)
    # The second derivative of R along the path with these first and second derivatives.
    _, R_ddot = jax.jvp(
        lambda a, v: jax.jvp(rotation.to_matrix, (a,), (v,))[1], (a, a_dot), (a_dot, a_ddot)
    )
    spin = R.T @ R_ddot if rates == "body" else R_ddot @ R.T
    F = rotation.half_rotation(a)
    return {
        "angular acceleration": cases.error(
            rotation.angular_acceleration(a, a_dot, a_ddot, rates), omega_dot
        ),
        "acceleration against the second derivative of R": cases.error(so3.unskew(spin), omega_dot),
        "R = F F": cases.error(F @ F, R),
        "F is a rotation": cases.error(F @ F.T, jnp.eye(3)),
        "from_matrix": cases.error(rotation.to_matrix(rotation.from_matrix(R)), R),
    }


def identities(rotation, rates):
    """Evaluate all identities at many states."""

    @jax.jit
    @jax.vmap
    def evaluate(a, omega, omega_dot, b):
        first = first_order(rotation, rates, a, omega, b)
        return first | second_order(rotation, rates, a, omega, omega_dot)

    return evaluate


def largest(errors) -> dict[str, float]:
    return {key: float(value.max()) for key, value in errors.items()}


@pytest.mark.float32
@pytest.mark.parametrize(
    ("rotation", "rates"),
    [
        (Quaternion(), "body"),
        (Quaternion(), "space"),
        (Directors(), "body"),
        (RotationVector(), "space"),
        (LinearParameters(), "body"),
        (RodriguesParameters(), "body"),
        (ConformalRotationVector(), "body"),
        (EulerAngles("ZXZ"), "body"),
        (EulerAngles("ZYX"), "space"),
    ],
    ids=cases.name,
)
def test_identities_at_random_states(rotation, rates, rng):
    """At 1,000 random states. In double precision every one of them to 1e-12."""
    n = 1000
    a = cases.coordinates(rotation, rng, n, principal=False)
    assert a.shape == (n, rotation.num_coordinates)
    omega, omega_dot = jnp.asarray(rng.normal(size=(2, n, 3)))
    b = jnp.asarray(rng.normal(size=a.shape))
    errors = largest(identities(rotation, rates)(a, omega, omega_dot, b))
    # 0.02 rad from a singularity coordinates, rates and accelerations grow like 50, 50^2, 50^3.
    tolerance = 1e-12 if cases.eps() < 1e-10 else 1e-3
    slow = {"acceleration against the second derivative of R", "angular acceleration"}
    for key, value in errors.items():
        assert value < (100.0 * tolerance if key in slow else tolerance), (key, value)


def close_to_singularity(rotation, rng, n, distance=1e-6):
    """Coordinates at a given angle from a singularity, the axis and other angles at random."""
    if isinstance(rotation, EulerAngles):
        a = rng.uniform(-3.0, 3.0, size=(n, 3))
        singular = rng.choice([0.0, np.pi], n)
        if rotation.sequence in cases.TAIT_BRYAN:
            singular = singular - 0.5 * np.pi
        a[:, 1] = singular + distance * rng.choice([-1.0, 1.0], n)
        return jnp.asarray(a)
    u = cases.unit_vectors(rng, n)
    size = {
        "RotationVector": 2.0 * np.pi - distance,
        "RodriguesParameters": 1.0 / np.tan(0.5 * distance),
        "LinearParameters": np.cos(distance),
    }
    return jnp.asarray(size[cases.name(rotation)] * u)


@pytest.mark.parametrize(
    ("rotation", "rates"),
    [
        (RotationVector(), "body"),
        (LinearParameters(), "space"),
        (RodriguesParameters(), "body"),
        (EulerAngles("ZXZ"), "body"),
        (EulerAngles("XYZ"), "space"),
    ],
    ids=cases.name,
)
def test_close_to_the_singularity(rotation, rates, rng):
    """One-sided, at 1e-6 rad from it: tangent and null-space matrices to 1e-8."""
    n = 100
    a = close_to_singularity(rotation, rng, n)
    distance = jax.vmap(rotation.singularity)(a)
    # The distance of the linear parameters is the root of a difference of 1e-12.
    np.testing.assert_allclose(distance, 1e-6, rtol=1e-3)
    omega, b = jnp.asarray(rng.normal(size=(2, n, 3)))

    @jax.jit
    @jax.vmap
    def evaluate(a, omega, b):
        R, R_dot = jax.jvp(rotation.to_matrix, (a,), (rotation.null_space(a, rates) @ omega,))
        _, B_dot = jax.jvp(rotation.to_matrix, (a,), (b,))
        return {
            "T": cases.error(angular_velocity(R, R_dot, rates), omega),
            "H": cases.error(rotation.tangent(a, rates) @ b, angular_velocity(R, B_dot, rates)),
            "rate": cases.error(
                rotation.rate(a, omega, rates), rotation.null_space(a, rates) @ omega
            ),
            "angular velocity": cases.error(
                rotation.angular_velocity(a, b, rates), rotation.tangent(a, rates) @ b
            ),
        }

    for key, value in largest(evaluate(a, omega, b)).items():
        assert value < 1e-8, (key, value)


@pytest.mark.parametrize(
    ("rotation", "inertia"),
    [
        (Quaternion("half-trace"), np.array([3.0, 2.5, 1.5])),
        (Directors(), np.array([3.0, 2.5, 1.5])),
        (RotationVector(), cases.INERTIA),
        (EulerAngles("ZXZ"), np.array([3.0, 2.5, 1.5])),
    ],
)
def test_mass_matrix_is_the_hessian_of_the_kinetic_energy(rotation, inertia, rng):
    a = cases.coordinates(rotation, rng, 20)
    omega = jnp.asarray(rng.normal(size=(20, 3)))
    inertia = jnp.asarray(inertia)
    tensor = jnp.diag(inertia) if inertia.ndim == 1 else inertia

    @jax.jit
    @jax.vmap
    def evaluate(a, omega):
        a_dot = rotation.rate(a, omega)
        M = rotation.mass_matrix(a, inertia)
        T = rotation.null_space(a)
        momentum = rotation.momentum(a, a_dot, inertia) - M @ a_dot
        errors = (
            cases.error(T.T @ M @ T, tensor),
            jnp.abs(momentum).max() / jnp.abs(M @ a_dot).max(),
        )
        return errors, a_dot @ M @ a_dot, omega @ tensor @ omega, M

    errors, twice, expected, M = evaluate(a, omega)
    assert max(error.max() for error in errors) < 1e-12
    np.testing.assert_allclose(twice, expected, rtol=1e-12)
    np.testing.assert_allclose(M, jnp.swapaxes(M, 1, 2), atol=1e-12 * float(jnp.abs(M).max()))


def test_radial_inertia(rng):
    """Lang (31), and Remark 5.3: the pull-back of the directors' mass matrix has I0 = tr(I) / 2."""
    p = cases.quaternions(rng, 1)[0]
    inertia = jnp.asarray(cases.INERTIA)
    Q = jnp.concatenate([p[:, None], 2.0 * Quaternion().null_space(p)], axis=1)
    for kind, value in (("zero", 0.0), ("half-trace", 3.5)):
        rotation = Quaternion(kind)
        assert rotation.radial_inertia_value(inertia) == value
        assert rotation.radial_inertia_value(jnp.diag(inertia)) == value
        block = jnp.zeros((4, 4)).at[0, 0].set(value).at[1:, 1:].set(inertia)
        np.testing.assert_allclose(
            rotation.mass_matrix(p, inertia), 4.0 * Q @ block @ Q.T, atol=1e-13
        )
    D = euler_differential(p)
    M = Directors().mass_matrix(D @ p, inertia)
    np.testing.assert_allclose(
        D.T @ M @ D, Quaternion("half-trace").mass_matrix(p, inertia), atol=1e-13
    )
    principal = Directors().mass_matrix(D @ p, jnp.array([3.0, 2.0, 4.0]))
    np.testing.assert_array_equal(principal, np.diag(np.repeat([1.5, 2.5, 0.5], 3)))


def test_quaternion_off_the_unit_sphere(rng):
    """The stated scaling: R with |p|^2, H T = |p|^2, G T = 0 exactly; to_quaternion normalizes."""
    rotation = Quaternion()
    p = 1.7 * cases.quaternions(rng, 1)[0]
    square = float(p @ p)
    R = rotation.to_matrix(p)
    np.testing.assert_allclose(R @ R.T, square**2 * np.eye(3), atol=1e-13)
    for rates in ("body", "space"):
        T, H = rotation.null_space(p, rates), rotation.tangent(p, rates)
        np.testing.assert_allclose(H @ T, square * np.eye(3), atol=1e-14)
        np.testing.assert_allclose(rotation.constraint_jacobian(p) @ T, 0.0, atol=1e-15)
    np.testing.assert_allclose(jnp.linalg.norm(rotation.to_quaternion(p)), 1.0, rtol=1e-15)
    np.testing.assert_allclose(rotation.project(p), p / np.sqrt(square), rtol=1e-14)
    np.testing.assert_allclose(p @ rotation.project_rate(p / np.sqrt(square), p), 0.0, atol=1e-14)


def test_directors_off_the_manifold(rng):
    """With body rates the rows, with space rates the columns are kept orthonormal: G T = 0."""
    rotation = cases.ROTATIONS[1]
    d = jnp.asarray(rng.normal(size=9))
    for rates in ("body", "space"):
        GT = rotation.constraint_jacobian(d, rates) @ rotation.null_space(d, rates)
        np.testing.assert_allclose(GT, 0.0, atol=1e-15)
        np.testing.assert_allclose(
            rotation.null_space(d, rates) @ d[:3], rotation.rate(d, d[:3], rates), atol=1e-15
        )
    R = rotation.to_matrix(d)
    np.testing.assert_array_equal(R[:, 1], d[3:6])
    np.testing.assert_array_equal(rotation.from_matrix(R), d)
    lengths = 0.5 * (np.sum(np.asarray(R) ** 2, axis=1) - 1.0)
    expected = [*lengths, R[0] @ R[1], R[2] @ R[0], R[1] @ R[2]]
    np.testing.assert_allclose(rotation.constraint(d), expected, rtol=1e-13)


def test_half_rotation_beyond_pi():
    """Half of the angle of p up to 2 pi; the identity where the axis is lost."""
    n = np.array([0.6, 0.0, 0.8])
    both = jax.jit(lambda p: (half_rotation_matrix(p), euler_map(p)))
    for angle in (0.0, 3.0, np.pi, 4.0, 6.0, 2.0 * np.pi - 1e-6):
        p = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * n])
        F, R = map(np.asarray, both(p))
        np.testing.assert_allclose(F, so3.exp(jnp.asarray(0.5 * angle * n)), atol=2e-9)
        np.testing.assert_allclose(F @ F, R, atol=1e-9)
    lost = jnp.array([-1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(half_rotation_matrix(lost), np.eye(3))
    assert jnp.isfinite(jax.jit(jax.jacfwd(jax.jacfwd(half_rotation_matrix)))(lost)).all()
    stretched = 1.7 * jnp.array([-0.5, 0.5, 0.5, 0.5])
    F = half_rotation_matrix(stretched)
    np.testing.assert_allclose(F @ F, euler_map(stretched), atol=1e-15)


def test_modules_are_pytrees_without_leaves():
    for rotation in cases.ROTATIONS:
        assert jax.tree.leaves(rotation) == []
        assert eqx.tree_equal(rotation, jax.tree.map(lambda x: x, rotation))
    assert EulerAngles("ZXZ") != EulerAngles("XYZ")
    assert hash(EulerAngles("ZXZ")) == hash(EulerAngles("ZXZ"))


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="must be one of ZXZ, XYX, YZY, .*; got 'zxz'"):
        EulerAngles("zxz")
    with pytest.raises(ValueError, match='must be "zero" or "half-trace"; got \'trace\''):
        Quaternion("trace")
    with pytest.raises(ValueError, match=r'`rates` must be "body" or "space"; got \'world\''):
        Quaternion().rate(jnp.array([1.0, 0.0, 0.0, 0.0]), jnp.zeros(3), "world")
    for rotation in cases.ROTATIONS:
        with pytest.raises(ValueError, match="`rates` must be"):
            rotation.null_space(rotation.center(), "world")
    with pytest.raises(ValueError, match=r"`inertia` must have shape \(3,\), .* got shape \(2,\)"):
        cases.ROTATIONS[1].mass_matrix(jnp.ones(9), jnp.ones(2))
    with pytest.raises(ValueError, match="`inertia` must have shape"):
        EulerAngles("ZXZ").mass_matrix(jnp.ones(3), jnp.ones(4))
    beyond = jnp.array([0.6, 0.8, 0.0, 0.0])
    linear = cases.VECTORIAL[3]
    with pytest.raises(ValueError, match="represent rotations by at most 90 degrees"):
        linear.from_quaternion(beyond)
    with pytest.raises(eqx.EquinoxRuntimeError, match="represent rotations by at most 90 degrees"):
        eqx.filter_jit(linear.from_quaternion)(beyond)
