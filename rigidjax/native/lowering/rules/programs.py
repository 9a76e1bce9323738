"""Sub-jaxprs, and primitives that are written in JAX."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...primitives.expansions import expansion
from ...primitives.registry import Equation, NoRule, rule
from ...primitives.variants import kernel_branch
from ...values.memory import EmittedArray
from ..emitter import Emitter


@rule(
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_lin",
    "composite", "eval_jaxpr",
)  # fmt: skip
def _call(em: Emitter, equation: Equation, *args: EmittedArray):
    params = equation.params
    sub_jaxpr = params.get("jaxpr", params.get("call_jaxpr"))
    return emit_sub_jaxpr(em, sub_jaxpr, args)


@rule("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom(em: Emitter, equation: Equation, *args: EmittedArray):
    params = equation.params
    return emit_sub_jaxpr(
        em, params.get("call_jaxpr", params.get("fun_jaxpr", params.get("jaxpr"))), args
    )


@rule("custom_vmap_call")
def _custom_vmap(em: Emitter, equation: Equation, *args: EmittedArray):
    return emit_sub_jaxpr(em, equation.params["call"], args)


@rule("custom_linear_solve")
def _custom_linear_solve(em: Emitter, equation: Equation, *args: EmittedArray):
    jaxprs, counts = equation.params["jaxprs"], equation.params["const_lengths"]
    num_before = counts.matvec + counts.vecmat
    consts = args[num_before : num_before + counts.solve]
    return em.emit(jaxprs.solve, [*consts, *args[sum(counts) :]])


def emit_sub_jaxpr(em: Emitter, sub_jaxpr: Any, args: Sequence[EmittedArray]):
    """Emit a sub-jaxpr, closed or open."""
    if hasattr(sub_jaxpr, "consts"):
        return em.emit(sub_jaxpr, list(args))
    return em.emit_jaxpr(sub_jaxpr, [], list(args))


@expansion("nextafter")
def _nextafter(x: Array, to: Array):
    dtype = _integer_dtype(x)
    bits = jax.lax.bitcast_convert_type(x, dtype)
    towards_zero = (x > 0) != (to > x)
    step = jnp.where(towards_zero, -1, 1).astype(dtype)
    next_value = jax.lax.bitcast_convert_type(bits + step, x.dtype)
    tiny = jax.lax.bitcast_convert_type(jnp.ones(x.shape, dtype), x.dtype)
    next_value = jnp.where(x == 0, jnp.where(to > 0, tiny, -tiny), next_value)
    next_value = jnp.where(x == to, to, next_value)
    return jnp.where((x != x) | (to != to), x + to, next_value)


@expansion("tan")
def _tan(x: Array, **_: Any):
    return jnp.sin(x) / jnp.cos(x)


@expansion("exp2")
def _exp2(x: Array, **_: Any):
    return jnp.power(jnp.full_like(x, 2.0), x)


@expansion("atan2")
def _atan2(y: Array, x: Array):
    is_steep = jnp.abs(y) > jnp.abs(x)
    is_diagonal = (jnp.abs(x) == jnp.abs(y)) & (x != 0)
    # Divide such that the ratio is at most 1, also for two infinite numbers.
    small, large = jnp.where(is_steep, x, y), jnp.where(is_steep, y, x)
    ratio = jnp.where(is_diagonal, 1.0, jnp.abs(small) / jnp.where(large == 0, 1.0, jnp.abs(large)))
    angle = jax.lax.atan(ratio)
    angle = jnp.where(is_steep, jnp.pi / 2 - angle, angle)
    to_left = jax.lax.bitcast_convert_type(x, _integer_dtype(x)) < 0
    angle = jnp.where(to_left, jnp.pi - angle, angle)
    below = jax.lax.bitcast_convert_type(y, _integer_dtype(y)) < 0
    angle = jnp.where(below, -angle, angle)
    return jnp.where((x != x) | (y != y), x + y, angle).astype(x.dtype)


def _integer_dtype(x: Array):
    return jnp.int64 if x.dtype == jnp.float64 else jnp.int32


@expansion("asin")
def _asin(x: Array, **_: Any):
    return jax.lax.atan2(x, jnp.sqrt((1.0 - x) * (1.0 + x)))


@expansion("acos")
def _acos(x: Array, **_: Any):
    return jax.lax.atan2(jnp.sqrt((1.0 - x) * (1.0 + x)), x)


@expansion("expm1")
def _expm1(x: Array, **_: Any):
    exp_x = jnp.exp(x)
    is_regular = (exp_x != 1.0) & (exp_x > 0.1) & (exp_x < 1e6)
    regular_exp = jnp.where(is_regular, exp_x, 2.0)
    product = (regular_exp - 1.0) * (x / jnp.log(regular_exp))
    return jnp.where(exp_x == 1.0, x, jnp.where(is_regular, product, exp_x - 1.0))


@expansion("tanh")
def _tanh(x: Array, **_: Any):
    expm1_part = jnp.expm1(-2.0 * jnp.abs(x))
    return jnp.where(x == 0, x, jnp.where(x < 0, expm1_part, -expm1_part) / (2.0 + expm1_part))


@expansion("sinh")
def _sinh(x: Array, **_: Any):
    # exp(x) is the square of exp(x / 2), which does not overflow first.
    large = jnp.exp(0.5 * jnp.abs(x))
    expm1_part = jnp.expm1(jnp.minimum(jnp.abs(x), 20.0))
    magnitude = jnp.where(
        jnp.abs(x) < 20.0, 0.5 * (expm1_part + expm1_part / (expm1_part + 1.0)), 0.5 * large * large
    )
    return jnp.where(x == 0, x, jnp.where(x < 0, -magnitude, magnitude))


@expansion("cosh")
def _cosh(x: Array, **_: Any):
    half = jnp.exp(0.5 * jnp.abs(x))
    return 0.5 * half * half + 0.5 / half / half


@expansion("logistic")
def _logistic(x: Array, **_: Any):
    return 1.0 / (1.0 + jnp.exp(-x))


@expansion("log1p")
def _log1p(x: Array, **_: Any):
    one_plus_x = 1.0 + x
    rounded_x = one_plus_x - 1.0
    is_exact = (rounded_x == 0) | (x == jnp.inf)
    return jnp.where(is_exact, x, jnp.log(one_plus_x) * (x / jnp.where(is_exact, 1.0, rounded_x)))


@rule("platform_index")
def _platform_index(em: Emitter, equation: Equation):
    """Return the index of the jaxpr for kernels among those for several platforms."""
    branch = kernel_branch(equation.params["platforms"])
    if branch is None:
        raise NoRule("`platform_index` without a branch for the CPU")
    return em.constant(np.int32(branch))


# Primitives that exist from JAX 0.12 on.


@expansion("log2")
def _logarithm_to_base_two(x: Array, **_: Any):
    return [jnp.log(x) / np.log(2.0).astype(x.dtype)]


@expansion("one_minus_square")
def _one_minus_square(x: Array, **_: Any):
    return [(1 - x) * (1 + x)]


@expansion("polynomial")
def _polynomial(x: Array, *coefficients: Array, **_: Any):
    """Evaluate a polynomial as `jnp.polyval` does, by Horner's scheme."""
    *others, total = coefficients
    for coefficient in reversed(others):
        total = total * x + coefficient
    return [jnp.broadcast_to(total, jnp.broadcast_shapes(x.shape, total.shape))]
