"""Checks of arguments: `ValueError` for concrete values, `equinox.error_if` for traced ones.

A run-time error ends all runs of a batch. Two kinds of checks therefore do not raise: a run with
`throw=False` collects its faults (`collect_faults`), and a model that is built inside `jax.vmap`
gets NaN in the lane that fails, from which `simulate` derives the result of that lane.
"""

import collections
import contextlib
import contextvars
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jax.custom_batching import custom_vmap
from jaxtyping import Array, ArrayLike, Bool, Float

from .annotations import T
from .native import opaque_call
from .private_names import BatchTrace, DynamicJaxprTrace, trace_ctx

# Values that a user may pass as an array.
ArrayInput: TypeAlias = ArrayLike | Sequence[Any]
# A predicate for `check_all`, and the error message for values that violate it.
Rule: TypeAlias = tuple[Callable[[Any], Any], str]


def is_traced(value: Any) -> bool:
    """Return whether any leaf of `value` is being traced by a JAX transformation."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def _traces() -> Iterator[Any]:
    """Return the transformations that are active, the innermost first."""
    trace: Any = trace_ctx.trace
    while trace is not None:
        yield trace
        trace = getattr(trace, "parent_trace", None)


def is_tracing() -> bool:
    """Return whether a computation with concrete arrays is traced, as inside `jax.jit`."""
    return any(isinstance(trace, DynamicJaxprTrace) for trace in _traces())


def is_batching() -> bool:
    """Return whether a computation is traced by `jax.vmap`, for example by `jax.jacfwd`."""
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def check_alive(tree: T) -> T:
    """Return a pytree; `ValueError` if a function in it holds values of a trace that has ended."""
    active = set(map(id, _traces()))
    tracers = (x for x in jax.tree.leaves(tree) if is_traced(x))
    if any(id(x._trace) not in active for x in tracers):
        raise ValueError(
            "`simulate` cannot see what a law or a policy remembers from an earlier call, while it "
            "is traced. Pass such values through `args` or in an Equinox module, or compute them "
            "in each call."
        )
    return tree


def known(tree: Any) -> Any:
    """Return a pytree with the values of its traced leaves that are known.

    Values under `jax.grad` and `jax.jvp` are known outside `jax.jit`.
    """

    def value(leaf):
        found = leaf.to_concrete_value() if isinstance(leaf, jax.core.Tracer) else leaf
        return leaf if found is None else found

    return jax.tree.map(value, tree)


def check(value: ArrayInput, valid: Callable[[Any], Any], message: str) -> Any:
    """Return `value` if `valid(value)` holds everywhere, else raise `message`.

    A concrete value raises `ValueError` at once, with the value appended to the message. A traced
    value is passed through `equinox.error_if` with the same message: use the **result**, or the
    check is dropped from the compiled function. In a lane of `jax.vmap` the value becomes NaN
    instead. NaN is never valid if `valid` is a comparison.

    **Arguments:** `value`, an array or scalar; `valid`, a predicate written with operators and
    array methods only, because it receives a NumPy array or a tracer; `message`, the problem and
    its remedy.
    **Returns:** `value`, unchanged.
    **Errors:** `ValueError`.
    """
    return check_all(value, [(valid, message)])


def check_all(value: ArrayInput, rules: Sequence[Rule]) -> Any:
    """Return `value` if it satisfies every rule, else raise the message of the first violated one.

    Equivalent to successive calls of `check`, but compiled code calls the host only once.

    **Arguments:** `value`, an array or scalar; `rules`, pairs of `valid` and `message`.
    **Returns:** `value`, unchanged.
    **Errors:** `ValueError`.
    """
    concrete = known(value)
    concrete = concrete if is_traced(concrete) else np.asarray(concrete)
    holds = [valid(concrete) for valid, _ in rules]
    holds = known(holds)
    if is_traced((concrete, holds)):  # a rule may compare a concrete value with a traced one
        violated = jnp.stack([jnp.logical_not(flags).any() for flags in holds])
        messages = [message for _, message in rules]
        if _FAULTS.get() is not None:
            return raise_or_collect(value, violated, messages)
        return jnp.where(_raise_unless_batched(violated, messages), jnp.nan, jnp.asarray(value))
    for flags, (_, message) in zip(holds, rules, strict=True):
        if not np.all(flags):
            concrete = np.asarray(concrete)
            got = np.array2string(concrete, separator=", ", formatter={"float_kind": _format})
            raise ValueError(f"{message} Got {got.replace(chr(10), '')}.")
    return value


def _format(x: Any) -> str:
    return f"{x:.8g}"


_FAULTS: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("faults", default=None)


@contextlib.contextmanager
def collect_faults() -> Iterator[list[Bool[Array, ""]]]:
    """Make traced checks append a flag to the returned list instead of raising.

    A compiled function that can raise calls the host. JAX does not keep such a function in its
    persistent cache, so that every process would compile it again.
    """
    faults: list[Any] = []
    token = _FAULTS.set(faults)
    try:
        yield faults
    finally:
        _FAULTS.reset(token)


_NAN_IF_VIOLATED = contextvars.ContextVar("nan_if_violated", default=False)


@contextlib.contextmanager
def nan_if_violated() -> Iterator[None]:
    """Make traced checks return NaN instead of raising: a kernel cannot call the host."""
    token = _NAN_IF_VIOLATED.set(True)
    try:
        yield
    finally:
        _NAN_IF_VIOLATED.reset(token)


def raise_or_collect(tree: Any, violated: Bool[Array, " n"], messages: Sequence[str]) -> Any:
    """Return the tree; raise the first message that applies, or append a flag to the faults."""
    faults = _FAULTS.get()
    if faults is not None:
        faults.append(violated.any())
        return tree
    return _raise_first(tree, violated, messages)


def _raise_first(tree: Any, violated: Bool[Array, " n"], messages: Sequence[str]) -> Any:
    if _NAN_IF_VIOLATED.get():
        floats, rest = eqx.partition(tree, eqx.is_inexact_array)
        floats = jax.tree.map(lambda x: jnp.where(violated.any(), jnp.nan, x), floats)
        return eqx.combine(floats, rest)

    def raise_first(tree, violated):
        return eqx.branched_error_if(tree, violated.any(), jnp.argmax(violated), messages)

    return opaque_call(raise_first, tree, violated)


def _raise_unless_batched(violated: Bool[Array, " n"], messages: Sequence[str]) -> Bool[Array, ""]:
    """Return whether any rule is violated; outside `jax.vmap` raise instead."""
    if _NAN_IF_VIOLATED.get():
        return violated.any()

    @custom_vmap
    def bad(violated):
        return _raise_first(jnp.zeros((), bool), violated, messages)

    @bad.def_vmap
    def _(axis_size, in_batched, violated):
        return violated.any(axis=-1), True

    return bad(jax.lax.stop_gradient(violated))


def float_array(value: Any, argument: str, *shapes: tuple[int, ...]) -> Any:
    """Convert `value` to a floating-point array of one of `shapes`; without `shapes` of any shape.

    Floating-point arrays wider than JAX's default keep their dtype, everything else gets the
    default, so that the arguments of one constructor have one precision. The result is a NumPy
    array (to be checked and then passed to `jnp.asarray`) unless `value` is traced.

    **Arguments:** `value`, scalar, nested sequence or array; `argument`, its name in error
    messages, as in `Body(mass=...)`; `shapes`, the allowed shapes.
    **Errors:** `TypeError` for values that are not real numbers, `ValueError` for a wrong shape.
    """
    default = jnp.result_type(float)
    if isinstance(value, jax.core.Tracer):
        array = value
    elif is_traced(value):
        array = jnp.asarray(value)
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(
                f"`{argument}` must be a rectangular array of numbers; got {value!r}."
            ) from error
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise TypeError(
            f"`{argument}` must be real numbers; got {value!r} with dtype {array.dtype}."
        )
    if not is_wide(array.dtype):
        array = array.astype(default)
    if shapes and array.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"`{argument}` must have shape {allowed}; got shape {array.shape}.")
    return array


def is_wide(dtype: Any) -> bool:
    """Return whether a dtype is floating-point and at least as wide as JAX's default dtype."""
    default = jnp.finfo(jnp.result_type(float)).bits
    return jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits >= default


def checked_with_derivatives(tree: Any, check: Callable[[Array], Array]) -> Any:
    """Return the tree with a run-time check that also guards its derivatives.

    `equinox.error_if` guards the value alone: if only derivatives are needed, and they do not
    depend on the value, the check is eliminated as dead code.

    **Arguments:** `tree`, a pytree; `check`, a function that passes a scalar through
    `equinox.error_if` or a similar function.
    """
    factor = jax.lax.stop_gradient(check(jnp.ones((), jnp.float32)))
    return jax.tree.map(
        lambda x: x * factor.astype(x.dtype) if eqx.is_inexact_array(x) else x, tree
    )


def check_finite(value: Any, argument: str) -> Any:
    """Return `value` if it contains neither NaN nor infinity, else raise (see `check`)."""
    return check_all(value, [finite_rule(argument)])


def check_sample_times(ts: Any, argument: str) -> Any:
    """Return at least two finite, strictly increasing times, (T,) s.

    The result is a NumPy array unless `ts` is traced.

    **Errors:** `ValueError` for a wrong shape, for times that do not increase, and for times that
    the precision cannot resolve.
    """
    unconverted, ts = ts, check_finite(float_array(ts, argument), argument)
    if ts.ndim != 1 or len(ts) < 2:
        raise ValueError(
            f"`{argument}` must have shape (T,) with at least two times; got {ts.shape}."
        )
    if is_traced(ts):
        return check(ts, lambda t: t[1:] > t[:-1], f"`{argument}` must be strictly increasing.")
    # Before conversion: differences of integers are exact, in a lower precision they may be zero.
    if text := explain_lost_steps(np.asarray(unconverted), jax.dtypes.canonicalize_dtype(ts.dtype)):
        raise ValueError(f"`{argument}`: {text}")
    check_increasing(f"`{argument}`", ts)
    return ts


def explain_lost_precision(times: np.ndarray, needed: float, reason: str, dtype: Any) -> str:
    """Return an error message if `dtype` resolves times less finely than `needed`, else `""`.

    **Arguments:** `times`, s; `needed`, the resolution, s; `reason`, a clause that says why it is
    needed; `dtype`, the precision of the times.
    """
    largest = float(np.abs(times).max())
    spacing = float(np.spacing(np.asarray(largest, dtype)))
    if not spacing > needed:
        return ""
    double = (
        ", or use double precision: `jax.config.update('jax_enable_x64', True)` before any object "
        "is made"
        if jnp.dtype(dtype) == jnp.float32
        else ""
    )
    return (
        f"The precision of {jnp.dtype(dtype).name} does not suffice for times of {largest:.6g} s, "
        f"which it resolves to {spacing:.3g} s; {reason}. Count times from the start, as in "
        f"`ts - ts[0]`{double}."
    )


def explain_lost_steps(times: np.ndarray, dtype: Any) -> str:
    """Return an error message if `dtype` does not resolve times to a quarter of their mean step.

    Otherwise return `""`.
    """
    if not (len(times) > 1 and times[-1] > times[0]):
        return ""
    step = float(times[-1] - times[0]) / (len(times) - 1)
    return explain_lost_precision(times, 0.25 * step, f"they are {step:.3g} s apart", dtype)


def check_increasing(subject: str, ts: np.ndarray) -> None:
    """Raise `ValueError` unless concrete times (T,) increase strictly.

    **Arguments:** `subject`, the first words of the message.
    """
    late = np.flatnonzero(np.diff(ts) <= 0)
    if late.size:
        k = int(late[0])
        raise ValueError(
            f"{subject} must be strictly increasing; sample {k + 1} is at {ts[k + 1]} s after "
            f"{ts[k]} s."
        )


def finite_rule(argument: str) -> Rule:
    """Return the rule for `check_all` that a value contains neither NaN nor infinity."""
    return lambda x: abs(x) < float("inf"), f"`{argument}` must be finite numbers."


def as_leaf(value: Any) -> Array:
    """Convert a checked value to the JAX array that a module stores."""
    if isinstance(value, jax.Array):
        return jnp.asarray(value) if jax.typeof(value).weak_type else value
    # A constant is not part of an enclosing trace; `jnp.asarray` compiles a function per shape.
    with eval_context():
        return jax.device_put(np.array(value))


def finite_leaf(value: ArrayInput | None, argument: str, *shapes: tuple[int, ...]) -> Array:
    """Convert to a finite array of one of `shapes` for a module; see `float_array`."""
    return as_leaf(check_finite(float_array(value, argument, *shapes), argument))


def vector_leaf(value: ArrayInput, argument: str) -> Float[Array, "3"]:
    """Convert to a finite vector (3,) for a module."""
    return finite_leaf(value, argument, (3,))


def scalar_leaf(value: ArrayInput, argument: str) -> Float[Array, ""]:
    """Convert to a finite scalar for a module."""
    return finite_leaf(value, argument, ())


def nonnegative_leaf(value: ArrayInput, argument: str) -> Float[Array, ""]:
    """Convert to a finite scalar for a module, which must not be negative."""
    rule = (lambda x: x >= 0, f"`{argument}` must not be negative.")
    return as_leaf(check_all(float_array(value, argument, ()), [finite_rule(argument), rule]))


def positive_leaf(value: ArrayInput, argument: str) -> Float[Array, ""]:
    """Convert to a finite scalar for a module, which must be positive."""
    rule = (lambda x: x > 0, f"`{argument}` must be positive.")
    return as_leaf(check_all(float_array(value, argument, ()), [finite_rule(argument), rule]))


def find_duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    return sorted(name for name, count in collections.Counter(names).items() if count > 1)


def common_dtype(*trees: Any) -> Any:
    """Return the dtype to which NumPy promotes the real and complex leaves of pytrees."""
    leaves = filter(eqx.is_inexact_array, jax.tree.leaves(trees))
    return np.result_type(*(leaf.dtype for leaf in leaves))


def check_one_precision(owner: str, parts: Iterable[tuple[str, Any]]) -> None:
    """Raise `ValueError` unless all floating-point leaves of the parts have one precision.

    Weakly typed leaves of JAX's default precision adapt to the others and are always accepted.

    **Arguments:** `owner`, subject of the message; `parts`, pairs of a name for the message and a
    pytree.
    """
    parts = list(parts)
    default = jnp.result_type(float)

    def precision(leaf):
        return jnp.finfo(leaf.dtype).dtype

    def counts(leaf):
        if not eqx.is_inexact_array(leaf):
            return False
        return not getattr(leaf, "weak_type", False) or precision(leaf) != default

    leaves = jax.tree.leaves([tree for _, tree in parts])
    precisions = list(dict.fromkeys(precision(leaf) for leaf in leaves if counts(leaf)))
    if len(precisions) < 2:
        return
    common = default if default in precisions else precisions[0]
    for name, tree in parts:
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            if counts(leaf) and precision(leaf) != common:
                raise ValueError(
                    f"{owner} combines {common} and {leaf.dtype}: "
                    f"{name}{jax.tree_util.keystr(path)} is {leaf.dtype}. {BUILD_AFTER_X64}"
                )


# Remedy in messages about parts of different precision.
BUILD_AFTER_X64 = (
    "Objects built before double precision was switched on hold float32: enable x64 before "
    "building any object, `jax.config.update('jax_enable_x64', True)` right after `import jax`, "
    "and give arrays of one dtype."
)


def did_you_mean(name: Any, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """Return " Did you mean ...?" with the known name most similar to `name`, else `otherwise`."""
    matches = difflib.get_close_matches(str(name), [str(x) for x in known], n=1, cutoff=cutoff)
    return f" Did you mean {matches[0]!r}?" if matches else otherwise
