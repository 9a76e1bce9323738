"""`rj.native.jit` for users: accepted functions, and messages for others."""

import copy
import pickle
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

from rigidjax import native
from rigidjax.native.jaxrules.primitive import _jit_call

X = jnp.array([1.0, 2.0, -3.0])


def multiply(x, by=2.0):
    return x * by


def test_traced_values_that_a_function_closes_over():
    def loss(p, jit):
        return jit(lambda y: jnp.sum(jnp.sin(p * y)))(X)

    for transformed in (jax.jit, jax.grad, lambda f: jax.jit(jax.hessian(f))):
        expected = transformed(lambda p: loss(p, jax.jit))(2.0)
        actual = transformed(lambda p: loss(p, native.jit))(2.0)
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
    points = jnp.linspace(0.0, 1.0, 5)
    actual = jax.vmap(lambda p: loss(p, native.jit))(points)
    np.testing.assert_allclose(actual, jax.vmap(lambda p: loss(p, jax.jit))(points), rtol=1e-14)


def test_function_closing_over_changing_values():
    """A trace for one value is not reused for the next one."""
    values = []
    kernel = native.jit(lambda x: x * values[-1])

    def scale_and_note(p):
        values.append(p)
        return kernel(X)

    for p in (2.0, 5.0):
        np.testing.assert_array_equal(jax.jit(lambda p: scale_and_note(p))(p), p * X)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int8])
def test_python_scalars_are_weakly_typed(dtype):
    x = jnp.ones(2, dtype)
    number = 2.5 if dtype == jnp.float32 else 2
    expected = jax.jit(multiply)(x, number)
    for actual in (native.jit(multiply)(x, number), native.jit(multiply)(x, by=number)):
        assert actual.dtype == expected.dtype == dtype
        np.testing.assert_array_equal(actual, expected)
    # Another dtype of equal shape is another jaxpr.
    assert native.jit(multiply)(x, jnp.asarray(number, float)).dtype == float


def test_results_without_cotangent_do_not_contribute():
    """Their derivative may be infinite, and zero times infinity is NaN."""

    def function(x):
        return jnp.sin(x[0]), jnp.sqrt(x), jnp.arccos(x) * 1j

    gradient = jax.grad(lambda x: native.jit(function)(x)[0])
    x = jnp.array([0.0, 2.0])
    np.testing.assert_array_equal(gradient(x), [1.0, 0.0])
    np.testing.assert_array_equal(jax.vmap(gradient)(jnp.stack([x, x])), [[1.0, 0.0]] * 2)


def test_derivatives_of_functions_with_a_rule_and_integer_constants():
    """JAX creates unused tangents of the indices, of type float0."""
    order = np.array([1, 2, 0])

    @jax.custom_jvp
    def sines_in_order(x):
        return jnp.sin(x[order])

    @sines_in_order.defjvp
    def _(primals, tangents):
        return sines_in_order(*primals), jnp.cos(primals[0][order]) * tangents[0][order]

    # Derivatives of loops and of runs are those of a jaxpr that is traced already.
    function = jaxpr_as_fun(jax.make_jaxpr(sines_in_order)(X))
    tangent = jax.make_jaxpr(lambda x, dx: jax.jvp(function, (x,), (dx,)))(X, 2.0 * X)
    types = {v.aval.dtype for equation in tangent.eqns for v in equation.outvars}
    assert jax.dtypes.float0 in types
    assert native.why_not(tangent) == []
    actual = native.jit(jaxpr_as_fun(tangent))(X, 2.0 * X)
    np.testing.assert_allclose(actual, [np.sin(X[order]), np.cos(X[order]) * 2 * X[order]], 1e-14)


class Scaled(eqx.Module):
    factor: jax.Array

    @native.jit
    def __call__(self, x):
        return x * self.factor


def test_bound_methods():
    np.testing.assert_array_equal(Scaled(jnp.array(3.0))(X), 3.0 * X)
    slope = jax.grad(lambda factor: Scaled(factor)(X).sum())(3.0)
    np.testing.assert_allclose(slope, X.sum())


def test_copies_and_pickles():
    kernel = native.jit(multiply)
    kernel(X)
    for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(again(X), 2.0 * X)


def test_threads_that_call_at_the_same_time():
    """The first calls compile the kernel."""
    kernel, failed, start = native.jit(lambda x: jnp.sin(x) * 7.0 + x), [], threading.Barrier(4)

    def call():
        start.wait()
        try:
            np.testing.assert_allclose(kernel(X), jnp.sin(X) * 7.0 + X, rtol=1e-14)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_why_not_names_the_source_line():
    """The message has the line of the user's code, also for jitted functions of JAX."""

    def function(x):
        return jnp.fft.fft(x * 2)

    (reason,) = native.jit(function).why_not(X)
    assert reason.startswith("`fft`")
    assert f"test_jit.py:{function.__code__.co_firstlineno + 1}" in reason
    key = jax.random.key(0)
    (reason,) = native.jit(lambda key, x: x).why_not(key, X)
    assert reason == "an argument of type key<fry>"
    with pytest.raises(NotImplementedError, match="no rule for an argument of type key"):
        native.jit(lambda key, x: x)(key, X)


def test_call_outside_a_compiled_function_compiles_once():
    kernel = native.jit(lambda x: jnp.sum(jnp.sin(x)))
    kernel(X)
    misses = _jit_call.cache_info().misses
    np.testing.assert_allclose(kernel(X + 1.0), np.sin(X + 1.0).sum(), rtol=1e-14)
    assert _jit_call.cache_info().misses == misses
