"""Programs inside programs, and primitives that are written in JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxrules.variants import kernel_branch
from ..emitter import Emitter
from ..expansions import expansion
from ..registry import NoRule, rule


@rule(
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_lin",
    "composite", "eval_jaxpr",
)  # fmt: skip
def _call(em: Emitter, equation, *args):
    p = equation.params
    inner = p.get("jaxpr", p.get("call_jaxpr"))
    return run_inner(em, inner, args)


@rule("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom(em, equation, *args):
    p = equation.params
    return run_inner(em, p.get("call_jaxpr", p.get("fun_jaxpr", p.get("jaxpr"))), args)


@rule("custom_vmap_call")
def _custom_vmap(em, equation, *args):
    return run_inner(em, equation.params["call"], args)


@rule("custom_linear_solve")
def _custom_linear_solve(em, equation, *args):
    programs, counts = equation.params["jaxprs"], equation.params["const_lengths"]
    before = counts.matvec + counts.vecmat
    own = args[before : before + counts.solve]
    return em.emit(programs.solve, [*own, *args[sum(counts) :]])


def run_inner(em, inner, args):
    """A program with or without constants of its own."""
    if hasattr(inner, "consts"):
        return em.emit(inner, list(args))
    return em.emit_jaxpr(inner, [], list(args))


@expansion("nextafter")
def _nextafter(x, to):
    kind = _bits_of(x)
    bits = jax.lax.bitcast_convert_type(x, kind)
    towards_zero = (x > 0) != (to > x)
    step = jnp.where(towards_zero, -1, 1).astype(kind)
    moved = jax.lax.bitcast_convert_type(bits + step, x.dtype)
    tiny = jax.lax.bitcast_convert_type(jnp.ones(x.shape, kind), x.dtype)
    moved = jnp.where(x == 0, jnp.where(to > 0, tiny, -tiny), moved)
    moved = jnp.where(x == to, to, moved)
    return jnp.where((x != x) | (to != to), x + to, moved)


@expansion("tan")
def _tan(x, **_):
    return jnp.sin(x) / jnp.cos(x)


@expansion("exp2")
def _exp2(x, **_):
    return jnp.power(jnp.full_like(x, 2.0), x)


@expansion("atan2")
def _atan2(y, x):
    steep = jnp.abs(y) > jnp.abs(x)
    both = (jnp.abs(x) == jnp.abs(y)) & (x != 0)
    # Quotients of at most one; of two infinite numbers too.
    small, large = jnp.where(steep, x, y), jnp.where(steep, y, x)
    ratio = jnp.where(both, 1.0, jnp.abs(small) / jnp.where(large == 0, 1.0, jnp.abs(large)))
    angle = jax.lax.atan(ratio)
    angle = jnp.where(steep, jnp.pi / 2 - angle, angle)
    to_left = jax.lax.bitcast_convert_type(x, _bits_of(x)) < 0
    angle = jnp.where(to_left, jnp.pi - angle, angle)
    below = jax.lax.bitcast_convert_type(y, _bits_of(y)) < 0
    angle = jnp.where(below, -angle, angle)
    return jnp.where((x != x) | (y != y), x + y, angle).astype(x.dtype)


def _bits_of(x):
    return jnp.int64 if x.dtype == jnp.float64 else jnp.int32


@expansion("asin")
def _asin(x, **_):
    return jax.lax.atan2(x, jnp.sqrt((1.0 - x) * (1.0 + x)))


@expansion("acos")
def _acos(x, **_):
    return jax.lax.atan2(jnp.sqrt((1.0 - x) * (1.0 + x)), x)


@expansion("expm1")
def _expm1(x, **_):
    u = jnp.exp(x)
    usual = (u != 1.0) & (u > 0.1) & (u < 1e6)
    safe = jnp.where(usual, u, 2.0)
    near = (safe - 1.0) * (x / jnp.log(safe))
    return jnp.where(u == 1.0, x, jnp.where(usual, near, u - 1.0))


@expansion("tanh")
def _tanh(x, **_):
    rest = jnp.expm1(-2.0 * jnp.abs(x))
    return jnp.where(x == 0, x, jnp.where(x < 0, rest, -rest) / (2.0 + rest))


@expansion("sinh")
def _sinh(x, **_):
    # Half a number before the exponential of a large one overflows.
    large = jnp.exp(0.5 * jnp.abs(x))
    rest = jnp.expm1(jnp.minimum(jnp.abs(x), 20.0))
    size = jnp.where(jnp.abs(x) < 20.0, 0.5 * (rest + rest / (rest + 1.0)), 0.5 * large * large)
    return jnp.where(x == 0, x, jnp.where(x < 0, -size, size))


@expansion("cosh")
def _cosh(x, **_):
    half = jnp.exp(0.5 * jnp.abs(x))
    return 0.5 * half * half + 0.5 / half / half


@expansion("logistic")
def _logistic(x, **_):
    return 1.0 / (1.0 + jnp.exp(-x))


@expansion("log1p")
def _log1p(x, **_):
    u = 1.0 + x
    rest = u - 1.0
    near = (rest == 0) | (x == jnp.inf)
    return jnp.where(near, x, jnp.log(u) * (x / jnp.where(near, 1.0, rest)))


@rule("platform_index")
def _platform_index(em, equation):
    """Which of the programs for several platforms."""
    branch = kernel_branch(equation.params["platforms"])
    if branch is None:
        raise NoRule("`platform_index` without a program for the CPU")
    return em.constant(np.int32(branch))


# Operations of their own from JAX 0.12 on.


@expansion("log2")
def _logarithm_to_base_two(x, **_):
    return [jnp.log(x) / np.log(2.0).astype(x.dtype)]


@expansion("one_minus_square")
def _one_minus_square(x, **_):
    return [(1 - x) * (1 + x)]


@expansion("polynomial")
def _polynomial(x, *coefficients, **_):
    """The polynomial of `jnp.polyval`, by Horner's scheme."""
    *others, total = coefficients
    for coefficient in reversed(others):
        total = total * x + coefficient
    return [jnp.broadcast_to(total, jnp.broadcast_shapes(x.shape, total.shape))]
