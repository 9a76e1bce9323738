"""Kernels besides runs: preparation, methods of models, derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rule_cases import equations

import rigidjax as rj
from rigidjax.native.backend import call_by_kernel
from rigidjax.native.passes import analysis
from rigidjax.native.runtime import codegen as machine
from rigidjax.native.runtime.kernel import Kernel, Signature, _kernels


def prepare_pair(pair, label):
    first, second = pair
    return {"kept": first, "made": jnp.sin(first) * 2.0, "label": label, "other": second + 1.0}


def test_pytrees_and_passed_through_values():
    pair = jnp.arange(3.0), jnp.ones(2)
    kept = call_by_kernel(prepare_pair, pair, "name")
    assert kept["kept"] is pair[0]
    assert kept["label"] == "name"
    expected = prepare_pair(pair, "name")
    assert eqx.tree_equal(kept, expected, rtol=1e-15)
    # Nothing is computed: no kernel.
    program = jax.make_jaxpr(lambda pair: call_by_kernel(lambda pair: pair[::-1], pair))(pair)
    assert not program.jaxpr.eqns


def test_models_outside_of_transformations(monkeypatch):
    """Conversions of states and derived quantities are kernels, with the values of XLA."""
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")  # kernels of earlier runs are not compiled
    hinge = rj.Revolute("ground", "rod of this test", (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    rod = rj.Body("rod of this test", 1.0, (0.1, 0.1, 0.01), (0.5, 0.0, 0.0))
    model = rj.Absolute(rj.System(rod, [hinge], rj.Gravity((0.0, 0.0, -9.81))))
    state = rj.jointed_state(model.system, {hinge.name: 0.3}, {hinge.name: 2.0})
    y = jax.jit(model.encode)(state)
    for name, argument in (("encode", state), ("decode", y), ("energy", y), ("reactions", y)):
        method = getattr(model, name)
        args = (argument,) if name == "encode" else (0.0, argument)
        known = len(_kernels)
        found, by_xla = method(*args), jax.jit(method)(*args)
        assert len(_kernels) > known
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(by_xla), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_function_that_closes_over_traced_values_runs_in_xla():
    """A warning of a kernel that could not be made would be an error here."""
    scaled = jax.jit(lambda a: call_by_kernel(lambda x: a * x, jnp.ones(2)))
    np.testing.assert_array_equal(scaled(2.0), [2.0, 2.0])
    assert jax.jit(jax.grad(lambda a: scaled(a).sum()))(2.0) == 2.0


def test_only_varying_inputs_have_tangents():
    """Values that do not depend on a varying argument have no tangent, also inside calls."""

    @jax.jit
    def both(x, y):
        return x * 2.0, jnp.cos(y), jax.lax.stop_gradient(x) + y

    x = jnp.arange(3.0)
    function = lambda x: call_by_kernel(both, x, jnp.ones(3))  # noqa: E731
    program = jax.make_jaxpr(lambda x, dx: jax.jvp(function, (x,), (dx,)))(x, x)
    calls = [e for e in equations(program.jaxpr) if e.primitive.name == "native_forward"]
    assert [len(e.outvars) for e in calls] == [3 + 1]
    program = jax.make_jaxpr(lambda x, dx: jax.linearize(function, x)[1](dx))(x, x)
    linear = [e for e in equations(program.jaxpr) if e.params.get("num_linear")]
    assert [len(e.outvars) for e in linear] == [1]
    out, rates = jax.jvp(function, (x,), (x,))
    np.testing.assert_array_equal(out[0], 2.0 * x)
    np.testing.assert_array_equal(rates[0], 2.0 * x)
    np.testing.assert_array_equal(rates[2], 0.0 * x)


def test_kernel_inside_and_outside_a_run(monkeypatch):
    """At equal optimisation levels both give identical code."""
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    monkeypatch.setattr(machine, "LONG", 0)
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 3.0)(jnp.arange(3.0))
    made = [Kernel(closed, Signature((False,), False, once)) for once in (False, True)]
    assert made[0].code is made[1].code


@jax.custom_jvp
def _sine(x):
    return jnp.sin(x)


@_sine.defjvp
def _sine_jvp(primals, tangents):
    slope = jax.pure_callback(np.cos, primals[0], primals[0], vmap_method="expand_dims")
    return _sine(primals[0]), slope * tangents[0]


def test_derivative_that_cannot_be_a_kernel_raises():
    """The derivative falls back to XLA, or raises if a kernel was requested; the run itself is a
    kernel.
    """
    body = rj.FixedPointBody((1.0, 2.0, 3.0), moment=lambda t, R, omega: -_sine(omega))
    model = rj.NullSpace(body)
    state = rj.State(orientation=[[1.0, 0, 0, 0]], angular_velocity=[[0.0, 0, 0]])

    def end(backend):
        def run(speed):
            start = eqx.tree_at(lambda s: s.angular_velocity, state, speed * jnp.ones((1, 3)))
            sol = rj.simulate(model, start, 0.1, dt=0.05, backend=backend)
            assert sol.stats["backend"] == ("xla" if backend == "xla" else "native")
            return sol.ys[-1]

        return lambda: jax.jvp(run, (1.0,), (1.0,))

    for a, b in zip(end("auto")(), end("xla")(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    with pytest.raises(ValueError, match="pure_callback"):
        end("native")()


def test_exported_functions_have_no_kernels():
    """Readers of exported functions have only XLA; a requested kernel gives a warning."""
    top = rj.problems.heavy_top()
    model = rj.NullSpace(top.system)

    def run(omega, backend):
        state = rj.State(orientation=top.state0.orientation, angular_velocity=omega)
        return rj.simulate(model, state, 0.05, backend=backend, throw=False, dt=0.01).ys[-1]

    omega = top.state0.angular_velocity
    kernel = jax.jit(lambda omega: run(omega, "auto"))
    written = jax.export.export(kernel)(omega)
    assert "custom_call @rigidjax" not in written.mlir_module()
    assert "custom_call @rigidjax" in kernel.lower(omega).as_text()
    np.testing.assert_allclose(written.call(omega), kernel(omega), rtol=1e-12, atol=1e-13)
    with pytest.warns(UserWarning, match="has no native kernels"):
        jax.export.export(jax.jit(lambda omega: run(omega, "native")))(omega)


def test_compiler_defect_falls_back_to_xla_with_a_warning(monkeypatch):
    """An error of the emitter or of LLVM on a supported jaxpr."""

    def broken(*args):
        raise RuntimeError("made wrong")

    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    monkeypatch.setitem(analysis.RULES, "atan2", broken)
    top = rj.FixedPointBody(
        jnp.array([0.5, 0.4, 0.3]), potential=lambda R: jnp.arctan2(R[2, 2], 3.0)
    )
    model = rj.NullSpace(top)
    state = rj.State(orientation=[[1.0, 0.0, 0.0, 0.0]], angular_velocity=[[1.0, 2.0, 3.0]])
    expected = rj.simulate(model, state, 0.1, backend="xla")
    with pytest.warns(UserWarning, match="XLA runs the computation instead.*made wrong"):
        sol = rj.simulate(model, state, 0.1)
    np.testing.assert_array_equal(sol.ys, expected.ys)
    with pytest.warns(UserWarning, match="instead"), pytest.raises(RuntimeError, match="wrong"):
        rj.simulate(model, state, 0.1, backend="native")
