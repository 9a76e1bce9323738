"""Elementary functions of kernels against mpmath, in units of the last place."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from rigidjax import native
from rigidjax.native.runtime.kernel import Kernel, Signature

INFINITE = float("inf")
EPS = float(np.finfo(np.float64).eps)
# Arguments of each function.
COUNTS = [1_000, pytest.param(1_000_000, marks=pytest.mark.exhaustive)]


def angles(rng, n):
    """Return angles of every size, and close to zeros of sine and cosine."""
    n = n // 4
    return np.concatenate(
        [
            rng.uniform(-10.0, 10.0, n),
            rng.uniform(-1e5, 1e5, n),
            np.ldexp(rng.uniform(-1.0, 1.0, n), rng.integers(-500, 1024, n)),
            np.arange(1, n + 1) * np.pi / 2,
            # The float64 that is closest to a multiple of pi/2.
            [6381956970095103.0 * 2.0**797, 1e22],
        ]
    )


def positive(rng, n):
    n = n // 2
    near_one = 1.0 + rng.uniform(-1e-3, 1e-3, n)
    return np.concatenate(
        [near_one, np.ldexp(rng.uniform(0.5, 1.0, n), rng.integers(-999, 999, n))]
    )


def moderate(rng, n):
    n = n // 2
    return np.concatenate([rng.uniform(-5.0, 5.0, n), rng.uniform(-1e-5, 1e-5, n)])


def powers(rng, n):
    base = np.ldexp(rng.uniform(0.5, 1.0, n), rng.integers(-300, 300, n))
    exponent = rng.uniform(-1.0, 1.0, n) * 700.0 / np.abs(np.log(base))
    return base, exponent


# Name, function of JAX and of mpmath, arguments, units in the last place.
CASES = {
    "sin": (jnp.sin, mpmath.sin, angles, 1),
    "cos": (jnp.cos, mpmath.cos, angles, 1),
    "exp": (jnp.exp, mpmath.exp, lambda rng, n: rng.uniform(-708.0, 709.7, n), 2),
    "log": (jnp.log, mpmath.log, positive, 1),
    "pow": (jnp.power, mpmath.power, powers, 2),
    "atan": (jnp.arctan, mpmath.atan, moderate, 2),
    "atan2": (
        jnp.arctan2,
        mpmath.atan2,
        lambda rng, n: (moderate(rng, n), moderate(rng, n)[::-1]),
        2,
    ),
    # Compositions of the functions above.
    "tan": (jnp.tan, mpmath.tan, angles, 3),
    "asin": (jnp.arcsin, mpmath.asin, lambda rng, n: rng.uniform(-1.0, 1.0, n), 3),
    "acos": (jnp.arccos, mpmath.acos, lambda rng, n: rng.uniform(-1.0, 0.9, n), 3),
    "log1p": (jnp.log1p, mpmath.log1p, lambda rng, n: positive(rng, n) - 0.999, 3),
    "expm1": (jnp.expm1, mpmath.expm1, moderate, 3),
    "sinh": (jnp.sinh, mpmath.sinh, moderate, 4),
    "cosh": (jnp.cosh, mpmath.cosh, moderate, 4),
    "tanh": (jnp.tanh, mpmath.tanh, moderate, 4),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", CASES)
def test_units_in_the_last_place(name, count):
    function, exact, arguments, units = CASES[name]
    args = arguments(np.random.default_rng(20260101), count)
    args = args if isinstance(args, tuple) else (args,)
    found = np.asarray(jax.vmap(native.jit(function))(*map(jnp.asarray, args)))
    errors = []
    with mpmath.workprec(200):
        for value, *point in zip(found, *args, strict=True):
            expected = exact(*(mpmath.mpf(float(x)) for x in point))
            unit = np.spacing(abs(float(expected)))
            errors.append(abs(float((mpmath.mpf(float(value)) - expected) / unit)))
    assert max(errors) <= units


EDGES = np.array([0.0, -0.0, 1.0, -1.0, INFINITE, -INFINITE, np.nan, 2.0, -2.0, 0.5, -3.0, 1e100])


FUNCTIONS = (
    "sin cos tan arcsin arccos arctan exp exp2 expm1 log log1p sqrt sinh cosh tanh"
).split()


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda t: t.__name__)
def test_values_at_the_edges_of_the_range(dtype):
    """Infinite and undefined arguments, arguments outside the domain, and signed zeros."""
    tolerance = 1e-15 if dtype == np.float64 else 1e-6
    functions = [getattr(jnp, name) for name in FUNCTIONS]
    kernel = native.jit(lambda x: [function(x) for function in functions])
    with np.errstate(all="ignore"):
        edges = EDGES.astype(dtype)
        exact = [getattr(np, name)(edges) for name in FUNCTIONS]
    found = jax.vmap(kernel)(jnp.asarray(edges))
    for name, own, expected in zip(FUNCTIONS, map(np.asarray, found), exact, strict=True):
        np.testing.assert_allclose(own, expected, rtol=tolerance, err_msg=name)
        numbers = ~np.isnan(expected)
        assert (np.signbit(own) == np.signbit(expected))[numbers].all(), name


@pytest.mark.parametrize("name", ["power", "arctan2"])
def test_values_at_the_edges_of_two_arguments(name):
    a, b = (x.ravel() for x in np.meshgrid(EDGES, EDGES))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    found = np.asarray(jax.vmap(native.jit(getattr(jnp, name)))(jnp.asarray(a), jnp.asarray(b)))
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    numbers = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[numbers].all()


def test_single_precision():
    x = np.linspace(-20.0, 20.0, 101, dtype=np.float32)
    found = jax.vmap(native.jit(jnp.sin))(jnp.asarray(x))
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, np.sin(x.astype(np.float64)).astype(np.float32))


COMPLEX = {
    **{name: getattr(mpmath, name) for name in "exp sqrt sin cos tan sinh cosh tanh sign".split()},
    "log": mpmath.log,
    "log1p": lambda z: mpmath.log(1 + z),
    "expm1": lambda z: mpmath.exp(z) - 1,
}


def test_complex_functions():
    """Arguments near 0, near 1, far away, with parts of very different size, on both sides of the
    cut.
    """
    rng = np.random.default_rng(20260101)
    x, y = (rng.normal(size=100) * 10.0 ** rng.integers(-8, 3, 100) for _ in range(2))
    near_one = np.exp(1j * rng.uniform(-4.0, 4.0, 30)) * (1.0 + 10.0 ** rng.integers(-16, -1, 30))
    z = np.concatenate([x + 1j * y, near_one, [1j, -2.0, complex(-2.0, -0.0), 30.0 + 1j]])
    kernel = native.jit(lambda z: [getattr(jnp, name)(z) for name in COMPLEX])
    found = jax.vmap(kernel)(jnp.asarray(z))
    with mpmath.workprec(200):
        for (name, exact), own in zip(COMPLEX.items(), found, strict=True):
            expected = np.array([complex(exact(mpmath.mpc(one))) for one in z])
            below = (z.imag == 0) & np.signbit(z.imag) & (name in ("sqrt", "log", "log1p"))
            expected = np.where(below, expected.conj(), expected)
            assert (np.abs(own - expected) <= 8 * EPS * np.abs(expected)).all(), name
    power = jax.vmap(native.jit(lambda z: z ** (0.5 + 0.3j)))(jnp.asarray([0.0, *z[:9]]))
    np.testing.assert_allclose(power[1:], z[:9] ** (0.5 + 0.3j), rtol=1e-14)
    assert power[0] == 0.0


def test_powers_of_norms():
    """The power of a square root or a quotient is computed from its argument."""

    def power(x):
        return (1.0 / (jnp.sqrt(jnp.sum(x * x)) / jnp.sqrt(3.0))) ** 0.2, (x[0] / 3.0) ** 40.5

    x = jnp.array([0.3, -2.0, 5.0])
    kernel = native.jit(power)
    np.testing.assert_allclose(kernel(x), power(x), rtol=1e-15)
    text = Kernel(
        jax.make_jaxpr(lambda x: power(x)[0])(x), Signature((False,), False)
    ).code.optimised_text()
    assert "fdiv" not in text and "sqrt" not in text
    for number in (0.0, -0.0, np.inf, -np.inf, np.nan):
        edge = jnp.full(3, number)
        np.testing.assert_array_equal(kernel(edge)[0], power(edge)[0])
    large = jnp.array([3e9, 0.0, 0.0])
    np.testing.assert_allclose(kernel(large)[1], power(large)[1], rtol=1e-13)
    root = native.jit(lambda x: jnp.sqrt(x) ** 0.2)
    below = jnp.array([-np.inf, -2.0, -0.0, 4.0])
    np.testing.assert_allclose(root(below), jnp.sqrt(below) ** 0.2, rtol=1e-15)
