"""Programs over batches whose axis is behind all others: `jax.vmap` with the axis kept last.

Every primitive that stands in the equations of multibody systems has a rule here. Any other one is
batched by its rule of `jax.vmap`, with the axis moved forth and back.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Array

from .sums import short_sum

# Functions marked by `stage`.
_STAGE = "stage of a recursion: "


@dataclasses.dataclass(frozen=True)
class Last:
    """Values of a batch, its axis last."""

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
    """Results of a program of one system for a batch, the batch axis last.

    **Arguments:** `closed`, of one system; `args`, `Last` or the same for all; `size` of the batch.
    """
    first = next(arg.values for arg in args if isinstance(arg, Last) and _is_real(arg.values))
    # True unless all is lost: of this XLA cannot know.
    first = first.reshape(-1, size)[-1]
    known = jnp.any(first == first)
    return [_spread(out, size) for out in _Program(size, known).run(closed, args)]


def _is_real(values):
    return jnp.issubdtype(values.dtype, jnp.floating)


def _spread(value, size):
    """Values of a batch, also where they are the same for all."""
    if isinstance(value, Last):
        return value.values
    value = jnp.asarray(value)
    return jnp.broadcast_to(value[..., None], (*value.shape, size))


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
            avals = [atom.aval for atom in eqn.outvars]
            return self.kept(lambda: _short_sum(eqn, args, self.size), avals)
        if name in _ELEMENTWISE:
            shape = (*eqn.outvars[0].aval.shape, self.size)
            return [Last(eqn.primitive.bind(*[_to(arg, shape) for arg in args], **params))]
        rule = _RULES.get(name)
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
        return self.kept(lambda: program.run(inner, args), inner.out_avals)

    def kept(self, compute, avals):
        """Results of a computation in the branch of a condition."""

        def done():
            return [_spread(out, self.size) for out in compute()]

        def lost():
            return [jnp.full((*a.shape, self.size), jnp.nan, a.dtype) for a in avals]

        return [Last(out) for out in jax.lax.cond(self.known, done, lost)]

    def scan(self, params, args):
        first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
        consts, start, xs = args[:first], args[first:last], args[last:]

        def step(carried, row):
            row = [
                Last(value) if isinstance(x, Last) else value
                for x, value in zip(xs, row, strict=True)
            ]
            out = self.run(params["jaxpr"], [*consts, *map(Last, carried), *row])
            out = [_spread(value, self.size) for value in out]
            return out[: last - first], out[last - first :]

        end, rows = jax.lax.scan(
            step, [_spread(value, self.size) for value in start], list(map(_entry, xs)),
            length=params["length"], reverse=params["reverse"], unroll=params["unroll"],
        )  # fmt: skip
        return [Last(value) for value in (*end, *rows)]


def _bound(eqn, args) -> list[Any]:
    """The equation as it stands."""
    out = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
    return list(out) if eqn.primitive.multiple_results else [out]


def _to(arg, shape) -> Array:
    """An operand of an elementwise primitive in the shape of a batch of results."""
    values = arg.values if isinstance(arg, Last) else jnp.asarray(arg)[..., None]
    if values.ndim < len(shape):
        values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    return jnp.broadcast_to(values, shape)


# Rules: the results for a batch, or `None` if this case is left to `jax.vmap`.


def _slice(eqn, args, size):
    p = eqn.params
    strides = None if p["strides"] is None else (*p["strides"], 1)
    values = args[0].values
    return [jax.lax.slice(values, (*p["start_indices"], 0), (*p["limit_indices"], size), strides)]


def _concatenate(eqn, args, size):
    return [jnp.concatenate([_spread(arg, size) for arg in args], eqn.params["dimension"])]


def _stack(eqn, args, size):
    return [jnp.stack([_spread(arg, size) for arg in args], eqn.params["axis"])]


def _unstack(eqn, args, size):
    return jnp.unstack(args[0].values, axis=eqn.params["axis"])


def _split(eqn, args, size):
    return jax.lax.split(args[0].values, eqn.params["sizes"], eqn.params["axis"])


def _broadcast_in_dim(eqn, args, size):
    shape, dimensions = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    values = args[0].values
    return [jax.lax.broadcast_in_dim(values, (*shape, size), (*dimensions, len(shape)))]


def _reshape(eqn, args, size):
    if eqn.params["dimensions"] is not None:
        return None
    return [args[0].values.reshape(*eqn.params["new_sizes"], size)]


def _squeeze(eqn, args, size):
    return [jax.lax.squeeze(args[0].values, eqn.params["dimensions"])]


def _transpose(eqn, args, size):
    order = eqn.params["permutation"]
    return [jax.lax.transpose(args[0].values, (*order, len(order)))]


def _rev(eqn, args, size):
    return [jax.lax.rev(args[0].values, eqn.params["dimensions"])]


def _pad(eqn, args, size):
    values, fill = args
    if isinstance(fill, Last):
        return None
    return [jax.lax.pad(values.values, fill, (*eqn.params["padding_config"], (0, 0, 0)))]


def _reduce_sum(eqn, args, size):
    return [jnp.sum(args[0].values, axis=tuple(eqn.params["axes"]))]


def _short_sum(eqn, args, size):
    factors = [arg.values if isinstance(arg, Last) else arg[..., None] for arg in args]
    return [Last(short_sum(*factors, axis=eqn.params["axis"]))]


def _gather(eqn, args, size):
    values, indices = args
    if isinstance(indices, Last):
        return None
    old, p = eqn.params["dimension_numbers"], eqn.params
    if old.operand_batching_dims:
        return None
    numbers = jax.lax.GatherDimensionNumbers(
        (*old.offset_dims, eqn.outvars[0].aval.ndim),
        old.collapsed_slice_dims,
        old.start_index_map,
    )
    sizes = (*p["slice_sizes"], size)
    # What stands outside is filled as it was.
    return [
        jax.lax.gather(
            values.values, indices, numbers, sizes, mode=p["mode"], fill_value=p["fill_value"]
        )
    ]


def _dynamic_slice(eqn, args, size):
    values, *starts = args
    if any(isinstance(start, Last) for start in starts):
        return None
    return [jax.lax.dynamic_slice(values.values, (*starts, 0), (*eqn.params["slice_sizes"], size))]


def _dynamic_update_slice(eqn, args, size):
    values, part, *starts = args
    if any(isinstance(start, Last) for start in starts):
        return None
    spread = (_spread(values, size), _spread(part, size))
    return [jax.lax.dynamic_update_slice(*spread, (*starts, 0))]


def _dot_general(eqn, args, size):
    left, right = args
    contracted, batched = eqn.params["dimension_numbers"]
    if isinstance(left, Last) or any(batched):
        return None
    return [
        jax.lax.dot_general(
            left, right.values, (contracted, batched), precision=eqn.params["precision"]
        )
    ]


_RULES: dict[str, Callable[..., Any]] = {
    "slice": _slice,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "split": _split,
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "rev": _rev,
    "pad": _pad,
    "reduce_sum": _reduce_sum,
    "short_sum": _short_sum,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "dot_general": _dot_general,
}
# Primitives with a program inside, and where it stands.
_INNER = {"jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}
_ELEMENTWISE = frozenset(
    "abs acos add add_any and asin atan atan2 ceil convert_element_type cos cosh div eq exp floor "
    "ge gt integer_pow is_finite le log lt max min mul ne neg not or pow rem round rsqrt select_n "
    "sign sin sinh sqrt square stop_gradient sub tan tanh".split()
)
