"""The pseudo-inverse and its derivatives, also of matrices without full rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off

import rigidjax as rj
from rigidjax.mechanics.dynamics.pseudo_inverse import Blocks, ConstrainedEquations, pseudo_inverse

CASES = {"wide": (3, 5, 3), "tall": (5, 3, 3), "square": (4, 4, 4), "redundant": (5, 4, 2)}


def factors(name, rng):
    """Matrices whose product has the shape and the rank of the case."""
    m, n, rank = CASES[name]
    # Near to matrices with orthogonal columns: well conditioned.
    shapes = ((m, rank), (rank, n))
    return tuple(jnp.asarray(0.2 * rng.normal(size=s) + np.eye(*s)) for s in shapes)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.exhaustive("wide")
def test_value_and_derivatives_at_constant_rank(name, rng):
    at, along = factors(name, rng), factors(name, rng)
    weights = jnp.asarray(rng.normal(size=(CASES[name][1], CASES[name][0])))

    def value(s):
        B, C = (a + s * d for a, d in zip(at, along, strict=True))
        return jnp.sum(weights * pseudo_inverse(B @ C))

    both = jax.jit(lambda s: (value(s), jax.jacfwd(value)(s), jax.grad(value)(s)))
    wanted = np.linalg.pinv(at[0] @ at[1])
    assert error(pseudo_inverse(at[0] @ at[1]), wanted) < round_off(1000)
    h = 1e-3
    # Central differences of order 4.
    outside = [both(k * h)[0] for k in (-2.0, -1.0, 1.0, 2.0)]
    slope = (outside[0] - 8 * outside[1] + 8 * outside[2] - outside[3]) / (12 * h)
    _, forward, reverse = both(0.0)
    assert error(forward, reverse) < round_off(1000)
    assert error(forward, slope) < 1e-8


def inverses(J, H, blocks=None):
    """J^+, and the inverse of H in the motions that J leaves free."""
    equations, (m, n) = ConstrainedEquations(J, H, blocks), J.shape
    columns = jax.vmap(lambda f: equations.solve(f, jnp.zeros(m))[0])(jnp.eye(n))
    return equations.inverse, columns.T


@pytest.mark.parametrize("name", CASES)
@pytest.mark.exhaustive
def test_constrained_equations_and_derivatives(name, rng):
    """Against one matrix with multipliers; no mass is needed where constraints hold."""
    at, along = factors(name, rng), factors(name, rng)
    m, n, rank = CASES[name]
    J0 = np.asarray(at[0] @ at[1])
    free = np.linalg.svd(J0)[2][rank:]
    H0 = jnp.asarray(free.T @ np.diag(10.0 ** np.arange(len(free))) @ free)
    change = rng.normal(size=(n, n))
    change = jnp.asarray(change @ change.T)
    # This also holds for contradictory constraints.
    f, c = jnp.asarray(rng.normal(size=n)), jnp.asarray(rng.normal(size=m))

    def value(s):
        J = (at[0] + s * along[0]) @ (at[1] + s * along[1])
        H = H0 + s * change
        return jnp.concatenate(ConstrainedEquations(J, H).solve((1 + s) * f, c - s * c**2))

    slopes = jax.jacfwd(value), jax.jacfwd(jax.jacfwd(value))
    both = jax.jit(lambda s: (value(s), *(slope(s) for slope in slopes)))
    found, forward, second = both(0.0)
    nearest = J0 @ np.linalg.pinv(J0) @ c
    wanted = np.linalg.pinv(np.block([[H0, J0.T], [J0, np.zeros((m, m))]]))
    wanted = wanted @ np.concatenate([f, nearest])
    assert error(found, wanted) < round_off(10_000)
    # One-sided by necessity: for s < 0 the masses are negative.
    h = 1e-3
    steps = [both(k * h) for k in range(7)]
    weights = np.array([-49 / 20, 6, -15 / 2, 20 / 3, -15 / 4, 6 / 5, -1 / 6])
    for k, slope in enumerate((forward, second)):
        expected = sum(w * step[k] for w, step in zip(weights, steps, strict=True)) / h
        assert error(slope, expected) < 1e-6 * max(1.0, float(jnp.max(jnp.abs(slope))))
    weight = jnp.asarray(rng.normal(size=n + m))
    reverse = jax.grad(lambda s: weight @ value(s))
    ways = jax.jit(lambda s: (reverse(s), jax.jacfwd(reverse)(s), jax.grad(reverse)(s)))
    for actual, slope in zip(ways(0.0), (forward, second, second), strict=True):
        size = max(1.0, float(jnp.max(jnp.abs(slope))))
        assert error(actual[None], (weight @ slope)[None]) < round_off(10_000) * size


@pytest.mark.parametrize("name", CASES)
@pytest.mark.exhaustive("wide")
def test_kernels_decompose_without_singular_values(name, rng):
    """The pseudo-inverse and what masses do in the motions left free: those of LAPACK."""
    B, C = factors(name, rng)
    n = CASES[name][1]
    root = rng.normal(size=(n, n))
    J, H = B @ C, jnp.asarray(root @ root.T + np.eye(n))
    kernel = rj.native.jit(lambda J, H: (*inverses(J, H), pseudo_inverse(J)))
    assert kernel.why_not(J, H) == []
    P, X, alone = jax.jit(kernel)(J, H)
    for value in (P, alone):
        assert error(value, np.linalg.pinv(J)) < round_off(1000)
    assert error(X, inverses(J, H)[1]) < round_off(1000)


def test_kernels_truncate_as_lapack_does(rng):
    """Nearly redundant constraints, such as slightly open loops, agree to second order.

    A plain decomposition depends on the order of the constraints to first order, by 1e-7 here.
    """
    B, C = factors("redundant", rng)
    size, n = 1e-7, C.shape[1]
    H = jnp.asarray(np.diag(1.0 + np.arange(n)))
    J = B @ C + size * rng.normal(size=(len(B), n))
    exact = jax.jit(inverses)(J, H)
    kernel = jax.jit(rj.native.jit(inverses))(J, H)
    for actual, expected in zip(kernel, exact, strict=True):
        assert error(actual, expected) < 100 * size**2


def test_matrices_of_zeros_and_without_rows():
    for A in (jnp.zeros((3, 2)), jnp.zeros((0, 4))):
        assert pseudo_inverse(A).shape == A.shape[::-1]
        change = jax.jvp(pseudo_inverse, (A,), (jnp.ones_like(A),))[1]
        assert np.array_equal(change, jnp.zeros(A.shape[::-1]))
        H = jnp.diag(jnp.arange(1.0, A.shape[1] + 1.0))
        P, X = inverses(A, H)
        assert np.array_equal(P, jnp.zeros(A.shape[::-1]))
        assert error(X, jnp.linalg.inv(H)) < round_off(10)


@pytest.mark.exhaustive
def test_second_derivative_of_a_scalar():
    # 1/a has the second derivative 2/a^3.
    second = jax.grad(jax.grad(lambda a: pseudo_inverse(a[None, None])[0, 0]))(jnp.array(2.0))
    assert error(second, 0.25) < round_off(10)


def test_more_constraints_than_kernels_support(rng):
    J = jnp.asarray(rng.normal(size=(66, 68)))
    found = rj.native.jit(pseudo_inverse)(J)
    np.testing.assert_allclose(found, np.linalg.pinv(J), atol=1e-10)


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_independent_blocks_are_decomposed_separately(rng):
    """Two loops of one shape, a redundant one, columns and rows of none: as the whole matrix."""
    small, redundant = factors("wide", rng), factors("redundant", rng)
    parts = [small[0] @ small[1], -2.0 * small[0] @ small[1], redundant[0] @ redundant[1]]
    places = [((0, 4, 5), (2, 3, 4, 7, 9)), ((1, 2, 3), (0, 1, 5, 6, 8))]
    places.append((range(6, 11), range(11, 15)))
    blocks = Blocks.from_rows((*places, ((11,), ())))
    assert len(blocks.parts) == 3 and len(blocks.stacks()) == 2
    J = jnp.zeros((12, 16))
    for (rows, columns), part in zip(places, parts, strict=True):
        J = J.at[np.ix_(rows, columns)].set(part)
    along = jnp.where(J != 0, rng.normal(size=J.shape), 0.0)
    root = rng.normal(size=(16, 16))
    H = jnp.asarray(root @ root.T + np.eye(16))

    def all_of(blocks):
        def function(J, H):
            return *inverses(J, H, blocks), pseudo_inverse(J, 1e-6, blocks)

        return lambda J, H: jax.jvp(function, (J, H), (along, jnp.ones_like(H)))

    whole = jax.jit(all_of(None))(J, H)
    batch = jax.vmap(all_of(blocks))(jnp.stack([J, J]), jnp.stack([H, H]))
    kernel = rj.native.jit(all_of(blocks))
    assert kernel.why_not(J, H) == []
    for found in (jax.jit(all_of(blocks))(J, H), jax.tree.map(lambda x: x[1], batch), kernel(J, H)):
        for actual, expected in zip(*map(jax.tree.leaves, (found, whole)), strict=True):
            size = max(1.0, float(jnp.max(jnp.abs(expected))))
            assert error(actual, expected) < round_off(1000) * size
    weight = jnp.asarray(rng.normal(size=12))

    def sums(J, H):
        return weight @ ConstrainedEquations(J, H, blocks).solve(H[0], J[:, 1])[1]

    reverse = jax.jit(jax.grad(sums, (0, 1)))(J, H)
    change = jax.jvp(sums, (J, H), (along, jnp.ones_like(H)))[1]
    expected = jnp.sum(reverse[0] * along) + jnp.sum(reverse[1])
    assert abs(change - expected) < round_off(1000) * max(1.0, abs(float(change)))

    def sums_along(s):
        return sums(J + s * along, H + s)

    second = [jax.jit(of(jax.grad(sums_along)))(0.0) for of in (jax.grad, jax.jacfwd)]
    expected = jax.jit(jax.jacfwd(jax.jacfwd(sums_along)))(0.0)
    for actual in second:
        assert abs(actual - expected) < round_off(10_000) * max(1.0, abs(float(expected)))


def test_blocks_with_a_common_column_are_merged():
    touched = [((0,), (0, 1)), ((1,), (4,)), ((2,), (2, 3)), ((3,), (1, 2))]
    assert Blocks.from_rows(touched).parts == (((1,), (4,)), ((0, 2, 3), (0, 1, 2, 3)))
