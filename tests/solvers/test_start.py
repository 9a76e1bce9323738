"""Starts that violate an algebraic equation."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
from solvers import cases

import rigidjax as rj
from rigidjax.solvers import BDF, ImplicitTerm, MassMatrixTerm, Radau1, Radau5, Seulex, dae_term


@eqx.filter_jit
def begin(solver, term, y0, rtol=1e-6, atol=1e-6):
    """The first state of a solver, as `diffrax.diffeqsolve` makes it."""
    finder = eqx.tree_at(
        lambda f: (f.rtol, f.atol, f.norm), solver.root_finder, (rtol, atol, optx.rms_norm)
    )
    solver = eqx.tree_at(lambda s: s.root_finder, solver, finder)
    return solver.init(term, jnp.zeros(()), jnp.ones(()), y0, None)


def start(values, k=None, change=0.0):
    y = np.array(values, float)
    if k is not None:
        y[k] += change
    return jnp.asarray(y)


@pytest.mark.parametrize("size, rank", [(1, 1), (5, 5), (12, 6), (40, 40), (40, 20)])
def test_first_guess_of_a_rate(size, rank, rng):
    """The solution of least norm, whatever units equations have; zero if there is none to find."""
    A, B = rng.normal(size=(size, rank)), rng.normal(size=(rank, size))
    A = np.linalg.qr(A)[0] if rank == size else A
    B = np.linalg.qr(B)[0] if rank == size else B
    M = 10.0 ** rng.uniform(-6.0, 6.0, size=(size, 1)) * (A @ B)
    expected = np.linalg.pinv(B) @ rng.normal(size=rank)
    zero = jnp.zeros(size)

    @jax.jit
    def guess(mass):
        """Return the first guess for equations whose matrix is a multiple of M, the last one
        algebraic.
        """
        A = jnp.zeros((size + 1, size + 1)).at[:size, :size].set(mass * M)
        f = jnp.append(jnp.asarray(M @ expected), 0.0)
        term = MassMatrixTerm(lambda t, y, args: f, lambda t, y, args: A, check_start=False)
        return Radau5().func(term, 0.0, jnp.zeros(size + 1), None)

    # Singular directions get round-off over the square root of round-off.
    within = 1e-6 * np.linalg.norm(expected)
    rate = np.append(expected, 0.0)
    np.testing.assert_allclose(guess(1.0), rate, atol=within)
    for slope in (jax.jacfwd(guess)(1.0), jax.jacrev(guess)(1.0)):
        np.testing.assert_allclose(slope, -rate, atol=within)
    nothing = MassMatrixTerm(lambda t, y, args: zero, jnp.zeros((size, size)), check_start=False)
    np.testing.assert_array_equal(Radau5().func(nothing, 0.0, zero, None), zero)


PENDULUM = functools.partial(start, cases.PENDULUM_START)
ROBERTSON = functools.partial(start, (1.0, 0.0, 0.0))


@pytest.mark.parametrize("solver", [Radau5(), BDF(), Seulex()], ids=lambda s: type(s).__name__)
def test_consistent_rates_with_a_mass_matrix(solver):
    """The equation and its residual: the sum of concentrations is 1.002."""
    name = type(solver).__name__
    message = rf"start of `{name}` is not consistent: .* number 2 has the residual 0.002\."
    with pytest.raises(RuntimeError, match=message):
        begin(solver, cases.robertson_dae(), ROBERTSON(1, 2e-3))
    state = begin(solver, cases.robertson_dae(), ROBERTSON(1, 2e-9))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state))


def test_consistent_rates_of_implicit_equations():
    message = r"number 2 has the residual 0.002\..*also pass the rates of the start as `rate=`"
    with pytest.raises(RuntimeError, match=message):
        begin(Radau5(), cases.robertson_implicit(), ROBERTSON(1, 2e-3))
    begin(Radau5(), cases.robertson_implicit(), ROBERTSON())

    # y'^2 = y has two rates, and none near zero: the initial value selects one.
    def residual_of_square(t, y, rate, args):
        return rate**2 - y

    with pytest.raises(RuntimeError, match=r"number 0 has the residual 4\."):
        begin(Radau5(), ImplicitTerm(residual_of_square), jnp.array([4.0]))
    rated = ImplicitTerm(residual_of_square, rate=lambda t, y, args: jnp.full_like(y, 1.9))
    begin(Radau5(), rated, jnp.array([4.0]))


# Index; violated unknown of (x, z, x', z', tension); text of the error, if there is one.
VIOLATIONS = [
    (1, 4, "number 4 has"),
    (2, 2, "number 4 has"),
    (2, 4, None),
    (3, 0, "number 4 has"),
    (3, 2, "number 4, differentiated by time as index 3"),
    (3, 4, None),
]


@pytest.mark.parametrize("index,unknown,expected", VIOLATIONS)
def test_inconsistent_start_at_each_index_raises(index, unknown, expected):
    """At index 3 positions and rates have to fit, at 2 rates, at 1 the tension, which is free
    above."""
    term = cases.pendulum(index)
    begin(Radau1(), term, PENDULUM())
    if expected is None:
        begin(Radau1(), term, PENDULUM(unknown, 1e-3))
        return
    with pytest.raises(RuntimeError, match=expected):
        begin(Radau1(), term, PENDULUM(unknown, 1e-3))


def test_start_is_checked_to_the_tolerance():
    """Ten tolerances, or a millionth, may be missing."""
    term = cases.robertson_dae()
    begin(Radau1(), term, ROBERTSON(2, 4e-3), 1e-3, 1e-3)
    with pytest.raises(RuntimeError, match=r"residual 0.004\."):
        begin(Radau1(), term, ROBERTSON(2, 4e-3), 1e-4, 1e-4)
    begin(Radau1(), term, ROBERTSON(2, 1e-7), 1e-12, 1e-12)


def test_regular_mass_matrix_needs_no_check():
    """There is no algebraic equation, and badly scaled masses do not count as zero."""
    term = MassMatrixTerm(lambda t, y, args: 1e3 - y, np.diag([1.0, 1e-9]))
    state = begin(Radau5(), term, jnp.ones(2))
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state))


def test_inconsistent_start_of_a_run_raises():
    """The error is that of `diffrax.diffeqsolve`, also if one state of a batch is inconsistent."""
    solver = Radau1()

    def end(y0):
        return diffrax.diffeqsolve(
            cases.robertson_dae(), solver, 0.0, 1e-3, None, y0, max_steps=100,
            stepsize_controller=solver.controller(1e-4, 1e-6, optx.rms_norm),
        ).ys  # fmt: skip

    starts = jnp.stack([ROBERTSON(), ROBERTSON(0, 0.03), ROBERTSON()])
    with pytest.raises(RuntimeError, match=r"number 2 has the residual 0.03\."):
        eqx.filter_jit(jax.vmap(end))(starts)


def test_violated_joint_is_named():
    problem = rj.problems.chain(2)
    model = rj.Absolute(problem.system, index=3)
    y0 = model.encode(problem.state0)
    name = problem.system.joints[1].name
    with pytest.raises(RuntimeError, match=rf"number \d+ \(the joint '{name}'\)"):
        begin(Radau1(), dae_term(model), y0.at[7].add(0.1))


def test_violated_rotation_is_named():
    body = rj.FixedPointBody((1.0, 2.0, 3.0))
    model = rj.Absolute(body, index=3)
    y0 = model.encode(rj.State(angular_velocity=(0.1, 0.2, 0.3)))
    with pytest.raises(RuntimeError, match=r"number 8 \(the rotation coordinates\)"):
        begin(Radau1(), dae_term(model), y0.at[0].add(0.1))


def test_wrong_mass_matrix_product_raises():
    def mass(t, y, args):
        return jnp.diag(jnp.array([1.0, 1.0, 0.0])) * (1.0 + t)

    def term(factor):
        field = cases.robertson_dae().vector_field
        product = lambda t, y, rate, args: factor * mass(t, y, args) @ rate  # noqa: E731
        return MassMatrixTerm(field, mass, product=product)

    with pytest.raises(
        RuntimeError, match="`MassMatrixTerm.product=....` differs from the product"
    ):
        begin(Radau5(), term(1.001), ROBERTSON())
    begin(Radau5(), term(1.0), ROBERTSON())
    with pytest.raises(ValueError, match="constant matrix is multiplied directly. Omit"):
        MassMatrixTerm(lambda t, y, args: -y, jnp.eye(2), product=lambda t, y, rate, args: rate)
