"""Kernels of which most is the same for all lanes: as XLA's batches."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_programs import RandomProgram

import rigidjax as rj
from rigidjax.native import kernel, primitive

COUNT = 11
BACKENDS = "native", "xla"


def shared_first(function):
    """A function with one more argument and result, which is the same for all members."""
    return lambda common, *args: (2.0 * common, *function(*args))


def both(function, batched, *args):
    """Results by a mixed kernel and by XLA; which of the arguments have a batch axis."""
    given = [x if b else x[0] for x, b in zip(args, batched, strict=True)]
    common = jnp.arange(3.0)
    closed = jax.make_jaxpr(shared_first(function))(common, *(x[0] for x in args))
    marks = (False, *batched)

    def call(*inputs):
        return primitive.native_call_p.bind(
            *inputs, closed=closed, batched=marks, size=COUNT, linear=0,
            mode=primitive.Mode(True, False, False, False, 0), values=(1, 1),
        )  # fmt: skip

    first, *found = jax.jit(call)(common, *given)
    np.testing.assert_array_equal(first[0], 2.0 * common)
    axes = [0 if b else None for b in batched]
    with jax.default_matmul_precision("highest"):
        expected = jax.jit(jax.vmap(function, in_axes=axes, axis_size=COUNT))(*given)
    return found, jax.tree.leaves(expected)


def last_kernel():
    """The kernel that was made last."""
    return list(kernel._kernels.values())[-1]


def check_seed(seed):
    rng = np.random.default_rng(1000 + seed)
    program = RandomProgram(seed)
    args = program.arguments(COUNT)
    # Seldom the flag, by which branches and turns of loops differ.
    batched = [bool(rng.random() < 0.2), *(bool(b) for b in rng.random(len(args) - 1) < 0.5)]
    if not any(batched):
        batched[-1] = True
    found, expected = both(program, batched, *args)
    assert last_kernel().signature.values == 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.exhaustive(but=("1", "3"))
@pytest.mark.parametrize("seed", range(100))
def test_random_programs(seed):
    check_seed(seed)


def test_tangents_of_one_run():
    """The run is computed by scalars, its readings are stored once; tangents are vectors."""
    top = rj.problems.heavy_top()

    def read(moments, backend):
        model = rj.NullSpace(rj.FixedPointBody(moments, potential=top.system.potential))
        sol = rj.simulate(
            model, top.state0, 0.1, solver=diffrax.Bosh3(), rtol=1e-6, atol=1e-6,
            ts=jnp.linspace(0.0, 0.1, 301), backend=backend,
        )  # fmt: skip
        return sol.ys

    moments, before = jnp.asarray(top.system.inertia), set(kernel._kernels)
    found, expected = (jax.jit(jax.jacfwd(read), static_argnums=1)(moments, b) for b in BACKENDS)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    made = [k for key, k in kernel._kernels.items() if key not in before and k.signature.values]
    vectors = "phi  double", "phi  <{} x double>"
    assert any(all(phi.format(one.width) in one.text for phi in vectors) for one in made)
