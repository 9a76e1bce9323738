"""Names of diffrax and JAX that are not public, and diffrax's solve without its checks.

`tests/test_private_names.py` fails when a release moves one of them.
"""

import inspect
import types
from typing import Any

import diffrax
import equinox as eqx
import equinox.internal as eqxi
from diffrax._term import AdjointTerm as AdjointTerm, WrapTerm as WrapTerm
from jax._src.core import trace_ctx as trace_ctx
from jax._src.interpreters.ad import primitive_linearizations as primitive_linearizations
from jax._src.interpreters.batching import BatchTrace as BatchTrace, BatchTracer as BatchTracer
from jax._src.interpreters.partial_eval import DynamicJaxprTrace as DynamicJaxprTrace

from .annotations import Jump, T


class _WithoutChecks:
    """The functions of `equinox.internal`, with an `error_if` that checks nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(eqxi, name)

    def error_if(self, x: T, pred: Jump, msg: str) -> T:
        return x


def _without_checks(function: Any) -> Any:
    """Return diffrax's function with other globals: `diffrax.diffeqsolve` itself is unchanged."""
    names = {**function.__globals__, "eqxi": _WithoutChecks()}
    code, name = function.__code__, function.__name__
    copy = types.FunctionType(code, names, name, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


# `diffrax.diffeqsolve` without checks of times and steps, which `simulate` has checked before. The
# checks of diffrax would call the host from compiled code, and JAX does not keep a function with
# host calls in its persistent cache, so that every process would compile it again.
diffeqsolve = eqx.filter_jit(_without_checks(inspect.unwrap(diffrax.diffeqsolve)))
