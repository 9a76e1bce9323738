"""The primitive `native_call`: a jaxpr that runs as one kernel inside any `jax.jit`.

Any number of nested `jax.vmap` is one batch axis of the same call; its elements run in the lanes of
the kernel, and a lane whose element has finished takes another one (lane compaction). In forward
mode values and tangents are one call, which partial evaluation splits in two where the tangents are
transposed (see `forward_split`). On CUDA GPUs each batch element is a thread. On other devices XLA
runs the jaxpr itself.
"""

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive, Var, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ..primitives.expansions import EXPANSIONS
from ..primitives.registry import NoRule
from ..runtime.codegen import default_width
from ..runtime.cuda.launch import get_gpu_kernel
from ..runtime.kernel import Signature, get_kernel
from ..runtime.platforms import why_no_kernels
from .forward_split import register_partial_eval_split
from .meshes import align_varying_axes, result_types, trace_without_mesh, without_mesh


class LoweringMode(NamedTuple):
    """Options that decide how a call is lowered; see `native_call`."""

    strict: bool
    by_xla: bool
    run_once: bool
    inline: bool
    num_tangents: int


class ForwardMode(NamedTuple):
    """The call from which a call for values and tangents was derived.

    **Attributes:**

    - `closed`: the jaxpr of the original call.
    - `has_tangent`: for each argument of the original call whether it has a tangent. The tangents
      follow the arguments.
    - `num_linear`, `primal_counts`: parameters of the original call.
    - `before`: the call of which the original call is itself the forward mode, `None` if it is not.
    """

    closed: ClosedJaxpr
    has_tangent: tuple[bool, ...]
    num_linear: int
    primal_counts: tuple[int, int]
    before: "ForwardMode | None"


native_call_p, native_forward_p = Primitive("native_call"), Primitive("native_forward")
native_call_p.multiple_results = native_forward_p.multiple_results = True


def native_call(
    closed: ClosedJaxpr,
    args: list[Array],
    strict: bool = True,
    num_linear: int = 0,
    by_xla: bool = False,
    run_once: bool = False,
    inline: bool = False,
    primal_counts: tuple[int, int] = (0, 0),
    num_tangents: int = 0,
) -> list[Array]:
    """Return the results of a jaxpr, evaluated by a kernel.

    **Arguments:**

    - `closed`: the jaxpr.
    - `args`: arrays with the shapes and dtypes of its arguments.
    - `strict`: raise `NoRule` for an equation without a lowering rule, instead of leaving the
      whole jaxpr to XLA.
    - `num_linear`: number of last arguments in which the jaxpr is linear.
    - `by_xla`: leave the jaxpr to XLA in any case.
    - `run_once`: compile fast rather than well, because the jaxpr is evaluated seldom.
    - `inline`: replace the call by its equations under differentiation and batching.
    - `primal_counts`: numbers of first arguments and first results; these results depend on these
      arguments alone, and have no batch axis if the arguments have none.
    - `num_tangents`: length of the stacks of tangents in the jaxpr, 0 if there are none.
    """
    batched = (False,) * len(args)
    return native_call_p.bind(
        *align_varying_axes(args), closed=closed, batched=batched, size=None,
        num_linear=num_linear, mode=LoweringMode(strict, by_xla, run_once, inline, num_tangents),
        primal_counts=primal_counts,
    )  # fmt: skip


def _abstract(
    *args: ShapedArray, closed: ClosedJaxpr, batched: tuple[bool, ...], size: int | None, **_: Any
) -> list[ShapedArray]:
    return result_types(closed.out_avals, args, batched, size)


def _evaluate_by_xla(
    *args: Array, closed: ClosedJaxpr, batched: tuple[bool, ...], size: int | None, **_: Any
) -> list[Array]:
    function = jaxpr_as_fun(closed)
    if size is None:
        return function(*args)
    axes = [0 if b else None for b in batched]
    return jax.vmap(function, in_axes=axes, axis_size=size)(*args)


def _call_kernel(
    kernel_of: Callable[..., Any],
    *args: Array,
    closed: ClosedJaxpr,
    batched: tuple[bool, ...],
    size: int | None,
    mode: LoweringMode,
    primal_counts: tuple[int, int],
    **_: Any,
) -> Sequence[Array]:
    try:
        is_shared = size is not None and not any(batched[: primal_counts[0]])
        num_shared = primal_counts[1] if is_shared else 0
        is_small_batch = num_shared > 0 and (size or 1) <= default_width()
        signature = Signature(
            batched, size is not None, mode.run_once, mode.num_tangents, num_shared, is_small_batch
        )
        to_xla = mode.by_xla or why_no_kernels()
        kernel = None if to_xla else kernel_of(closed, signature, size)
    except NoRule:
        if mode.strict:
            raise
        kernel = None
    except Exception as error:
        if mode.strict:
            raise
        # A defect of the compiler must not keep users from their results.
        warnings.warn(
            "A native kernel could not be made, and XLA runs the computation instead, whatever "
            f'`sol.stats["backend"]` says. Please report this: {type(error).__name__}: {error}',
            stacklevel=2,
        )
        kernel = None
    if kernel is None:
        return _evaluate_by_xla(*args, closed=closed, batched=batched, size=size)
    lead = () if size is None else (size,)
    out = [jax.ShapeDtypeStruct((*lead, *a.shape), a.dtype) for a in closed.out_avals]
    return jax.ffi.ffi_call(kernel.name, out)(*args)


def _host_kernel(closed: ClosedJaxpr, signature: Signature, size: int | None) -> Any:
    return get_kernel(closed, signature)


def _lowering_rule(function: Callable[..., Any]) -> Callable[..., Any]:
    return without_mesh(mlir.lower_fun(function, multiple_results=True))


def _kernel_lowering_rule(kernel_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that lowers to a kernel, or to XLA's code in an exported computation.

    The machine code of a kernel exists in this process alone.
    """
    to_kernel = _lowering_rule(functools.partial(_call_kernel, kernel_of))
    to_xla = _lowering_rule(_evaluate_by_xla)

    def lowering(context, *args, mode, **params):
        exported = context.module_context.lowering_parameters.for_export
        if exported and mode.strict:
            warnings.warn(
                "An exported computation has no native kernels, whose machine code is in this "
                "process alone: XLA's code is exported instead.",
                stacklevel=2,
            )
        rule = to_xla if exported else to_kernel
        return rule(context, *args, mode=mode, **params)

    return lowering


def _batch(
    args: Sequence[Array],
    axes: Sequence[int | None],
    *,
    closed: ClosedJaxpr,
    batched: tuple[bool, ...],
    size: int | None,
    mode: LoweringMode,
    primal_counts: tuple[int, int],
    forward: ForwardMode | None = None,
    **params: Any,
) -> tuple[list[Array], list[int | None]]:
    """Merge another batch axis with the batch axis of the call, if there is one."""
    if mode.inline:
        out = jax.vmap(jaxpr_as_fun(closed), in_axes=axes)(*args)
        return out, [0] * len(out)
    primitive = native_call_p
    if forward is not None:
        primitive, params["forward"] = native_forward_p, forward
    params.update(closed=closed, mode=mode, primal_counts=primal_counts)
    extent = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
    out_args, out_batched = [], []
    for x, axis, was_batched in zip(args, axes, batched, strict=True):
        if axis is not None:
            x = jnp.moveaxis(x, axis, 0)
        if size is not None and (axis is not None or was_batched):
            element_shape = x.shape[(axis is not None) + was_batched :]
            x = x if axis is not None else x[None]
            x = x if was_batched else x[:, None]
            x = jnp.broadcast_to(x, (extent, size, *element_shape))
            x = x.reshape(extent * size, *element_shape)
        out_args.append(x)
        out_batched.append(axis is not None or was_batched)
    total = extent if size is None else extent * size
    out = primitive.bind(*out_args, batched=tuple(out_batched), size=total, **params)
    if size is not None:
        out = [x.reshape(extent, size, *x.shape[1:]) for x in out]
    dims: list[int | None] = [0] * len(out)
    num_primals, num_values = primal_counts
    if num_values and all(a is None for a in axes[:num_primals]):
        # Several tangents at one point: all batch elements have the same values.
        values = [x[0] for x in out[:num_values]] if extent else None
        if values is None:
            element = [
                x if a is None else jnp.zeros(np.delete(x.shape, a), x.dtype)
                for x, a in zip(args, axes, strict=True)
            ]
            values = primitive.bind(*element, batched=batched, size=size, **params)[:num_values]
        out[:num_values], dims[:num_values] = values, [None] * num_values
    return out, dims


def _jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    closed: ClosedJaxpr,
    batched: tuple[bool, ...],
    size: int | None,
    num_linear: int,
    mode: LoweringMode,
    primal_counts: tuple[int, int],
    forward: ForwardMode | None = None,
) -> tuple[Any, Any]:
    has_tangent = tuple(type(t) is not ad.Zero for t in tangents)
    nonzero = [t for t in tangents if type(t) is not ad.Zero]
    out_has_tangent = _has_tangents(closed, has_tangent)
    if mode.inline:
        function = _close_over_constants(jaxpr_as_fun(closed), primals, has_tangent)
        varied = [x for x, h in zip(primals, has_tangent, strict=True) if h]
        out, out_tangents = jax.jvp(function, varied, nonzero)
        kept = (t for t, h in zip(out_tangents, out_has_tangent, strict=True) if h)
        return out, _with_symbolic_zeros(out, kept, out_has_tangent)
    count = len(closed.out_avals)
    out = native_forward_p.bind(
        *primals,
        *nonzero,
        closed=_forward_jaxpr(closed, has_tangent),
        batched=batched + tuple(b for b, h in zip(batched, has_tangent, strict=True) if h),
        size=size,
        num_linear=0,
        mode=mode,
        primal_counts=(len(primals), count),
        forward=ForwardMode(closed, has_tangent, num_linear, primal_counts, forward),
    )
    return out[:count], _with_symbolic_zeros(out[:count], iter(out[count:]), out_has_tangent)


def _with_symbolic_zeros(
    out: Sequence[Array], tangents: Iterator[Array], has_tangent: Sequence[bool]
) -> list[Any]:
    """Return a tangent for each result, a symbolic zero where there is none."""
    return [
        next(tangents) if h else ad.Zero(jax.typeof(x).to_tangent_aval())
        for x, h in zip(out, has_tangent, strict=True)
    ]


def _close_over_constants(
    function: Callable[..., Any], primals: Sequence[Array], has_tangent: Sequence[bool]
) -> Callable[..., Any]:
    """Return a function of the arguments with a tangent alone."""

    def partial(*values):
        values = iter(values)
        args = (next(values) if h else x for x, h in zip(primals, has_tangent, strict=True))
        return function(*args)

    return partial


def _primal_call(
    *,
    forward: ForwardMode,
    batched: tuple[bool, ...],
    size: int | None,
    mode: LoweringMode,
    **_: Any,
) -> Callable[..., Any]:
    """Return the call for the values alone."""
    primitive = native_call_p
    params: dict[str, Any] = dict(
        closed=forward.closed, size=size, num_linear=forward.num_linear, mode=mode
    )
    if forward.before is not None:
        primitive, params["forward"] = native_forward_p, forward.before
    batched = batched[: len(forward.has_tangent)]
    return functools.partial(
        primitive.bind, batched=batched, primal_counts=forward.primal_counts, **params
    )


def _tangent_call(
    *,
    forward: ForwardMode,
    batched: tuple[bool, ...],
    size: int | None,
    mode: LoweringMode,
    **_: Any,
) -> Callable[..., Any]:
    """Return the call for the tangents alone."""
    return functools.partial(
        native_call_p.bind,
        closed=_tangent_jaxpr(forward.closed, forward.has_tangent),
        batched=batched,
        size=size,
        num_linear=len(batched) - len(forward.has_tangent),
        mode=mode,
        primal_counts=(0, 0),
    )


def _transpose(
    cotangents: Sequence[Any],
    *args: Any,
    closed: ClosedJaxpr,
    batched: tuple[bool, ...],
    size: int | None,
    num_linear: int,
    mode: LoweringMode,
    primal_counts: tuple[int, int],
) -> list[Array | None]:
    """Return cotangents of the last `num_linear` arguments."""
    count = len(args) - num_linear
    is_wanted = tuple(ad.is_undefined_primal(x) for x in args)
    if any(is_wanted[:count]):
        raise NotImplementedError("a native call is not linear in its first arguments")
    # Results without a cotangent are left out: zero times an infinite derivative is not zero.
    has_cotangent = tuple(type(ct) is not ad.Zero for ct in cotangents)
    cotangents = [ct for ct, h in zip(cotangents, has_cotangent, strict=True) if h]
    known = [x for x, w in zip(args, is_wanted, strict=True) if not w]
    known_batched = tuple(b for b, w in zip(batched, is_wanted, strict=True) if not w)
    out = native_call_p.bind(
        *known,
        *cotangents,
        closed=_transposed_jaxpr(closed, (is_wanted, has_cotangent)),
        batched=known_batched + (size is not None,) * len(cotangents),
        size=size,
        num_linear=len(cotangents),
        mode=mode,
        primal_counts=(0, 0),
    )
    # The cotangent of an argument without batch axis is the sum over the batch.
    is_summed = [size is not None and not b for b, w in zip(batched, is_wanted, strict=True) if w]
    out = iter(x.sum(axis=0) if s else x for x, s in zip(out, is_summed, strict=True))
    return [next(out) if w else None for w in is_wanted]


@functools.lru_cache(maxsize=256)
def _jit_call(primitive: Primitive, params: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """Return a call as a compiled function, the same one each time, so that XLA compiles once."""
    return jax.jit(functools.partial(primitive.bind, **dict(params)))


def _register(primitive: Primitive) -> None:
    def impl(*args, **params):
        return _jit_call(primitive, tuple(params.items()))(*args)

    primitive.def_impl(impl)
    primitive.def_abstract_eval(_abstract)
    # JAX 0.12 asks whether the inner jaxpr contains JAX's high-level primitives, which it would
    # have to expand. The lowering of the call expands them.
    primitive.is_high = lambda *_, **__: False
    # Inside another kernel a call is expanded.
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
    native_forward_p, lambda *, primal_counts, **_: primal_counts, _primal_call, _tangent_call
)


def _is_real(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _has_tangents(closed: ClosedJaxpr, has_tangent: Sequence[bool]) -> list[bool]:
    """Return which results are inexact and depend on an argument with a tangent."""
    depends = _find_dependent(closed.jaxpr, has_tangent)
    return [d and _is_real(aval) for d, aval in zip(depends, closed.out_avals, strict=True)]


def _find_dependent(jaxpr: Jaxpr, has_tangent: Sequence[bool]) -> list[bool]:
    """Return which results depend on an argument with a tangent."""
    dependent = {var for var, h in zip(jaxpr.invars, has_tangent, strict=True) if h}

    def is_dependent(atom):
        return isinstance(atom, Var) and atom in dependent

    for equation in jaxpr.eqns:
        marks, name = [is_dependent(atom) for atom in equation.invars], equation.primitive.name
        if name == "jit":
            marks = _find_dependent(equation.params["jaxpr"].jaxpr, marks)
        else:
            marks = [any(marks) and name != "stop_gradient"] * len(equation.outvars)
        dependent.update(var for var, m in zip(equation.outvars, marks, strict=True) if m)
    return [is_dependent(atom) for atom in jaxpr.outvars]


_derived: dict[tuple, tuple[ClosedJaxpr, ClosedJaxpr]] = {}


def _cached_by_identity(
    function: Callable[[ClosedJaxpr, Any], ClosedJaxpr],
) -> Callable[[ClosedJaxpr, Any], ClosedJaxpr]:
    """Cache a jaxpr derived from another one by identity; both are kept alive by the cache."""

    @functools.wraps(function)
    def lookup(closed: ClosedJaxpr, marks: tuple) -> ClosedJaxpr:
        key = function.__name__, id(closed), marks
        if key not in _derived:
            _derived[key] = function(closed, marks), closed
        return _derived[key][0]

    return lookup


def _shapes(avals: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


@_cached_by_identity
def _tangent_jaxpr(closed: ClosedJaxpr, has_tangent: tuple[bool, ...]) -> ClosedJaxpr:
    """Return the jaxpr of the tangents of the results."""
    return _differentiate(closed, has_tangent, lambda values, tangents: tangents)


@_cached_by_identity
def _forward_jaxpr(closed: ClosedJaxpr, has_tangent: tuple[bool, ...]) -> ClosedJaxpr:
    """Return the jaxpr of all results, followed by their tangents."""
    return _differentiate(closed, has_tangent, lambda values, tangents: [*values, *tangents])


def _differentiate(
    closed: ClosedJaxpr, has_tangent: tuple[bool, ...], select: Callable[..., Any]
) -> ClosedJaxpr:
    """Trace `select(values, tangents)`; results that cannot have a tangent are left out."""
    function = jaxpr_as_fun(closed)
    varied, out_has_tangent = np.flatnonzero(has_tangent), _has_tangents(closed, has_tangent)

    def forward(*inputs):
        primals, tangents = inputs[: len(has_tangent)], list(inputs[len(has_tangent) :])
        partial = _close_over_constants(function, primals, has_tangent)

        def with_values(*values):
            out = partial(*values)
            return [x for x, h in zip(out, out_has_tangent, strict=True) if h], out

        _, out_tangents, values = jax.jvp(
            with_values, [primals[k] for k in varied], tangents, has_aux=True
        )
        return select(values, out_tangents)

    avals = [*closed.in_avals, *(closed.in_avals[k] for k in varied)]
    return trace_without_mesh(forward, *_shapes(avals))


@_cached_by_identity
def _transposed_jaxpr(
    closed: ClosedJaxpr, marks: tuple[tuple[bool, ...], tuple[bool, ...]]
) -> ClosedJaxpr:
    """Return the jaxpr that maps cotangents of results to cotangents of linear arguments.

    **Arguments:** `marks`, which arguments have a cotangent to be computed, and which results have
    a given one.
    """
    function, (is_wanted, has_cotangent) = jaxpr_as_fun(closed), marks
    linear_args = np.flatnonzero(is_wanted)
    known_avals = [a for a, w in zip(closed.in_avals, is_wanted, strict=True) if not w]

    def transpose(*inputs):
        known, cotangents = inputs[: len(known_avals)], list(inputs[len(known_avals) :])

        def linear(*values):
            remaining, values = iter(known), iter(values)
            out = function(*(next(values) if w else next(remaining) for w in is_wanted))
            return [y for y, h in zip(out, has_cotangent, strict=True) if h]

        avals = _shapes([closed.in_avals[k] for k in linear_args])
        return list(jax.linear_transpose(linear, *avals)(cotangents))

    cotangents = [a for a, h in zip(closed.out_avals, has_cotangent, strict=True) if h]
    return trace_without_mesh(transpose, *_shapes([*known_avals, *cotangents]))
