"""Linear regression of inertial parameters: the matrix, base parameters, least squares."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.arms import PLANTED, excitation, mixed_tree, planar_arm

import rigidjax as rj
from rigidjax import identification as ident

KINDS = rj.JointCoordinate, rj.JointRate

# The matrix.


def test_joint_states_are_consistent():
    """Poses and velocities have these coordinates, up to revolutions, and violate no joint."""
    system, q, v = mixed_tree(), np.array([7.3, -0.4, 0.9]), np.array([0.3, -1.2, 0.8])
    model = rj.Absolute(system)

    @jax.jit
    def readings(q, v):
        y, t = model.encode(rj.joint_states(system, q, v)), jnp.zeros(())
        names = [joint.name for joint in system.joints]
        found = [[kind(name).predict(model, t, y) for name in names] for kind in KINDS]
        return *map(jnp.stack, found), jnp.stack(model.drift(t, y))

    coordinates, rates, violations = readings(q, v)
    np.testing.assert_allclose(coordinates.ravel(), q - [2 * np.pi, 0, 0], atol=1e-14)
    np.testing.assert_allclose(rates.ravel(), v, atol=1e-14)
    np.testing.assert_allclose(violations, 0, atol=1e-14)


# Base parameters.


@pytest.mark.parametrize(("gravity", "count"), [(-9.81, 6), (0.0, 4)])
def test_planar_arm_has_six_base_parameters(gravity, count):
    """Two joint inertias, two first moments of the outer link, and two of the inner under gravity.

    Khalil, Dombre (2004), Modeling, Identification and Control of Robots, Section 9.4.
    """
    data = ident.joint_data(planar_arm(gravity), *excitation(2), np.ones((200, 2)))
    base = ident.base_parameters(data.matrix.reshape(400, -1), data.labels)
    assert base.rank == count
    assert base.rank == np.linalg.matrix_rank(data.matrix.reshape(400, -1), tol=1e-9)
    assert "upper.Iyy + 0.0625 fore.m" in base.expressions
    assert "fore.Izz" in base.idle and f"{count} base parameters of 20" in str(base)


def test_combinations_reproduce_the_matrix(rng):
    system = mixed_tree()
    q, v, a = excitation(3)
    data = ident.joint_data(system, q, v, a, np.ones((200, 3)), terms=("rotor",))
    rows = data.matrix.reshape(600, -1)
    base = ident.base_parameters(rows, data.labels)
    assert base.rank == np.linalg.matrix_rank(rows, tol=1e-9)
    assert np.count_nonzero(base.singular_values > 1e-9) == base.rank
    pi = rng.normal(size=rows.shape[1])
    np.testing.assert_allclose(
        rows[:, base.chosen] @ base.combinations @ pi, rows @ pi, atol=1e-9 * np.abs(rows).max()
    )
    assert 1 < base.condition < 1e6


# Least squares.


def test_planted_parameters_are_recovered(exact_arm):
    found = ident.regress(exact_arm)
    np.testing.assert_allclose(found.values, found.base.combinations @ PLANTED, atol=1e-11)
    assert found.rms.max() < 1e-12 and "upper.mx + 0.25 fore.m" in str(found)


def test_armature_is_a_term_of_the_regression():
    bob = rj.Body("bob", 1.0, (0.1,) * 3, (1.0, 0, 0))
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 0, 1), name="hinge", armature=0.3)
    still = np.zeros((3, 1))
    with pytest.raises(ValueError, match="`armature` of the joint 'hinge' out.*term \"rotor\""):
        ident.joint_data(rj.System(bob, hinge), still, still, still, still)


def test_essential_parameters_are_those_that_differ_from_zero(exact_arm):
    """Planted zeros go, the others stay, and the rest is least squares without their columns."""
    data = exact_arm
    present = np.array([not label.endswith("offset") for label in data.labels])
    rng = np.random.default_rng(3)
    torques = data.matrix @ (PLANTED * present)
    torques = torques + 0.02 * rng.normal(size=torques.shape)
    linear = ident.regress(dataclasses.replace(data, torques=torques))
    essential = ident.essential_regression(linear, least=2.5)
    left_out = set(linear.base.expressions) - set(essential.base.expressions)
    assert {"shoulder.offset", "elbow.offset"} >= left_out and left_out
    assert np.all(np.abs(essential.values) > 2.4 * essential.std)
    W = (data.matrix[:, :, essential.base.chosen] / essential.noise[:, None]).reshape(
        -1, essential.base.rank
    )
    expected = np.linalg.lstsq(W, (torques / essential.noise).ravel(), rcond=None)[0]
    np.testing.assert_allclose(essential.values, expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"least=...\)` must be positive; got 0"):
        ident.essential_regression(linear, least=0)
    with pytest.raises(ValueError, match="no base parameter is 1e.09 standard deviations"):
        ident.essential_regression(linear, least=1e9)


def test_coupled_motors_act_by_the_transposed_combination():
    """Friction of a motor that turns with two joints: torque on each, power of both."""
    q, v, a = excitation(2)
    data = ident.joint_data(
        planar_arm(), q, v, a, np.zeros_like(q), terms=("viscous", "rotor", "offset"),
        coupled={"motor": {"shoulder": 0.5, "elbow": -2.0}},
    )  # fmt: skip
    assert data.labels[-2:] == ("motor.viscous", "motor.rotor") and data.positive[-2:].all()
    rate = 0.5 * v[:, 0] - 2.0 * v[:, 1]
    np.testing.assert_allclose(np.sum(data.matrix[:, :, -2] * v, axis=1), rate**2)
    np.testing.assert_allclose(data.matrix[:, 1, -2], -2.0 * rate)


def test_known_loads_are_subtracted():
    """A payload on the forearm equals a forearm that contains it."""
    q, v, a = excitation(2)
    load = rj.MassProperties(0.4, (0.1, 0.0, 0.05), (0.01, 0.02, 0.015))
    zero = np.zeros_like(q)
    plain = ident.joint_data(planar_arm(), q, v, a, zero)
    expected = plain.matrix[:, :, 10:] @ np.asarray(load.parameters())
    loaded = ident.joint_data(planar_arm(), q, v, a, zero, loads={"fore": load})
    np.testing.assert_allclose(plain.torques - loaded.torques, expected, atol=1e-12)
    both = ident.stack_joint_data([plain, loaded])
    assert both.matrix.shape == (400, 2, 20)
    np.testing.assert_array_equal(both.torques[200:], loaded.torques)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coupled": {"m": {"hip": 1.0}}}, r"'m' combines rates of \['shoulder', 'elbow'\]"),
        ({"coupled": {"m": {"elbow": np.inf}}}, "the factors of 'm' must be finite"),
        (
            {"loads": {"hand": rj.MassProperties(1.0, (0, 0, 0), (1, 1, 1))}},
            "no body called 'hand'",
        ),
    ],
)
def test_wrong_couplings_and_loads(options, message):
    q, v, a = excitation(2)
    with pytest.raises(ValueError, match=message):
        ident.joint_data(planar_arm(), q, v, a, np.zeros_like(q), **options)


def test_recordings_with_other_parameters_are_not_joined():
    q, v, a = excitation(2)
    plain = ident.joint_data(planar_arm(), q, v, a, np.zeros_like(q))
    more = ident.joint_data(planar_arm(), q, v, a, np.zeros_like(q), terms=("viscous",))
    for parts in ([], [plain, more]):
        with pytest.raises(ValueError, match="all with the same parameters"):
            ident.stack_joint_data(parts)
