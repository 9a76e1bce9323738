"""The primitive `native_call`: a program that runs as one kernel inside any `jit`.

A batch (`jax.vmap`, any number of them) is lanes of the same call, and lanes whose member has
finished take another one (see `refill`). The derivative is a call of the differentiated program,
which is linear in the tangents and can be transposed. On a GPU of CUDA members are threads; on
other devices it is the program itself.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Primitive, Var, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ..meshes import alike, results, without_mesh
from .analysis import NoRule
from .expansions import EXPANSIONS
from .kernel import Signature, kernel
from .launch import launched


class Mode(NamedTuple):
    """How a call is lowered; see `native_call`."""

    strict: bool
    by_xla: bool
    once: bool
    alone: bool


native_call_p = Primitive("native_call")
native_call_p.multiple_results = True


def native_call(
    closed: ClosedJaxpr,
    args: list[Array],
    strict: bool = True,
    linear: int = 0,
    by_xla: bool = False,
    once: bool = False,
    alone: bool = False,
) -> list[Array]:
    """Results of a program by a kernel.

    **Arguments:** `closed`, the program; `args`, arrays of the shapes and dtypes of its arguments;
    `strict`, whether a form of a primitive that kernels do not know raises (`NoRule`) or the whole
    program is left to XLA; `linear`, number of the last arguments in which the program is linear;
    `by_xla`, whether it is left to XLA in any case; `once`, whether it is run so seldom that a
    short time of compilation matters more than that of a run; `alone`, whether derivatives and
    batches are those of the calls inside, not of this one.
    """
    batched = (False,) * len(args)
    return native_call_p.bind(
        *alike(args), closed=closed, batched=batched, size=None, linear=linear,
        mode=Mode(strict, by_xla, once, alone),
    )  # fmt: skip


@native_call_p.def_abstract_eval
def _abstract(*args, closed, batched, size, linear, mode):
    return results(closed.out_avals, args, batched, size)


@native_call_p.def_impl
def _impl(*args, **params):
    return jax.jit(functools.partial(native_call_p.bind, **params))(*args)


def _by_xla(*args, closed, batched, size, linear, mode):
    function = jaxpr_as_fun(closed)
    if size is None:
        return function(*args)
    axes = [0 if b else None for b in batched]
    return jax.vmap(function, in_axes=axes, axis_size=size)(*args)


# Part of the program around it, where that is a kernel.
EXPANSIONS["native_call"] = _by_xla


def _by_kernel(kernel_of, *args, closed, batched, size, linear, mode):
    try:
        signature = Signature(batched, size is not None, mode.once)
        made = None if mode.by_xla else kernel_of(closed, signature)
    except NoRule:
        if mode.strict:
            raise
        made = None
    if made is None:
        return _by_xla(*args, closed=closed, batched=batched, size=size, linear=linear, mode=mode)
    lead = () if size is None else (size,)
    out = [jax.ShapeDtypeStruct((*lead, *a.shape), a.dtype) for a in closed.out_avals]
    return jax.ffi.ffi_call(made.name, out)(*args)


def _lowering(function):
    return without_mesh(mlir.lower_fun(function, multiple_results=True))


mlir.register_lowering(native_call_p, _lowering(_by_xla))
for _platform, _kernel_of in ("cpu", kernel), ("cuda", launched):
    _lower = functools.partial(_by_kernel, _kernel_of)
    mlir.register_lowering(native_call_p, _lowering(_lower), platform=_platform)


def _batch(args, axes, *, closed, batched, size, linear, mode):
    """One more batch axis: joined with the one that is there."""
    if mode.alone:
        out = jax.vmap(jaxpr_as_fun(closed), in_axes=axes)(*args)
        return out, [0] * len(out)
    params: dict[str, object] = dict(closed=closed, linear=linear, mode=mode)
    extent = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
    out_args, out_batched = [], []
    for x, axis, was in zip(args, axes, batched, strict=True):
        if axis is not None:
            x = jnp.moveaxis(x, axis, 0)
        if size is not None and (axis is not None or was):
            own = x.shape[(axis is not None) + was :]
            x = x if axis is not None else x[None]
            x = x if was else x[:, None]
            x = jnp.broadcast_to(x, (extent, size, *own)).reshape(extent * size, *own)
        out_args.append(x)
        out_batched.append(axis is not None or was)
    total = extent if size is None else extent * size
    out = native_call_p.bind(*out_args, batched=tuple(out_batched), size=total, **params)
    if size is not None:
        out = [x.reshape(extent, size, *x.shape[1:]) for x in out]
    return out, [0] * len(out)


batching.primitive_batchers[native_call_p] = _batch


def _jvp(primals, tangents, *, closed, batched, size, linear, mode):
    given = tuple(type(t) is not ad.Zero for t in tangents)
    moving = [t for t in tangents if type(t) is not ad.Zero]
    moves = _moving(closed, given)
    if mode.alone:
        function = _of_moved(jaxpr_as_fun(closed), primals, given)
        moved = [x for x, g in zip(primals, given, strict=True) if g]
        out, rates = jax.jvp(function, moved, moving)
        rates = (x for x, kept in zip(rates, moves, strict=True) if kept)
        return out, _rates_of(out, rates, moves)
    out = native_call_p.bind(
        *primals, closed=closed, batched=batched, size=size, linear=linear, mode=mode
    )
    rates = iter(
        native_call_p.bind(
            *primals,
            *moving,
            closed=_tangent_program(closed, given),
            batched=batched + tuple(b for b, g in zip(batched, given, strict=True) if g),
            size=size,
            linear=len(moving),
            mode=mode,
        )
    )
    return out, _rates_of(out, rates, moves)


def _rates_of(out, rates, moves):
    """Rates of the results that move, no rates of the others."""
    return [
        next(rates) if moved else ad.Zero(jax.typeof(x).to_tangent_aval())
        for x, moved in zip(out, moves, strict=True)
    ]


def _of_moved(function, primals, given):
    """A function of the arguments marked in `given` alone."""

    def of_moved(*values):
        values = iter(values)
        return function(*(next(values) if g else x for x, g in zip(primals, given, strict=True)))

    return of_moved


ad.primitive_jvps[native_call_p] = _jvp


def _transpose(cotangents, *args, closed, batched, size, linear, mode):
    """Cotangents of the arguments in which a call is linear: the last `linear` ones."""
    count = len(args) - linear
    wanted = tuple(ad.is_undefined_primal(x) for x in args)
    if any(wanted[:count]):
        raise NotImplementedError("a native call is not linear in its first arguments")
    lead = () if size is None else (size,)
    cotangents = [
        jnp.zeros((*lead, *a.shape), a.dtype) if type(ct) is ad.Zero else ct
        for ct, a in zip(cotangents, closed.out_avals, strict=True)
    ]
    known = [x for x, w in zip(args, wanted, strict=True) if not w]
    marks = tuple(b for b, w in zip(batched, wanted, strict=True) if not w)
    out = native_call_p.bind(
        *known,
        *cotangents,
        closed=_transposed_program(closed, wanted),
        batched=marks + (size is not None,) * len(cotangents),
        size=size,
        linear=len(cotangents),
        mode=mode,
    )
    # An argument that all members share collects from all of them.
    shared = [size is not None and not b for b, w in zip(batched, wanted, strict=True) if w]
    out = iter(x.sum(axis=0) if s else x for x, s in zip(out, shared, strict=True))
    return [next(out) if w else None for w in wanted]


ad.primitive_transposes[native_call_p] = _transpose


def _is_real(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _moving(closed, given) -> list[bool]:
    """Which results are real and depend on the arguments marked in `given`."""
    moved = _dependent(closed.jaxpr, given)
    return [m and _is_real(aval) for m, aval in zip(moved, closed.out_avals, strict=True)]


def _dependent(jaxpr, given):
    """Which results depend on the arguments marked in `given`."""
    moved = {var for var, g in zip(jaxpr.invars, given, strict=True) if g}

    def is_moved(atom):
        return isinstance(atom, Var) and atom in moved

    for equation in jaxpr.eqns:
        marks, name = [is_moved(atom) for atom in equation.invars], equation.primitive.name
        if name == "jit":
            marks = _dependent(equation.params["jaxpr"].jaxpr, marks)
        else:
            marks = [any(marks) and name != "stop_gradient"] * len(equation.outvars)
        moved.update(var for var, m in zip(equation.outvars, marks, strict=True) if m)
    return [is_moved(atom) for atom in jaxpr.outvars]


_programs: dict[tuple, tuple[ClosedJaxpr, ClosedJaxpr]] = {}


def _kept(function):
    """A program made of another one, made once. Both are kept, as they are known by address."""

    @functools.wraps(function)
    def once(closed: ClosedJaxpr, marks: tuple[bool, ...]) -> ClosedJaxpr:
        key = function.__name__, id(closed), marks
        if key not in _programs:
            _programs[key] = function(closed, marks), closed
        return _programs[key][0]

    return once


def _shapes(avals):
    return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]


@_kept
def _tangent_program(closed, given):
    """Tangents of the results that move, for tangents of the arguments marked in `given`."""
    function = jaxpr_as_fun(closed)
    moved, moves = np.flatnonzero(given), _moving(closed, given)

    def tangent(*inputs):
        primals, moving = inputs[: len(given)], list(inputs[len(given) :])
        of_moved = _of_moved(function, primals, given)

        def kept(*values):
            return [x for x, is_kept in zip(of_moved(*values), moves, strict=True) if is_kept]

        return jax.jvp(kept, [primals[k] for k in moved], moving)[1]

    avals = [*closed.in_avals, *(closed.in_avals[k] for k in moved)]
    return jax.make_jaxpr(tangent)(*_shapes(avals))


@_kept
def _transposed_program(closed, wanted):
    """Cotangents of the arguments marked in `wanted`, in which the program is linear."""
    function = jaxpr_as_fun(closed)
    places = np.flatnonzero(wanted)
    known_avals = [a for a, w in zip(closed.in_avals, wanted, strict=True) if not w]

    def transposed(*inputs):
        known, cotangents = inputs[: len(known_avals)], list(inputs[len(known_avals) :])

        def linear(*values):
            known_ones, values = iter(known), iter(values)
            return function(*(next(values) if w else next(known_ones) for w in wanted))

        avals = _shapes([closed.in_avals[k] for k in places])
        return list(jax.linear_transpose(linear, *avals)(cotangents))

    return jax.make_jaxpr(transposed)(*_shapes([*known_avals, *closed.out_avals]))
