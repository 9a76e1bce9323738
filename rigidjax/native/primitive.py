"""The primitive `native_call`: a program that runs as one kernel inside any `jit`.

A batch (`jax.vmap`, any number of them) is lanes of the same call, so that no member waits for
another one but those of its block. The derivative is a call of the differentiated program. Where
there is no kernel (another platform, a program that cannot be one), it is the program itself.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from .kernel import Signature, kernel

native_call_p = Primitive("native_call")
native_call_p.multiple_results = True


def native_call(closed: ClosedJaxpr, args: list[Any]) -> list[Any]:
    """Results of a program by a kernel."""
    batched = (False,) * len(args)
    return native_call_p.bind(*args, closed=closed, batched=batched, size=None)


@native_call_p.def_abstract_eval
def _abstract(*avals, closed, batched, size):
    lead = () if size is None else (size,)
    return [jax.core.ShapedArray((*lead, *a.shape), a.dtype) for a in closed.out_avals]


@native_call_p.def_impl
def _impl(*args, **params):
    return jax.jit(functools.partial(native_call_p.bind, **params))(*args)


def _by_xla(*args, closed, batched, size):
    function = jaxpr_as_fun(closed)
    if size is None:
        return function(*args)
    axes = [0 if b else None for b in batched]
    return jax.vmap(function, in_axes=axes, axis_size=size)(*args)


def _by_kernel(*args, closed, batched, size):
    made = kernel(closed, Signature(batched, size is not None))
    lead = () if size is None else (size,)
    shapes = [jax.ShapeDtypeStruct((*lead, *a.shape), a.dtype) for a in closed.out_avals]
    return jax.ffi.ffi_call(made.name, shapes)(*args)


mlir.register_lowering(native_call_p, mlir.lower_fun(_by_xla, multiple_results=True))
mlir.register_lowering(
    native_call_p, mlir.lower_fun(_by_kernel, multiple_results=True), platform="cpu"
)


def _batch(args, axes, *, closed, batched, size):
    """One more batch axis: joined with the one that is there."""
    extent = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
    out_args, out_batched = [], []
    for x, axis, was in zip(args, axes, batched, strict=True):
        if axis is not None:
            x = jnp.moveaxis(x, axis, 0)
        if size is not None and (axis is not None or was):
            own = x.shape[1:] if axis is not None else x.shape
            own = own[1:] if was else own
            x = x if axis is not None else x[None]
            x = x if was else x[:, None]
            x = jnp.broadcast_to(x, (extent, size, *own)).reshape(extent * size, *own)
        out_args.append(x)
        out_batched.append(axis is not None or was)
    total = extent if size is None else extent * size
    out = native_call_p.bind(*out_args, closed=closed, batched=tuple(out_batched), size=total)
    if size is not None:
        out = [x.reshape(extent, size, *x.shape[1:]) for x in out]
    return out, [0] * len(out)


batching.primitive_batchers[native_call_p] = _batch


def _jvp(primals, tangents, *, closed, batched, size):
    given = tuple(type(t) is not ad.Zero for t in tangents)
    program = _differentiated(closed, given)
    moving = [t for t in tangents if type(t) is not ad.Zero]
    marks = batched + tuple(b for b, g in zip(batched, given, strict=True) if g)
    out = native_call_p.bind(*primals, *moving, closed=program, batched=marks, size=size)
    count = len(closed.out_avals)
    values, rates = out[:count], iter(out[count:])
    kinds = [jnp.issubdtype(a.dtype, jnp.inexact) for a in closed.out_avals]
    out_tangents = [
        next(rates) if inexact else ad.Zero(jax.typeof(v).to_tangent_aval())
        for v, inexact in zip(values, kinds, strict=True)
    ]
    return values, out_tangents


ad.primitive_jvps[native_call_p] = _jvp
_programs: dict[Any, Any] = {}


def _differentiated(closed: ClosedJaxpr, given: tuple[bool, ...]) -> ClosedJaxpr:
    """Values and those tangents that are real, for tangents of the arguments marked in `given`."""
    key = id(closed), given
    if key in _programs:
        return _programs[key][0]
    function = jaxpr_as_fun(closed)
    kinds = [jnp.issubdtype(a.dtype, jnp.inexact) for a in closed.out_avals]

    def both(*inputs):
        primals, moving = list(inputs[: len(given)]), iter(inputs[len(given) :])
        moved = [k for k, g in enumerate(given) if g]

        def of_moved(*values):
            full = list(primals)
            for k, value in zip(moved, values, strict=True):
                full[k] = value
            return function(*full)

        out, rates = jax.jvp(of_moved, [primals[k] for k in moved], list(moving))
        return [*out, *(r for r, inexact in zip(rates, kinds, strict=True) if inexact)]

    avals = [*closed.in_avals, *(a for a, g in zip(closed.in_avals, given, strict=True) if g)]
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    # The first program is kept, so that its address stays its own.
    _programs[key] = jax.make_jaxpr(both)(*shapes), closed
    return _programs[key][0]
