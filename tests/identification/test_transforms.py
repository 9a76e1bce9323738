"""Coordinates of parameters: always admissible, inverse of each other, differentiable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax.identification import (
    Bounded,
    InertiaTensor,
    Orientation,
    Positive,
    PrincipalInertia,
    Unconstrained,
)
from rigidjax.rotations import so3

MOMENTS = np.array([0.021, 0.019, 0.0051])
TENSOR = np.array([[2.0, 0.3, -0.2], [0.3, 1.7, 0.1], [-0.2, 0.1, 1.2]])
QUATERNIONS = np.array([[0.5, 0.5, -0.5, 0.5], [1.0, 0.0, 0.0, 0.0]])

CASES = {
    "free": (Unconstrained(), np.array([[1.0, -2.0, 3.0]])),
    "free, two of three": (Unconstrained(which=(0, 2)), np.array([1.0, -2.0, 3.0])),
    "free number": (Unconstrained(), np.array(2.0)),
    "positive": (Positive(), np.array([0.1, 2.0])),
    "positive, one of two": (Positive(which=(1,)), np.array([-0.1, 2.0])),
    "bounded": (Bounded(-1.0, 3.0), np.array([0.3, 2.5])),
    "bounded, own bounds": (Bounded([0.0, 5.0], [1.0, 9.0], which=(1,)), np.array([7.0, 6.0])),
    "principal inertia": (PrincipalInertia(), MOMENTS),
    "I1 fixed": (PrincipalInertia(fixed=("I1",)), MOMENTS),
    "I2 fixed": (PrincipalInertia(fixed=("I2",)), MOMENTS),
    "I3 fixed": (PrincipalInertia(fixed=("I3",)), MOMENTS),
    "I2 and I3 fixed": (PrincipalInertia(fixed=("I2", "I3")), MOMENTS),
    "I1 and I3 fixed": (PrincipalInertia(fixed=("I1", "I3")), MOMENTS),
    "inertia tensor": (InertiaTensor(), TENSOR),
    "orientation": (Orientation(), QUATERNIONS),
}
every_case = pytest.mark.parametrize("name", CASES)


def euler_values(inertia):
    moments = inertia if inertia.ndim == 1 else np.linalg.eigvalsh(inertia)
    return 0.5 * moments.sum() - moments


@every_case
def test_coordinates_and_leaf_are_inverse(name):
    transform, leaf = CASES[name]
    u = transform.coordinates(jnp.asarray(leaf))
    assert u.shape == (len(transform.fitted(leaf.shape)),)
    np.testing.assert_allclose(transform.leaf(u, jnp.asarray(leaf)), leaf, rtol=1e-14, atol=1e-16)


@every_case
def test_any_coordinates_give_an_admissible_leaf(name, rng):
    transform, leaf = CASES[name]
    count = len(transform.fitted(leaf.shape))
    us = 3.0 * rng.normal(size=(50, count))
    leaves = np.asarray(jax.jit(jax.vmap(lambda u: transform.leaf(u, jnp.asarray(leaf))))(us))
    if leaf.shape in ((3, 3),) or name.startswith(("principal", "I")):
        assert min(euler_values(np.asarray(x)).min() / np.abs(x).max() for x in leaves) > -1e-15
    if isinstance(transform, Positive):
        chosen = list(transform.fitted(leaf.shape))
        assert np.all(leaves[:, chosen] > 0)
    if isinstance(transform, Bounded):
        chosen = list(transform.fitted(leaf.shape))
        lower = np.broadcast_to(transform.lower, leaf.shape)[chosen]
        upper = np.broadcast_to(transform.upper, leaf.shape)[chosen]
        assert np.all((leaves[:, chosen] >= lower) & (leaves[:, chosen] <= upper))
    held = np.setdiff1d(
        np.arange(len(transform.components(leaf.shape))), transform.fitted(leaf.shape)
    )
    estimates = np.asarray(jax.jit(jax.vmap(transform.estimates))(leaves))
    start = transform.estimates(jnp.asarray(leaf))
    np.testing.assert_array_equal(estimates[:, held], np.broadcast_to(start[held], (50, len(held))))


@every_case
def test_perturbation_and_change_are_inverse_to_first_order(name, rng):
    transform, leaf = CASES[name]
    leaf = jnp.asarray(leaf)
    size = len(transform.components(leaf.shape))
    change = jnp.asarray(rng.normal(size=size))

    def back(s):
        return transform.change(leaf, transform.perturbed(leaf, s * change))

    value, derivative = jax.jvp(back, (jnp.array(0.0),), (jnp.array(1.0),))
    np.testing.assert_allclose(value, 0, atol=1e-16)
    np.testing.assert_allclose(derivative, change, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ["orientation", "free, two of three", "positive, one of two"])
def test_components_are_fitted_independently(name):
    """As many components as coordinates move, in as many directions; second derivatives finite."""
    transform, leaf = CASES[name]
    leaf = jnp.asarray(leaf)
    u = transform.coordinates(leaf)
    chosen = list(transform.fitted(leaf.shape))

    def components(u):
        return transform.change(leaf, transform.leaf(u, leaf))[jnp.asarray(chosen)]

    first = jax.jacfwd(components)
    J, second = jax.jit(lambda u: (first(u), jax.jacfwd(first)(u)))(u)
    assert np.linalg.matrix_rank(np.asarray(J)) == len(chosen)
    assert np.all(np.isfinite(second))


def test_orientation_reports_rotation_vectors():
    p = jnp.asarray(QUATERNIONS)
    estimates = Orientation().estimates(p)
    np.testing.assert_allclose(estimates[:3], so3.log_quaternion(p[0]), rtol=1e-15)
    np.testing.assert_allclose(jnp.linalg.norm(Orientation().leaf(jnp.ones(6), p), axis=1), 1)


class TestStartOfPrincipalInertia:
    def test_pendulum_values_move_to_the_nearest_physical_ones(self):
        start = np.array([20.7e-3, 18.8e-3, 1.391e-3])
        moved, note = PrincipalInertia(fixed=("I3",)).admissible(start)
        # E1 has to grow by (I1 - I2 - I3)/2 and the margin, half of it from each of I1 and I2.
        margin = 1e-3 * 0.5 * start.sum()
        step = 0.5 * (start[0] - start[1] - start[2]) + margin
        np.testing.assert_allclose(moved, start + np.array([-step, step, 0]), rtol=1e-14)
        assert "violates the triangle inequality" in note
        assert "E1 = -0.0002545" in note
        assert "nearest physical inertia, (0.0204251, 0.0190749, 0.001391)" in note

    def test_physical_start_is_unchanged(self):
        for fixed in ((), ("I1",), ("I2", "I3")):
            moved, note = PrincipalInertia(fixed=fixed).admissible(MOMENTS)
            assert moved is MOMENTS and note == ""

    def test_flat_body_is_moved_inside_the_bound(self):
        moved, note = PrincipalInertia().admissible(np.array([3.0, 2.0, 1.0]))
        assert euler_values(moved).min() > 0
        assert "on the limit of a flat body (E1 = 0" in note
        assert np.abs(moved - [3, 2, 1]).max() < 0.01

    @pytest.mark.parametrize("fixed", [(), ("I1",), ("I3",), ("I1", "I2"), ("I2", "I3")])
    def test_nearest_physical_against_random_candidates(self, fixed, rng):
        """No admissible point among many random ones is closer."""
        transform = PrincipalInertia(fixed=fixed)
        free = list(transform.fitted((3,)))
        for start in ([5.0, 1.0, 2.0], [1.0, 8.0, 3.0], [1.0, 1.5, 4.0]):
            start = np.array(start)
            moved, _ = transform.admissible(start)
            margin = euler_values(moved).min()
            assert margin > 0
            held = [k for k in range(3) if k not in free]
            np.testing.assert_array_equal(moved[held], start[held])
            trials = np.tile(start, (20000, 1))
            trials[:, free] += rng.normal(size=(20000, len(free))) * np.linalg.norm(moved - start)
            values = 0.5 * trials.sum(axis=1, keepdims=True) - trials
            admissible = trials[(values >= margin).all(axis=1) & (trials > 0).all(axis=1)]
            distance = np.linalg.norm(admissible - start, axis=1)
            assert distance.size and distance.min() >= np.linalg.norm(moved - start) - 1e-12

    @pytest.mark.parametrize(
        ("fixed", "sides", "axes"),
        [
            ((), (0, -1, 0), [1]),
            (("I3",), (1, 0), [1]),
            (("I3",), (-1, -1), [0, 2]),
            (("I2", "I3"), (1,), [0]),
            (("I2", "I3"), (-1,), [1]),
            (("I1", "I2"), (0,), []),
        ],
    )
    def test_active_limits_are_principal_euler_values(self, fixed, sides, axes):
        """At the limits of its coordinates a body is flat across these axes."""
        transform, leaf = PrincipalInertia(fixed=fixed), jnp.asarray(MOMENTS)
        limits, sides = transform.limits(leaf), np.array(sides)
        u = np.where(sides < 0, limits.lower, transform.coordinates(leaf))
        flat = np.asarray(transform.leaf(jnp.where(sides > 0, limits.upper, u), leaf))
        found = transform.active_limits(flat, sides)
        assert [a.quantity for a in found] == [f"principal Euler value E{k + 1}" for k in axes]
        assert all(abs(a.combination @ flat) < 1e-8 * flat.sum() for a in found)
        assert euler_values(flat).min() > -1e-16


def test_tensor_start_is_moved_to_the_nearest_physical_one():
    R = np.asarray(so3.exp(jnp.array([0.3, -0.5, 0.2])))
    start = R @ np.diag([5.0, 1.0, 2.0]) @ R.T
    moved, note = InertiaTensor().admissible(start)
    assert euler_values(moved).min() > 0
    assert "nearest physical inertia" in note
    assert InertiaTensor().active_limits(moved, np.zeros(6)) == ()
    flat = R @ np.diag([3.0, 1.0, 2.0]) @ R.T
    (active,) = InertiaTensor().active_limits(flat, np.array([0, -1, 0, 0, 0, 0]))
    estimates = np.asarray(InertiaTensor().estimates(jnp.asarray(flat)))
    assert abs(active.combination @ estimates) < 1e-14
    # Another tensor: half the trace less the moment about the axis.
    other = np.asarray(InertiaTensor().estimates(jnp.asarray(TENSOR)))
    n = R[:, 0]
    expected = 0.5 * np.trace(TENSOR) - n @ TENSOR @ n
    np.testing.assert_allclose(active.combination @ other, expected, rtol=1e-13)


def test_a_flat_tensor_is_reached_where_one_logarithm_ends():
    """The other coordinates do not grow, whatever the axis across which the body is flat."""
    R = np.asarray(so3.exp(jnp.array([0.3, -0.5, 0.2])))
    transform = InertiaTensor()
    flat = [R @ np.diag([3.0 - 1e-8, 1.0, 2.0]) @ R.T for R in (R, np.eye(3), R @ R @ R)]
    for inertia in map(jnp.asarray, flat):
        u = np.asarray(transform.coordinates(inertia))
        assert np.sum(u < -5) == 1
        assert np.abs(u[u > -5]).max() < 10


@pytest.mark.parametrize(
    ("lower", "upper", "inside"),
    [(0.1, 0.3, 0.2), (0.1, np.inf, 7.0), (-np.inf, -0.3, -9.0), (-np.inf, np.inf, 5.0)],
)
def test_bounded_numbers_reach_their_bounds(lower, upper, inside):
    transform, leaf = Bounded(lower, upper), jnp.asarray(inside)
    limits = transform.limits(leaf)
    slope = jax.jacfwd(lambda u: transform.leaf(u, leaf))
    for limit, bound in ((limits.lower, lower), (limits.upper, upper)):
        assert np.isfinite(limit) == np.isfinite(bound)
        if np.isfinite(bound):
            assert float(transform.leaf(limit, leaf)) == bound
            # A search on the bound sees whether to leave it.
            assert slope(limit) == slope(transform.coordinates(leaf)) > 0
            assert transform.admissible(np.asarray(bound)) == (bound, "")
    np.testing.assert_allclose(transform.leaf(transform.coordinates(leaf), leaf), inside)
    spread = np.isfinite(lower) and np.isfinite(upper)
    assert np.isfinite(transform.spread(leaf)) == spread
    if np.isfinite(lower):
        (active,) = transform.active_limits(np.asarray(lower), np.array([-1]))
        assert active.limit == lower and active.is_lower


def test_two_of_three_elements_on_their_bounds():
    transform = Bounded([0.0, 1.0, 2.0], 5.0, which=(2, 0))
    found = transform.active_limits(np.array([0.0, 3.0, 5.0]), np.array([1, -1]))
    assert [(int(np.argmax(a.combination)), a.limit, a.is_lower) for a in found] == [
        (2, 5.0, False),
        (0, 0.0, True),
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrincipalInertia(fixed=("I4",)), r"takes at most two of the names"),
        (lambda: PrincipalInertia(fixed=("I1", "I2", "I3")), r"takes at most two of the names"),
        (lambda: PrincipalInertia().components((3, 3)), r"takes principal moments of shape \(3,\)"),
        (lambda: InertiaTensor().components((3,)), r"takes a tensor of shape \(3, 3\)"),
        (lambda: Orientation().components((3,)), r"takes quaternions of shape"),
        (lambda: Orientation().admissible(2 * QUATERNIONS[1]), r"must start as a unit quaternion"),
        (lambda: Positive().admissible(np.array(0.0)), r"must start above zero"),
        (
            lambda: PrincipalInertia().admissible(-MOMENTS),
            r"principal moments must start above zero",
        ),
        (lambda: Bounded(0.0, 1.0).admissible(np.array(2.0)), r"must start between"),
        (lambda: Bounded(1.0, 1.0), r"needs lower < upper"),
        (lambda: Unconstrained(which=(3,)).components((3,)), r"must be between 0 and 2"),
        (lambda: Unconstrained(which=()).components((3,)), r"different indices of elements"),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
