"""Values and tangents by one call, which is split for transposition."""

from collections import Counter

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rule_cases import equations

import rigidjax as rj
from rigidjax import native
from rigidjax.native.runtime import kernel

X = jnp.array([0.3, -0.2, 0.5])
MANY = jnp.stack([X, 2 * X, X - 0.1])


def plain(x):
    return jnp.sin(x[0]) * x, jnp.exp(-jnp.sum(x * x)), jnp.argmax(x)


KERNEL = native.jit(plain)


def scalar(function):
    return lambda x: jnp.sum(jnp.cos(function(x)[0])) * function(x)[1]


def sum_in_loop(function):
    """Apply the function in a loop that supports reverse mode."""
    return lambda xs: jnp.sum(jax.lax.map(scalar(function), xs))


def tangent(function):
    return lambda x: jax.jvp(scalar(function), (x,), (jnp.cos(x),))


COMPOSITIONS = {
    "jvp": (tangent, X),
    "jacfwd": (lambda f: jax.jacfwd(scalar(f)), X),
    "batch, several tangents each": (lambda f: jax.vmap(jax.jacfwd(scalar(f))), MANY),
    "several tangents of a batch": (lambda f: jax.jacfwd(jax.vmap(scalar(f))), MANY),
    "grad": (lambda f: jax.grad(scalar(f)), X),
    "grad of a jitted function": (lambda f: jax.grad(jax.jit(scalar(f))), X),
    "grad of a batch": (lambda f: jax.vmap(jax.grad(scalar(f))), MANY),
    "grad of a tangent": (lambda f: jax.grad(lambda x: tangent(f)(x)[1]), X),
    "tangent of a grad": (lambda f: jax.jacfwd(jax.grad(scalar(f))), X),
    "forward twice": (lambda f: jax.jacfwd(jax.jacfwd(scalar(f))), X),
    "backward twice": (lambda f: jax.jacrev(jax.jacrev(scalar(f))), X),
    "checkpoint": (lambda f: jax.grad(jax.checkpoint(scalar(f))), X),
    "checkpoint, all saved": (
        lambda f: jax.grad(
            jax.checkpoint(scalar(f), policy=jax.checkpoint_policies.everything_saveable)
        ),
        X,
    ),
    "grad of a loop": (lambda f: jax.grad(sum_in_loop(f)), MANY),
    "grad of a checkpoint in a loop": (
        lambda f: jax.grad(lambda xs: jnp.sum(jax.lax.map(jax.checkpoint(scalar(f)), xs))),
        MANY,
    ),
    "transpose": (
        lambda f: (
            lambda x: jax.linear_transpose(lambda dx: jax.jvp(scalar(f), (x,), (dx,))[1], x)(1.0)
        ),
        X,
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.exhaustive("several tangents of a batch")
def test_compositions_of_transformations(name):
    """Derivatives equal those of the original function."""
    form, x = COMPOSITIONS[name]
    for found, expected in zip(
        *(jax.tree.leaves(form(f)(x)) for f in (KERNEL, plain)), strict=True
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def calls(function, *args):
    """Return the equations of a jaxpr by name, including sub-jaxprs."""
    program = jax.make_jaxpr(function)(*args)
    return Counter(equation.primitive.name for equation in equations(program.jaxpr))


def test_forward_mode_is_one_call():
    """Reverse mode is one call for values and one for the transposed part."""
    found = calls(lambda x: jax.jvp(KERNEL, (x,), (x,))[0][:2], X)
    assert (found["native_forward"], found["native_call"]) == (1, 0)
    found = calls(jax.jacfwd(lambda x: KERNEL(x)[0]), X)
    assert (found["native_forward"], found["native_call"]) == (1, 0)
    found = calls(jax.grad(lambda x: KERNEL(x)[1]), X)
    assert (found["native_forward"], found["native_call"]) == (0, 2)


@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.exhaustive("xla")
@pytest.mark.exhaustive
def test_forward_mode_of_runs(backend):
    """Values and tangents of a run are one loop; all compositions of derivatives agree."""
    top = rj.problems.heavy_top()

    def last(moments):
        model = rj.NullSpace(rj.FixedPointBody(moments, potential=top.system.potential))
        sol = rj.simulate(
            model, top.state0, 0.05, solver=diffrax.Bosh3(), dt=0.01, backend=backend, throw=False
        )
        return sol.ys[-1]

    moments = jnp.asarray(top.system.inertia)
    found = calls(lambda m: jax.jvp(last, (m,), (m,)), moments)
    assert (found["rigidjax_solve_forward"], found["rigidjax_solve"]) == (1, 0)
    forward = jax.jit(jax.jacfwd(last))(moments)
    backward = jax.jit(jax.jacrev(last))(moments)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-11)
    many = jnp.stack([moments, 1.1 * moments])
    for form in (jax.vmap(jax.jacfwd(last)), jax.jacfwd(jax.vmap(last))):
        found = jax.jit(form)(many)
        np.testing.assert_allclose(
            found[0] if found.ndim == 3 else found[0, :, 0], forward, rtol=1e-11, atol=1e-13
        )
    value, slope = jax.jit(lambda m: jax.jvp(last, (m,), (m,)))(moments)
    np.testing.assert_allclose(value, jax.jit(last)(moments), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(slope, forward @ moments, rtol=1e-11, atol=1e-13)


@pytest.mark.exhaustive
def test_derivatives_of_batches_with_different_lengths():
    """Batch elements that take from a few steps to many agree with one after the other.

    Forward mode has all tangents of a batch element in a loop of its own; records of reverse mode
    are read in all lanes at the same time.
    """
    top = rj.problems.heavy_top()
    model = rj.NullSpace(rj.FixedPointBody(top.system.inertia, potential=top.system.potential))

    def last(omega):
        state = rj.State(orientation=top.state0.orientation, angular_velocity=omega[None])
        sol = rj.simulate(
            model, state, 0.3, solver=diffrax.Bosh3(), rtol=1e-5, atol=1e-5, backend="native"
        )
        return sol.ys[-1], sol.stats["num_steps"]

    spins = jnp.asarray([0.1, 40.0, 3.0, 90.0, 0.5, 20.0, 1.0, 60.0, 9.0, 5.0, 30.0])
    omegas = spins[:, None] * jnp.array([0.3, -0.2, 1.0])
    steps = jax.jit(jax.vmap(last))(omegas)[1]
    assert int(jnp.max(steps)) > 5 * int(jnp.min(steps))
    forms = [jax.jacfwd(last, has_aux=True), jax.jacrev(last, has_aux=True)]
    one = jax.jit(forms[0])
    each = jnp.stack([one(omega)[0] for omega in omegas])
    before = set(kernel._kernels)
    for form in forms:
        found = jax.jit(jax.vmap(form))(omegas)[0]
        scale = jnp.max(jnp.abs(each), axis=(1, 2), keepdims=True)
        np.testing.assert_allclose(found / scale, each / scale, atol=1e-9)
    made = [kernel._kernels[key] for key in set(kernel._kernels) - before]
    assert 3 in {one.signature.num_tangents for one in made}


def test_derivatives_by_empty_arrays():
    """There are no tangents, but values."""

    def function(x, y):
        return jnp.sum(x) + jnp.sin(y), 2.0 * x

    def value_and_columns(f):
        return jax.jacfwd(lambda x, y: (f(x, y), f(x, y)), has_aux=True)(jnp.zeros(0), X)

    (columns, empty), (value, _) = jax.jit(lambda: value_and_columns(native.jit(function)))()
    np.testing.assert_allclose(value, jnp.sin(X), rtol=1e-15)
    assert columns.shape == (3, 0)
    assert empty.shape == (0, 0)
