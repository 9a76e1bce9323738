"""The primitive `native_call`: a program that runs as one kernel inside any `jit`.

A batch (`jax.vmap`, any number of them) is lanes of the same call, and lanes whose member has
finished take another one (see `refill`). In forward mode values and tangents are one call, which
falls apart into two where the tangents are to be transposed (see `forward`). On a GPU of CUDA
members are threads; on other devices it is the program itself.
"""

import functools
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Primitive, Var, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ..lowering.expansions import EXPANSIONS
from ..lowering.registry import NoRule
from ..runtime.codegen import default_width
from ..runtime.cuda.launch import get_gpu_kernel
from ..runtime.kernel import Signature, get_kernel
from .forward_split import register_partial_eval_split
from .meshes import align_varying_axes, result_types, trace_without_mesh, without_mesh


class LoweringMode(NamedTuple):
    """How a call is lowered; see `native_call`."""

    strict: bool
    by_xla: bool
    once: bool
    alone: bool
    several: int


class ForwardMode(NamedTuple):
    """What a call gives values and tangents of.

    **Attributes:** `closed`, the program; `given`, which of its arguments have tangents, which
    follow them; `linear` and `values`, as of its own call; `before`, what it is itself the forward
    mode of, if it is.
    """

    closed: ClosedJaxpr
    given: tuple[bool, ...]
    linear: int
    values: tuple[int, int]
    before: "ForwardMode | None"


native_call_p, native_forward_p = Primitive("native_call"), Primitive("native_forward")
native_call_p.multiple_results = native_forward_p.multiple_results = True


def native_call(
    closed: ClosedJaxpr,
    args: list[Array],
    strict: bool = True,
    linear: int = 0,
    by_xla: bool = False,
    once: bool = False,
    alone: bool = False,
    values: tuple[int, int] = (0, 0),
    several: int = 0,
) -> list[Array]:
    """Results of a program by a kernel.

    **Arguments:** `closed`, the program; `args`, arrays of the shapes and dtypes of its arguments;
    `strict`, whether a form of a primitive that kernels do not know raises (`NoRule`) or the whole
    program is left to XLA; `linear`, number of the last arguments in which the program is linear;
    `by_xla`, whether it is left to XLA in any case; `once`, whether it is run so seldom that a
    short time of compilation matters more than that of a run; `alone`, whether derivatives and
    batches are those of the calls inside, not of this one; `values`, numbers of the first arguments
    and of the first results, which depend on these alone and are no batch where they are none;
    `several`, the number of tangents of which the program has stacks, if it has.
    """
    batched = (False,) * len(args)
    return native_call_p.bind(
        *align_varying_axes(args), closed=closed, batched=batched, size=None, linear=linear,
        mode=LoweringMode(strict, by_xla, once, alone, several), values=values,
    )  # fmt: skip


def _abstract(*args, closed, batched, size, **_):
    return result_types(closed.out_avals, args, batched, size)


def _evaluate_by_xla(*args, closed, batched, size, **_):
    function = jaxpr_as_fun(closed)
    if size is None:
        return function(*args)
    axes = [0 if b else None for b in batched]
    return jax.vmap(function, in_axes=axes, axis_size=size)(*args)


def _call_kernel(kernel_of, *args, closed, batched, size, mode, values, **_):
    try:
        shared = values[1] if size is not None and not any(batched[: values[0]]) else 0
        few = shared > 0 and (size or 1) <= default_width()
        signature = Signature(batched, size is not None, mode.once, mode.several, shared, few)
        made = None if mode.by_xla else kernel_of(closed, signature, size)
    except NoRule:
        if mode.strict:
            raise
        made = None
    except Exception as error:
        if mode.strict:
            raise
        # A defect of ours, which must not keep a user from results.
        warnings.warn(
            "A native kernel could not be made, and XLA runs the program in its place, whatever "
            f'`sol.stats["backend"]` says. Please report this: {type(error).__name__}: {error}',
            stacklevel=2,
        )
        made = None
    if made is None:
        return _evaluate_by_xla(*args, closed=closed, batched=batched, size=size)
    lead = () if size is None else (size,)
    out = [jax.ShapeDtypeStruct((*lead, *a.shape), a.dtype) for a in closed.out_avals]
    return jax.ffi.ffi_call(made.name, out)(*args)


def _host_kernel(closed, signature, size):
    return get_kernel(closed, signature)


def _lowering_rule(function):
    return without_mesh(mlir.lower_fun(function, multiple_results=True))


def _kernel_lowering_rule(kernel_of):
    """By a kernel, but in programs that are exported: its code is in this process alone."""
    here = _lowering_rule(functools.partial(_call_kernel, kernel_of))
    elsewhere = _lowering_rule(_evaluate_by_xla)

    def lowered(context, *args, mode, **params):
        exported = context.module_context.lowering_parameters.for_export
        if exported and mode.strict:
            warnings.warn(
                "A program that is exported has no native kernels, whose machine code is in this "
                "process alone: XLA's code is exported in their place.",
                stacklevel=2,
            )
        rule = elsewhere if exported else here
        return rule(context, *args, mode=mode, **params)

    return lowered


def _batch(args, axes, *, closed, batched, size, mode, values, forward=None, **params):
    """One more batch axis: joined with the one that is there."""
    if mode.alone:
        out = jax.vmap(jaxpr_as_fun(closed), in_axes=axes)(*args)
        return out, [0] * len(out)
    primitive = native_call_p
    if forward is not None:
        primitive, params["forward"] = native_forward_p, forward
    params.update(closed=closed, mode=mode, values=values)
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
    out = primitive.bind(*out_args, batched=tuple(out_batched), size=total, **params)
    if size is not None:
        out = [x.reshape(extent, size, *x.shape[1:]) for x in out]
    dims: list[int | None] = [0] * len(out)
    if values[1] and all(a is None for a in axes[: values[0]]):
        # Several tangents at one point: all members have the same values.
        first = [x[0] for x in out[: values[1]]] if extent else None
        if first is None:
            without = [
                x if a is None else jnp.zeros(np.delete(x.shape, a), x.dtype)
                for x, a in zip(args, axes, strict=True)
            ]
            first = primitive.bind(*without, batched=batched, size=size, **params)[: values[1]]
        out[: values[1]], dims[: values[1]] = first, [None] * values[1]
    return out, dims


def _jvp(primals, tangents, *, closed, batched, size, linear, mode, values, forward=None):
    given = tuple(type(t) is not ad.Zero for t in tangents)
    moving = [t for t in tangents if type(t) is not ad.Zero]
    moves = _has_tangents(closed, given)
    if mode.alone:
        function = _close_over_constants(jaxpr_as_fun(closed), primals, given)
        moved = [x for x, g in zip(primals, given, strict=True) if g]
        out, rates = jax.jvp(function, moved, moving)
        rates = (x for x, kept in zip(rates, moves, strict=True) if kept)
        return out, _with_symbolic_zeros(out, rates, moves)
    count = len(closed.out_avals)
    out = native_forward_p.bind(
        *primals,
        *moving,
        closed=_forward_jaxpr(closed, given),
        batched=batched + tuple(b for b, g in zip(batched, given, strict=True) if g),
        size=size,
        linear=0,
        mode=mode,
        values=(len(primals), count),
        forward=ForwardMode(closed, given, linear, values, forward),
    )
    return out[:count], _with_symbolic_zeros(out[:count], iter(out[count:]), moves)


def _with_symbolic_zeros(out, rates, moves):
    """Rates of the results that move, no rates of the others."""
    return [
        next(rates) if moved else ad.Zero(jax.typeof(x).to_tangent_aval())
        for x, moved in zip(out, moves, strict=True)
    ]


def _close_over_constants(function, primals, given):
    """A function of the arguments marked in `given` alone."""

    def of_moved(*values):
        values = iter(values)
        return function(*(next(values) if g else x for x, g in zip(primals, given, strict=True)))

    return of_moved


def _primal_call(*, forward, batched, size, mode, **_):
    """The call of values within one of values and tangents."""
    primitive = native_call_p
    params = dict(closed=forward.closed, size=size, linear=forward.linear, mode=mode)
    if forward.before is not None:
        primitive, params["forward"] = native_forward_p, forward.before
    batched = batched[: len(forward.given)]
    return functools.partial(primitive.bind, batched=batched, values=forward.values, **params)


def _tangent_call(*, forward, batched, size, mode, **_):
    """The call of tangents within one of values and tangents."""
    return functools.partial(
        native_call_p.bind,
        closed=_tangent_jaxpr(forward.closed, forward.given),
        batched=batched,
        size=size,
        linear=len(batched) - len(forward.given),
        mode=mode,
        values=(0, 0),
    )


def _transpose(cotangents, *args, closed, batched, size, linear, mode, values):
    """Cotangents of the arguments in which a call is linear: the last `linear` ones."""
    count = len(args) - linear
    wanted = tuple(ad.is_undefined_primal(x) for x in args)
    if any(wanted[:count]):
        raise NotImplementedError("a native call is not linear in its first arguments")
    # Results without a cotangent stay out: zero times an infinite derivative is not zero.
    given = tuple(type(ct) is not ad.Zero for ct in cotangents)
    cotangents = [ct for ct, g in zip(cotangents, given, strict=True) if g]
    known = [x for x, w in zip(args, wanted, strict=True) if not w]
    marks = tuple(b for b, w in zip(batched, wanted, strict=True) if not w)
    out = native_call_p.bind(
        *known,
        *cotangents,
        closed=_transposed_jaxpr(closed, (wanted, given)),
        batched=marks + (size is not None,) * len(cotangents),
        size=size,
        linear=len(cotangents),
        mode=mode,
        values=(0, 0),
    )
    # An argument that all members share collects from all of them.
    shared = [size is not None and not b for b, w in zip(batched, wanted, strict=True) if w]
    out = iter(x.sum(axis=0) if s else x for x, s in zip(out, shared, strict=True))
    return [next(out) if w else None for w in wanted]


def _register(primitive):
    def impl(*args, **params):
        return jax.jit(functools.partial(primitive.bind, **params))(*args)

    primitive.def_impl(impl)
    primitive.def_abstract_eval(_abstract)
    # JAX 0.12 asks whether a program inside has primitives of JAX's own that it must write out:
    # whoever lowers a call does that.
    primitive.is_high = lambda *_, **__: False
    # Part of the program around it, where that is a kernel.
    EXPANSIONS[primitive.name] = _evaluate_by_xla
    mlir.register_lowering(primitive, _lowering_rule(_evaluate_by_xla))
    for platform, kernel_of in ("cpu", _host_kernel), ("cuda", get_gpu_kernel):
        mlir.register_lowering(primitive, _kernel_lowering_rule(kernel_of), platform=platform)
    batching.primitive_batchers[primitive] = _batch
    ad.primitive_jvps[primitive] = _jvp


_register(native_call_p)
_register(native_forward_p)
ad.primitive_transposes[native_call_p] = _transpose
register_partial_eval_split(
    native_forward_p, lambda *, values, **_: values, _primal_call, _tangent_call
)


def _is_real(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _has_tangents(closed, given) -> list[bool]:
    """Which results are real and depend on the arguments marked in `given`."""
    moved = _find_dependent(closed.jaxpr, given)
    return [m and _is_real(aval) for m, aval in zip(moved, closed.out_avals, strict=True)]


def _find_dependent(jaxpr, given):
    """Which results depend on the arguments marked in `given`."""
    moved = {var for var, g in zip(jaxpr.invars, given, strict=True) if g}

    def is_moved(atom):
        return isinstance(atom, Var) and atom in moved

    for equation in jaxpr.eqns:
        marks, name = [is_moved(atom) for atom in equation.invars], equation.primitive.name
        if name == "jit":
            marks = _find_dependent(equation.params["jaxpr"].jaxpr, marks)
        else:
            marks = [any(marks) and name != "stop_gradient"] * len(equation.outvars)
        moved.update(var for var, m in zip(equation.outvars, marks, strict=True) if m)
    return [is_moved(atom) for atom in jaxpr.outvars]


_programs: dict[tuple, tuple[ClosedJaxpr, ClosedJaxpr]] = {}


def _cached_by_identity(function):
    """A program made of another one, made once. Both are kept, as they are known by address."""

    @functools.wraps(function)
    def once(closed: ClosedJaxpr, marks: tuple) -> ClosedJaxpr:
        key = function.__name__, id(closed), marks
        if key not in _programs:
            _programs[key] = function(closed, marks), closed
        return _programs[key][0]

    return once


def _shapes(avals):
    return [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


@_cached_by_identity
def _tangent_jaxpr(closed, given):
    """Tangents of the results that move, for tangents of the arguments marked in `given`."""
    return _differentiate(closed, given, lambda values, rates: rates)


@_cached_by_identity
def _forward_jaxpr(closed, given):
    """All results, and the tangents of those that move."""
    return _differentiate(closed, given, lambda values, rates: [*values, *rates])


def _differentiate(closed, given, wanted):
    function = jaxpr_as_fun(closed)
    moved, moves = np.flatnonzero(given), _has_tangents(closed, given)

    def forward(*inputs):
        primals, moving = inputs[: len(given)], list(inputs[len(given) :])
        of_moved = _close_over_constants(function, primals, given)

        def apart(*values):
            out = of_moved(*values)
            return [x for x, is_kept in zip(out, moves, strict=True) if is_kept], out

        _, rates, values = jax.jvp(apart, [primals[k] for k in moved], moving, has_aux=True)
        return wanted(values, rates)

    avals = [*closed.in_avals, *(closed.in_avals[k] for k in moved)]
    return trace_without_mesh(forward, *_shapes(avals))


@_cached_by_identity
def _transposed_jaxpr(closed, marks):
    """Return the cotangents of some arguments, in which the program is linear, for those of some
    results.

    **Arguments:** `marks`, which arguments and which results.
    """
    function, (wanted, given) = jaxpr_as_fun(closed), marks
    places = np.flatnonzero(wanted)
    known_avals = [a for a, w in zip(closed.in_avals, wanted, strict=True) if not w]

    def transposed(*inputs):
        known, cotangents = inputs[: len(known_avals)], list(inputs[len(known_avals) :])

        def linear(*values):
            known_ones, values = iter(known), iter(values)
            out = function(*(next(values) if w else next(known_ones) for w in wanted))
            return [y for y, g in zip(out, given, strict=True) if g]

        avals = _shapes([closed.in_avals[k] for k in places])
        return list(jax.linear_transpose(linear, *avals)(cotangents))

    cotangents = [a for a, g in zip(closed.out_avals, given, strict=True) if g]
    return trace_without_mesh(transposed, *_shapes([*known_avals, *cotangents]))
