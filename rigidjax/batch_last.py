"""Programs over batches whose axis is behind all others: `jax.vmap` with the axis kept last.

Every primitive that stands in the equations of multibody systems has a rule here. Any other one is
batched by its rule of `jax.vmap`, with the axis moved forth and back.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Array

from .batch_rules import ELEMENTWISE, RULES, Last, broadcast, short_sums, spread

# Functions marked by `stage`.
_STAGE = "stage of a recursion: "
# Primitives with a program inside, and where it stands.
_INNER = {"jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}


@dataclasses.dataclass(frozen=True)
class First:
    """Values of a batch, its axis first."""

    values: Array


def stage(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results, in batches, are computed once and kept.

    XLA on the CPU would compute an entry of a matrix anew wherever it is used, through any number
    of products. It does not look into the branches of a condition.
    """

    def marked(*args):
        return function(*args)

    marked.__name__ = _STAGE + function.__name__
    return jax.jit(marked)


def evaluate(closed: ClosedJaxpr, args: list[Any], size: int) -> list[Array]:
    """Results of a program of one system for a batch, the batch axis first.

    **Arguments:** `closed`, of one system; `args`, `First` or the same for all; `size` of the
    batch.
    """
    program = _Program(size, _known(args))
    own = [program.turned(arg.values) if isinstance(arg, First) else arg for arg in args]
    out = [spread(part, size) for part in program.run(closed, own)]
    return [_kept(program.known, lambda x: jnp.moveaxis(x, -1, 0), part) for part in out]


def _known(args) -> Array:
    """A condition that holds unless all systems are lost, as XLA cannot tell beforehand."""
    batches = [arg.values for arg in args if isinstance(arg, First)]
    some = [values.reshape(len(values), -1)[:, :1] for values in batches if _is_real(values)]
    return functools.reduce(operator.or_, [jnp.any(values == values) for values in some])


def _kept(known, compute, *args):
    """Results of a computation in the branch of a condition."""
    shapes = jax.eval_shape(compute, *args)

    def lost(*args):
        return jax.tree.map(lambda out: _nothing(out.shape, out.dtype), shapes)

    return jax.lax.cond(known, compute, lost, *args)


def _nothing(shape, dtype):
    return jnp.full(shape, jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0, dtype)


def _is_real(values):
    return values.size > 0 and jnp.issubdtype(values.dtype, jnp.floating)


def _entry(value):
    return value.values if isinstance(value, Last) else value


@dataclasses.dataclass(frozen=True)
class _Program:
    """Evaluation of jaxprs for a batch of a size; `known`, a condition that holds."""

    size: int
    known: Array
    in_stage: bool = False

    def run(self, closed: ClosedJaxpr, args) -> list[Any]:
        env: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        env |= dict(zip(closed.jaxpr.invars, args, strict=True))

        def read(atom):
            return atom.val if isinstance(atom, Literal) else env[atom]

        for eqn in closed.jaxpr.eqns:
            results = self.equation(eqn, [read(atom) for atom in eqn.invars])
            env |= dict(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in closed.jaxpr.outvars]

    def equation(self, eqn, args) -> list[Any]:
        """Results of one equation."""
        name, params = eqn.primitive.name, eqn.params
        if not any(isinstance(arg, Last) for arg in args):
            return _bound(eqn, args)
        if name in _INNER:
            inner = params[_INNER[name]]
            is_stage = str(params.get("name", "")).startswith(_STAGE)
            return self.staged(inner, args) if is_stage else self.run(inner, args)
        if name == "scan":
            return self.scan(params, args)
        if name == "short_sum" and not self.in_stage:
            return self.kept(lambda: short_sums(eqn, args, self.size))
        if name in ELEMENTWISE:
            shape = (*eqn.outvars[0].aval.shape, self.size)
            return [Last(eqn.primitive.bind(*[broadcast(arg, shape) for arg in args], **params))]
        rule = RULES.get(name)
        out = None if rule is None else rule(eqn, args, self.size)
        if out is None:
            return self.by_vmap(eqn, args)
        return [part if isinstance(part, Last) else Last(part) for part in out]

    def by_vmap(self, eqn, args):
        """Any other primitive."""
        axes = [-1 if isinstance(arg, Last) else None for arg in args]
        mapped = jax.vmap(lambda *args: tuple(_bound(eqn, args)), in_axes=axes, out_axes=-1)
        return [Last(out) for out in mapped(*map(_entry, args))]

    def staged(self, inner: ClosedJaxpr, args):
        """A stage: in the branch of a condition."""

        program = _Program(self.size, self.known, in_stage=True)
        return self.kept(lambda: program.run(inner, args))

    def kept(self, compute):
        """Results of a computation in the branch of a condition."""

        def done():
            return [spread(out, self.size) for out in compute()]

        return [Last(out) for out in _kept(self.known, done)]

    def turned(self, values) -> Last:
        """A batch with its axis first."""
        return Last(_kept(self.known, lambda x: jnp.moveaxis(x, 0, -1), values))

    def scan(self, params, args):
        first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
        consts, start, xs = args[:first], args[first:last], args[last:]

        def step(carried, row):
            row = [
                Last(value) if isinstance(x, Last) else value
                for x, value in zip(xs, row, strict=True)
            ]
            out = self.run(params["jaxpr"], [*consts, *map(Last, carried), *row])
            out = [spread(value, self.size) for value in out]
            return out[: last - first], out[last - first :]

        end, rows = jax.lax.scan(
            step, [spread(value, self.size) for value in start], list(map(_entry, xs)),
            length=params["length"], reverse=params["reverse"], unroll=params["unroll"],
        )  # fmt: skip
        return [Last(value) for value in (*end, *rows)]


def _bound(eqn, args) -> list[Any]:
    """The equation as it stands."""
    out = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
    return list(out) if eqn.primitive.multiple_results else [out]
