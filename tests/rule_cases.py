"""Arguments and functions of the rules' tests, by families of primitives, and the comparison."""

import jax
import jax.numpy as jnp
import numpy as np

from rigidjax import native
from rigidjax.native.passes.analysis import sub_jaxprs

EPS = float(np.finfo(np.float64).eps)

X = jnp.array([1.0, 2.0, -3.0])
Y = jnp.array([0.3, 0.2, 4.0])
SQUARE = jnp.array([[4.0, 1.0, -0.5], [0.2, 3.0, 0.7], [-1.0, 0.4, 5.0]])


ARITHMETIC = {
    "four operations": lambda x, y: (x + y, x - y, x * y, x / y, -x, x**3, x**-2),
    "functions": lambda x, y: (jnp.sin(x), jnp.cos(y), jnp.exp(x), jnp.log(y), jnp.sqrt(y), y**x),
    "tan, log1p": lambda x, y: (jnp.tan(x), jnp.log1p(y)),
    "rounding": lambda x, y: (jnp.floor(x / y), jnp.ceil(y / x), jnp.round(x * y), jnp.sign(x)),
    "comparisons": lambda x, y: (x < y, x >= y, x == y, (x > 0) & ~(y > 1), (x > 0) ^ (y > 1)),
    "choices": lambda x, y: (jnp.where(x > y, x, y), jnp.clip(x, -1.0, 1.0), jnp.maximum(x, y)),
    "integers": lambda x, y: (
        (10 * x).astype(int) // 3,
        (10 * x).astype(int) % 3,
        jnp.abs((10 * x).astype(jnp.int32)) << 2,
        (10 * x).astype(int) >> 1,
    ),
    "remainders": lambda x, y: (jnp.fmod(x, y), jnp.mod(x, y)),
    "neighbours": lambda x, y: (jnp.nextafter(x, y), jnp.nextafter(x, jnp.inf)),
    "products": lambda x, y: (x @ y, jnp.outer(x, y), jnp.cross(x, y), jnp.outer(x, y) @ y),
    "sums": lambda x, y: (x.sum(), y.prod(), x.max(), y.min(), jnp.cumsum(x), jnp.any(x > 2)),
    "extremes": lambda x, y: (jnp.argmax(x), jnp.argmin(y), jnp.sort(x), jnp.argsort(-y)),
    "structure": lambda x, y: (
        x[::-1],
        jnp.concatenate([x, y])[1:5:2],
        jnp.stack([x, y]).T,
        jnp.pad(x, (1, 2)),
        jnp.broadcast_to(x, (2, 3)).reshape(3, 2),
        jnp.diag(x),
    ),
    "updates": lambda x, y: (x.at[1].set(y[0]), x.at[jnp.array([0, 2])].add(y[:2]), jnp.roll(x, 1)),
    "bits": lambda x, y: (
        *(jnp.bitwise_count((9 * x).astype(int)), jax.lax.clz((9 * y).astype(jnp.int32))),
        *(jax.lax.reduce_precision(x / y, 8, 10), jax.lax.reduce_precision(1e9 * y, 5, 3)),
        *(x.view(jnp.uint8), jnp.stack([x, y]).view(jnp.int16).view(float)),
        jnp.bitwise_xor.reduce((9 * x).astype(int)),
    ),
    "places": lambda x, y: (
        *(jnp.searchsorted(jnp.sort(x), y), jnp.interp(y, jnp.sort(x), x), jnp.digitize(x, y[:2])),
        *(jax.lax.top_k(jnp.stack([x, -x, x * 0]), 2), jnp.median(x), jnp.partition(y, 1)),
    ),
    "reductions": lambda x, y: (
        jax.lax.reduce(x, 1.0, lambda a, b: a * b + 1.0, (0,)),
        jax.lax.cumlogsumexp(y),
    ),
    "precision": lambda x, y: (x.astype(jnp.float32) * jnp.float32(0.1), x.astype(int) + 1),
}


def equations(jaxpr):
    """Return all equations of a jaxpr, including its sub-jaxprs and runs inside `jax.jit`."""
    for equation in jaxpr.eqns:
        yield equation
        inner, executable = sub_jaxprs(equation), equation.params.get("executable")
        if executable is not None:
            inner = [jax.make_jaxpr(executable.subfunction)(*executable.arguments).jaxpr]
        for sub_jaxpr in inner:
            yield from equations(sub_jaxpr)


def compare(function, *args, tolerance=50 * EPS, batch=7):
    """Compare the kernel with XLA for one element, and for a batch that is no multiple of the
    lanes.
    """
    kernel = native.jit(function)
    assert kernel.why_not(*args) == []
    check(jax.jit(kernel)(*args), function(*args), tolerance)
    many = [jnp.stack([scale_inexact(x, 1 + 0.1 * k) for k in range(batch)]) for x in args]
    check(jax.jit(jax.vmap(kernel))(*many), jax.vmap(function)(*many), tolerance)


def scale_inexact(x, factor):
    return x * factor if jnp.issubdtype(x.dtype, jnp.inexact) else x


def check(actual, expected, tolerance):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
