"""`jax.jit` with executables on disk, so that a later process traces and compiles nothing.

The key of an executable is a digest of everything on which its trace depends: the function, the
static parts of its arguments, the types of their arrays, the code of this package and of the user's
classes and functions, and the versions of the packages. Derivatives have executables too: forward
mode, values with the arrays that tangents need, and tangents and cotangents from those arrays.

Executables serve calls outside `jax.jit` and `jax.vmap`. Inside `jax.vmap` the function is traced
as by `equinox.filter_jit`; inside `jax.jit` its StableHLO is read from disk. A call with an
argument that cannot be identified in another process, such as an object of a user's class without
dataclass fields, has no executable on disk.
"""

import collections
import contextlib
import functools
import itertools
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters.partial_eval import dce_jaxpr_consts

from .annotations import T
from .checks import is_batching, is_traced, is_tracing, known
from .native import gc_paused
from .private_names import primitive_linearizations

# Number of executables in memory.
_LARGEST = 256
_LOCK = threading.RLock()
# Time at which this package was imported, s.
_STARTED = time.time()
# Whether a function is being traced whose executable is, or would be, stored as a whole.
_is_tracing_whole: ContextVar[bool] = ContextVar("is_tracing_whole", default=False)
# One mark for each argument or inexact result.
Marks: TypeAlias = tuple[bool, ...]


class _Slot:
    """Slot of an array in the results of a function."""

    def __init__(self, index: int):
        self.index = index


class Outline(NamedTuple):
    """Results of a function: the types of its arrays, and a pytree with a slot for each."""

    types: tuple[jax.ShapeDtypeStruct, ...]
    skeleton: Any

    @property
    def is_inexact(self) -> list[bool]:
        """Whether a result has derivatives, for each."""
        return [jnp.issubdtype(x.dtype, jnp.inexact) for x in self.types]


class Executable:
    """A compiled function of arrays, and its derivatives.

    **Arguments:** `key`, its name on disk; `function`, of arrays; `arguments`, their types;
    `parent`, the executable of which this one is a derivative.
    """

    def __init__(
        self,
        key: str,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        parent: "Executable | None" = None,
    ):
        self.key, self.function, self.arguments, self.parent = key, function, arguments, parent
        self.outline: Any = None
        self._rebuild: Any = None
        self._call: Callable[..., Any] | None = None
        self._module: bytes | None = None
        self._derived: dict[tuple, Executable] = {}
        self._tangents: dict[tuple[bool, ...], Any] = {}

    def __call__(self, *leaves: Any) -> list[jax.Array]:
        if self._call is None:
            with _LOCK, gc_paused():
                if self._call is None:
                    self._call = self._read() or self._compile()
        return self._call(*leaves)

    def _read(self) -> Callable[..., Any] | None:
        """Read the executable of another process; return `None` without one."""
        from jax.experimental import serialize_executable

        def load(payload):
            in_tree = jax.tree.structure((tuple(self.arguments), {}))
            out_tree = jax.tree.structure([0] * len(self.outline.types))
            return serialize_executable.deserialize_and_load(payload, in_tree, out_tree)

        return self._read_record(self.key, load)

    def _read_record(self, key: str, load: Callable[[Any], T]) -> T | None:
        """Return a result loaded from disk, and register its kernels; `None` without one."""
        from .native import executables

        record = executables.read(key)
        if record is None:
            return None
        try:
            payload, targets, outlines = pickle.loads(record)
            executables.register(targets)
            for executable, outline in zip(self.lineage, outlines, strict=True):
                executable.outline = outline
            return load(payload)
        except LookupError:
            return None  # One of its kernels was removed from disk.
        except Exception as error:
            warnings.warn(f"An executable on disk could not be read: {error!r}", stacklevel=2)
            return None

    def _write_record(self, key: str, targets: list[str] | None, save: Callable[[], Any]) -> None:
        from .native import executables

        if targets is None:
            return
        try:
            record = pickle.dumps((save(), targets, [x.outline for x in self.lineage]))
        except (pickle.PicklingError, AttributeError, TypeError, ValueError, RuntimeError):
            return  # The results or the executable contain an object of this process.
        executables.write(key, record)

    @property
    def lineage(self) -> list["Executable"]:
        """This executable, its parent, the parent of that, and so on."""
        return [self, *(self.parent.lineage if self.parent is not None else [])]

    def _lower(self) -> tuple[Any, list[str] | None]:
        """Return the lowered function, and the functions that it calls; see `find_targets`."""
        from .native import executables

        token = executables.is_in_executable.set(True)
        try:
            lowered = self.subfunction.lower(*self.arguments)
        finally:
            executables.is_in_executable.reset(token)
        return lowered, executables.find_targets(lowered.as_text())

    def _compile(self) -> Callable[..., Any]:
        """Compile the function and write the executable to disk."""
        from jax.experimental import serialize_executable

        lowered, targets = self._lower()
        hits = _count_cache_hits()
        compiled = lowered.compile()
        # XLA cannot serialise an executable from JAX's persistent cache: the object code is lost.
        if _count_cache_hits() == hits:
            self._write_record(
                self.key, targets, lambda: serialize_executable.serialize(compiled)[0]
            )
        return compiled

    def read_module(self) -> bytes | None:
        """Return the function as StableHLO from disk; `None` if it is not there."""
        with _LOCK:
            if self._module is None:
                self._module = self._read_record(f"{self.key}-module", lambda module: module)
            return self._module

    def module(self) -> bytes | None:
        """Return the function as StableHLO, and write it to disk if it is not there; `None` for a
        function that calls the host, which only the trace in use keeps alive."""
        with _LOCK, gc_paused():
            if self.read_module() is None:
                lowered, targets = self._lower()
                if targets is None:
                    return None
                module = mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
                self._write_record(f"{self.key}-module", targets, lambda: module)
                self._module = module
            return self._module

    def evaluate(self, *leaves: Any) -> list[Any]:
        """Return the arrays among the results of the function."""
        with _traced_as_a_whole():
            out, tree = jax.tree.flatten(self.function(*leaves))
        arrays = [jnp.asarray(x) for x in out if eqx.is_array(x)]
        slots = map(_Slot, itertools.count())
        skeleton = jax.tree.unflatten(tree, [next(slots) if eqx.is_array(x) else x for x in out])
        self.outline = Outline(tuple(_types(arrays)), skeleton)
        return arrays

    @functools.cached_property
    def subfunction(self) -> Any:
        """The function under `jax.jit`, for use inside another trace."""

        def evaluate(*leaves):
            return self.evaluate(*leaves)

        # JAX's persistent cache includes the name in its key: see `_compile`.
        evaluate.__name__ = evaluate.__qualname__ = f"rigidjax_{self.key}"
        # Arguments of the module are those of the function.
        return jax.jit(evaluate, keep_unused=True)

    def rebuild(self, results: Sequence[Any]) -> Any:
        """Return the results of the function from its arrays."""
        if self._rebuild is None:
            rest, tree = jax.tree.flatten(self.outline.skeleton, is_leaf=_is_slot)
            self._rebuild = tree, [(True, x.index) if _is_slot(x) else (False, x) for x in rest]
        tree, parts = self._rebuild
        return jax.tree.unflatten(tree, [results[x] if a else x for a, x in parts])

    def derivative(self, kind: str, arguments: Sequence[Any], *marks: Marks) -> "Executable":
        """Return the executable of a derivative; `kind` is the name of a method below."""
        with _LOCK:
            if (kind, marks) not in self._derived:
                from .native import executables

                function = functools.partial(getattr(self, kind), *marks)
                key = executables.digest(self.key, kind, repr(marks), repr(arguments))
                self._derived[kind, marks] = Executable(key, function, arguments, self)
            return self._derived[kind, marks]

    def _of_marked(self, leaves: Sequence[Any], marks: Marks) -> Callable[..., Any]:
        """Return a function of the marked arguments: inexact results, integer results."""

        def function(*marked):
            values = iter(marked)
            out = self.evaluate(
                *(next(values) if m else x for x, m in zip(leaves, marks, strict=True))
            )
            return _split(out, self.outline.is_inexact)

        return function

    def forward(self, marks: Marks, *args: Any) -> list[Any]:
        """Return results and tangents of inexact results, from arguments and marked tangents."""
        leaves, tangents = args[: len(marks)], args[len(marks) :]
        marked, _ = _split(leaves, marks)
        inexact, rates, others = jax.jvp(
            self._of_marked(leaves, marks), marked, list(tangents), has_aux=True
        )
        return [*_merge(inexact, others, self.outline.is_inexact), *rates]

    def linearisation(self, marks: Marks, *leaves: Any) -> list[Any]:
        """Return results, and the arrays that their tangents need."""
        marked, _ = _split(leaves, marks)
        inexact, tangent, others = jax.linearize(
            self._of_marked(leaves, marks), *marked, has_aux=True
        )
        needed, self._tangents[marks] = jax.tree.flatten(tangent)
        return [*_merge(inexact, others, self.outline.is_inexact), *needed]

    def _tangent_of(self, marks: Marks, needed: Sequence[Any]) -> Callable[..., Any]:
        if marks not in self._tangents:  # The executable of the values comes from disk.
            jax.eval_shape(functools.partial(self.linearisation, marks), *self.arguments)
        return jax.tree.unflatten(self._tangents[marks], needed)

    def tangent(self, marks: Marks, *args: Any) -> list[Any]:
        """Return tangents of inexact results, from the arrays they need and marked tangents."""
        count = len(args) - sum(marks)
        return list(self._tangent_of(marks, args[:count])(*args[count:]))

    def cotangent(self, marks: Marks, given: Marks, *args: Any) -> list[Any]:
        """Return cotangents of marked arguments, `None` for zero, from the arrays tangents need and
        from the cotangents of `given` inexact results."""
        count = len(args) - sum(given)
        tangent = self._tangent_of(marks, args[:count])
        moving, _ = _split(self.arguments, marks)

        # Results without a cotangent are left out: zero times an infinite derivative is not zero.
        def given_tangents(*tangents):
            return _split(tangent(*tangents), given)[0]

        jaxpr = jax.make_jaxpr(given_tangents)(*moving).jaxpr
        is_used = dce_jaxpr_consts(jaxpr, [True] * sum(given))[2]

        def of_used(*used):
            zeros = [jnp.zeros(x.shape, x.dtype) for x in _split(moving, is_used)[1]]
            return given_tangents(*_merge(used, zeros, is_used))

        out = jax.linear_transpose(of_used, *_split(moving, is_used)[0])(list(args[count:]))
        return _merge(out, [None] * (len(moving) - len(out)), is_used)


@contextlib.contextmanager
def _traced_as_a_whole() -> Iterator[None]:
    token = _is_tracing_whole.set(True)
    try:
        yield
    finally:
        _is_tracing_whole.reset(token)


_hits = threading.local()


def _count_cache_hits() -> int:
    """Return the number of hits in JAX's persistent cache in this thread."""
    _listen_to_cache()
    return getattr(_hits, "count", 0)


@functools.cache
def _listen_to_cache() -> None:
    def listen(event, **_):
        if event == "/jax/compilation_cache/cache_hits":
            _hits.count = getattr(_hits, "count", 0) + 1

    jax.monitoring.register_event_listener(listen)


def _is_slot(x: Any) -> bool:
    return isinstance(x, _Slot)


def _split(values: Sequence[Any], marks: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    pairs = list(zip(values, marks, strict=True))
    return [x for x, m in pairs if m], [x for x, m in pairs if not m]


def _merge(marked: Sequence[Any], others: Sequence[Any], marks: Sequence[bool]) -> list[Any]:
    first, second = iter(marked), iter(others)
    return [next(first) if m else next(second) for m in marks]


def _types(values: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    avals = map(jax.typeof, values)
    return [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


# Derivatives of calls under `jax.grad` and `jax.jvp`, and calls inside `jax.jit`.

_call_p, _tangent_p = Primitive("rigidjax_call"), Primitive("rigidjax_tangent")
_call_p.multiple_results = _tangent_p.multiple_results = True


def _call(executable: Executable, args: Sequence[Any]) -> list[Any]:
    if is_tracing():
        inlines = is_batching()
    elif not is_traced(args):
        return executable(*args)
    else:
        inlines = is_traced(known(list(args)))
    # Under `jax.vmap`, as in `jax.jacfwd`, JAX then finds out which results have a batch axis.
    if inlines:
        return executable.subfunction(*args)
    return _call_p.bind(*args, executable=executable)


def _call_abstract(*avals: Any, executable: Executable) -> list[Any]:
    if executable.outline is None and executable.read_module() is None:
        jax.eval_shape(executable.subfunction, *executable.arguments)
    outline: Any = executable.outline
    return [ShapedArray(x.shape, x.dtype, x.weak_type) for x in outline.types]


def _call_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, executable: Executable):
    marks = tuple(type(t) is not ad.Zero for t in tangents)
    moving, _ = _split(tangents, marks)
    forward = executable.derivative("forward", _types([*primals, *moving]), marks)
    out = _call(forward, [*primals, *moving])
    count = len(executable.outline.types)
    return out[:count], _with_zeros(out[:count], out[count:], executable)


def _with_zeros(values: Sequence[Any], rates: Sequence[Any], executable: Executable) -> list[Any]:
    zeros = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in values]
    is_inexact = executable.outline.is_inexact
    return _merge(rates, _split(zeros, is_inexact)[1], is_inexact)


def _call_linearisation(is_vjp: bool, marks: Sequence[bool], *primals: Any, executable: Executable):
    marks = tuple(marks)
    values = executable.derivative("linearisation", executable.arguments, marks)
    out = _call(values, primals)
    count = len(executable.outline.types)

    def tangent(needed, *tangents):
        moving, _ = _split(tangents, marks)
        rates = _tangent_p.bind(*needed, *moving, executable=executable, marks=marks)
        return _with_zeros(out[:count], rates, executable)

    return out[:count], executable.outline.is_inexact, out[count:], tangent


def _tangent_call(*args: Any, executable: Executable, marks: Marks) -> list[Any]:
    tangent = executable.derivative("tangent", _types(args), marks)
    return _call(tangent, args)


def _tangent_abstract(*avals: Any, executable: Executable, marks: Marks) -> list[Any]:
    types, _ = _split(executable.outline.types, executable.outline.is_inexact)
    return [ShapedArray(x.shape, x.dtype) for x in types]


def _tangent_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any):
    rates = [ad.instantiate_zeros(t) for t in tangents]
    return jax.jvp(functools.partial(_tangent_call, **params), list(primals), rates)


def _tangent_transpose(cotangents: Sequence[Any], *args: Any, executable: Executable, marks: Marks):
    count = len(args) - sum(marks)
    given = tuple(type(ct) is not ad.Zero for ct in cotangents)
    operands = [*args[:count], *_split(cotangents, given)[0]]
    cotangent = executable.derivative("cotangent", _types(operands), marks, given)
    return [None] * count + cotangent.rebuild(_call(cotangent, operands))


def _register(primitive: Primitive, impl: Callable[..., Any], abstract: Callable) -> None:
    primitive.def_impl(impl)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(impl, multiple_results=True))

    def batch(args, axes, **params):
        out = jax.vmap(functools.partial(impl, **params), in_axes=tuple(axes))(*args)
        return out, [0] * len(out)

    batching.primitive_batchers[primitive] = batch


def _call_impl(*leaves: Any, executable: Executable) -> list[Any]:
    if is_traced(leaves):
        return executable.subfunction(*leaves)
    return executable(*leaves)


def _call_lowering(context: mlir.LoweringRuleContext, *operands: Any, executable: Executable):
    """Call the function from its StableHLO on disk."""
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import func

    into: Any = context.module_context
    # Exported functions contain no kernels.
    content = None if into.lowering_parameters.for_export else executable.module()
    if content is None:
        inline = mlir.lower_fun(_call_impl, multiple_results=True)
        return inline(context, *operands, executable=executable)
    module = ir.Module.parse(content)
    main: Any = ir.SymbolTable(module.operation)["main"]
    types = list(main.type.results)
    name = mlir.merge_mlir_modules(
        into.module, f"rigidjax_{executable.key}", module, dst_symtab=into.symbol_table
    )
    return func.CallOp(types, ir.FlatSymbolRefAttr.get(name), list(operands)).results


_register(_call_p, _call_impl, _call_abstract)
mlir.register_lowering(_call_p, _call_lowering, platform="cpu")
_register(_tangent_p, _tangent_call, _tangent_abstract)
ad.primitive_jvps[_call_p] = _call_jvp
primitive_linearizations[_call_p] = _call_linearisation
ad.primitive_jvps[_tangent_p] = _tangent_jvp
ad.primitive_transposes[_tangent_p] = _tangent_transpose


_executables: collections.OrderedDict[tuple, Executable | None] = collections.OrderedDict()


def persistent_jit(function: Callable[..., Any], inside_jit: bool = False) -> Callable[..., Any]:
    """Compile a function of pytrees, with executables on disk.

    The result is `equinox.filter_jit(function)` inside `jax.vmap`, with several devices, for
    arguments that cannot be identified in another process, and inside `jax.jit` unless `inside_jit`
    is true.
    """
    filter_jitted = eqx.filter_jit(function)

    def call_without_disk(*args, **options):
        with _traced_as_a_whole():
            return filter_jitted(*args, **options)

    @functools.wraps(function)
    def call(*args, **options):
        leaves, tree = jax.tree.flatten((args, options))
        is_array = tuple(map(eqx.is_array, leaves))
        arrays, static = _split(leaves, is_array)
        if not _can_be_persistent(arrays, inside_jit):
            return call_without_disk(*args, **options)
        key = function, tree, is_array, tuple(static), tuple(map(jax.typeof, arrays)), _context()
        with _LOCK:
            if key not in _executables:
                _executables[key] = _make_executable(function, tree, is_array, static, arrays)
                if len(_executables) > _LARGEST:
                    _executables.popitem(last=False)
            executable = _executables[key]
        if executable is None:
            return call_without_disk(*args, **options)
        return executable.rebuild(_call(executable, arrays))

    return call


def _make_executable(
    function: Callable[..., Any],
    tree: Any,
    is_array: tuple[bool, ...],
    static: Sequence[Any],
    arrays: Sequence[Any],
) -> Executable | None:
    from .native import executables

    types = _types(arrays)
    marked = [executables.ArrayType(f"{x.dtype.name}{x.shape}{x.weak_type}") for x in types]
    args = jax.tree.unflatten(tree, _merge(marked, static, is_array))
    key = executables.compute_key(function, args, _STARTED)
    if key is None:
        return None

    def flat(*leaves):
        args, options = jax.tree.unflatten(tree, _merge(leaves, static, is_array))
        return function(*args, **options)

    return Executable(key, flat, types)


def _context() -> tuple[Any, ...]:
    """Return the settings on which a trace depends."""
    config: Any = jax.config
    return (
        config.jax_enable_x64,
        config.jax_default_matmul_precision,
        config.jax_numpy_dtype_promotion,
    )


def _can_be_persistent(arrays: Sequence[Any], inside_jit: bool) -> bool:
    """Return whether a call with these arrays may have an executable on disk."""
    config: Any = jax.config
    if config.jax_disable_jit or config.jax_debug_nans or _is_tracing_whole.get():
        return False
    if jax.default_backend() != "cpu" or jax.device_count() > 1:
        return False
    if is_tracing():
        return inside_jit and not is_batching()
    return not is_traced(known(list(arrays)))
