"""Programs inside programs, and primitives that are written in JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from ..emitter import Emitter, NoRule, rule
from ..expansions import expansion


@rule("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "custom_lin")
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
    return em.run(programs.solve, [*own, *args[sum(counts) :]])


def run_inner(em, inner, args):
    """A program with or without constants of its own."""
    if hasattr(inner, "consts"):
        return em.run(inner, list(args))
    return em.run_jaxpr(inner, [], list(args))


@expansion("nextafter")
def _nextafter(x, to):
    kind = jnp.int64 if x.dtype == jnp.float64 else jnp.int32
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


@expansion("log1p")
def _log1p(x, **_):
    u = 1.0 + x
    rest = u - 1.0
    return jnp.where(rest == 0, x, jnp.log(u) * (x / jnp.where(rest == 0, 1.0, rest)))


@rule("platform_index")
def _platform_index(em, equation):
    """Which of the programs for several platforms: the one for the CPU."""
    for k, names in enumerate(equation.params["platforms"]):
        if names is None or "cpu" in names:
            return em.constant(np.int32(k))
    raise NoRule("`platform_index` without a program for the CPU")
