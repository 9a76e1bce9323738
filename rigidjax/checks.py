"""Checks of arguments: `ValueError` for known values, `equinox.error_if` for traced ones.

An error at run time ends all runs of a batch. So what a run without `throw` checks is noted instead
(`noted_faults`), and what is checked in one lane of `jax.vmap` when a model is built there becomes
NaN in that lane, which `simulate` makes that lane's result.
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
from jax.extend.core import get_opaque_trace_state
from jaxtyping import Array, ArrayLike, Bool, Float

from .native import opaque_call

# What a person may give where an array is wanted.
ArrayInput: TypeAlias = ArrayLike | Sequence[Any]
# A predicate for `check_all`, and the message if it does not hold.
Rule: TypeAlias = tuple[Callable[[Any], Any], str]


def is_traced(value: Any) -> bool:
    """Whether any leaf of `value` is being traced by a JAX transformation."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def is_tracing() -> bool:
    """Whether what is computed from known arrays is traced: inside of `jax.jit` and its kin."""
    return not is_eager() and is_traced(jax.lax.add(0.0, 0.0))


def is_eager() -> bool:
    """Whether no transformation of JAX is under way."""
    with eval_context():
        outside = get_opaque_trace_state()
    return get_opaque_trace_state() == outside


def check(value: ArrayInput, valid: Callable[[Any], Any], message: str) -> Any:
    """Return `value` if `valid(value)` holds everywhere, else raise `message`.

    A concrete value raises `ValueError` at once, the value added to the message. A traced value
    is passed through `equinox.error_if` with the same message: use the **result**, or the check
    is dropped from the compiled program. In a lane of `jax.vmap` it becomes NaN instead. NaN is
    never valid if `valid` is a comparison.

    **Arguments:** `value`, an array or number; `valid`, a predicate written with operators and
    array methods only, because it gets a NumPy array or a tracer; `message`, what is wrong and
    what to do.
    **Returns:** `value`, unchanged.
    **Errors:** `ValueError`.
    """
    return check_all(value, [(valid, message)])


def check_all(value: ArrayInput, rules: Sequence[Rule]) -> Any:
    """Return `value` if it meets every rule, else raise the message of the first that it does not.

    The same as `check` one after the other, but with a single call-back to the host in compiled
    code.

    **Arguments:** `value`, an array or number; `rules`, pairs of `valid` and `message`.
    **Returns:** `value`, unchanged.
    **Errors:** `ValueError`.
    """
    known = value if is_traced(value) else np.asarray(value)
    found = [valid(known) for valid, _ in rules]
    if is_traced((value, found)):  # a rule may compare a known value with a traced one
        violated = jnp.stack([jnp.logical_not(one).any() for one in found])
        messages = [message for _, message in rules]
        if _NOTED.get() is not None:
            return raise_or_note(value, violated, messages)
        return jnp.where(_raised_if_alone(violated, messages), jnp.nan, jnp.asarray(value))
    for holds, (_, message) in zip(found, rules, strict=True):
        if not np.all(holds):
            known = np.asarray(known)
            got = np.array2string(known, separator=", ", formatter={"float_kind": _number})
            raise ValueError(f"{message} Got {got.replace(chr(10), '')}.")
    return value


def _number(x):
    return f"{x:.8g}"


_NOTED: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("noted", default=None)


@contextlib.contextmanager
def noted_faults() -> Iterator[list[Bool[Array, ""]]]:
    """Within it traced checks note what is wrong, one flag after another, and do not raise.

    A program that raises calls the host, and JAX does not keep such a program in its persistent
    cache: every process compiles it again.
    """
    faults: list[Any] = []
    token = _NOTED.set(faults)
    try:
        yield faults
    finally:
        _NOTED.reset(token)


def raise_or_note(tree: Any, violated: Bool[Array, " n"], messages: Sequence[str]) -> Any:
    """The tree, through `equinox.error_if` with the first message that applies, or noted."""
    faults = _NOTED.get()
    if faults is not None:
        faults.append(violated.any())
        return tree
    return _raised(tree, violated, messages)


def _raised(tree, violated, messages):
    def checked(tree, violated):
        return eqx.branched_error_if(tree, violated.any(), jnp.argmax(violated), messages)

    return opaque_call(checked, tree, violated)


def _raised_if_alone(violated: Bool[Array, " n"], messages: Sequence[str]) -> Bool[Array, ""]:
    """Whether any rule is violated; an error where this is not one lane of `jax.vmap`."""

    @custom_vmap
    def bad(violated):
        return _raised(jnp.zeros((), bool), violated, messages)

    @bad.def_vmap
    def _(axis_size, in_batched, violated):
        return violated.any(axis=-1), True

    return bad(jax.lax.stop_gradient(violated))


def float_array(value: Any, argument: str, *shapes: tuple[int, ...]) -> Any:
    """Convert `value` to a floating-point array of one of `shapes`; no shape given allows any.

    Floating-point arrays wider than JAX's default keep their dtype, everything else gets the
    default, so that the arguments of one constructor have one precision. The result is a NumPy
    array (to be checked and then given to `jnp.asarray`) unless `value` is traced.

    **Arguments:** `value`, number, nested sequence or array; `argument`, how the error message
    names it, as in `Body(mass=...)`; `shapes`, the allowed shapes.
    **Errors:** `TypeError` for what is not made of real numbers, `ValueError` for a wrong shape.
    """
    default = jnp.result_type(float)
    if is_traced(value):
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
    """Whether a dtype is floating-point and at least as wide as JAX's default."""
    default = jnp.finfo(jnp.result_type(float)).bits
    return jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits >= default


def checked_with_derivatives(tree: Any, check: Callable[[Array], Array]) -> Any:
    """The tree, and all derivatives of it, only where a check at run time passes.

    `equinox.error_if` holds its value alone: where only derivatives are wanted, and do not need it,
    it is not even run.

    **Arguments:** `check`, a function that passes a scalar through `equinox.error_if` or its kin.
    """
    one = jax.lax.stop_gradient(check(jnp.ones((), jnp.float32)))
    return jax.tree.map(lambda x: x * one.astype(x.dtype) if eqx.is_inexact_array(x) else x, tree)


def finite(value: Any, argument: str) -> Any:
    """Return `value` if it has neither NaN nor infinity, else raise (see `check`)."""
    return check_all(value, [is_finite(argument)])


def times_of_samples(ts: Any, argument: str) -> Any:
    """Times (T,), at least two, finite and strictly increasing, s; NumPy's unless traced.

    **Errors:** `ValueError` for other shapes and orders, and for times that the precision cannot
    hold.
    """
    given, ts = ts, finite(float_array(ts, argument), argument)
    if ts.ndim != 1 or len(ts) < 2:
        raise ValueError(
            f"`{argument}` must have shape (T,) with at least two times; got {ts.shape}."
        )
    if is_traced(ts):
        return check(ts, lambda t: t[1:] > t[:-1], f"`{argument}` must be strictly increasing.")
    # As given: steps of integers are exact, those of a lower precision may be zero.
    if text := steps_text(np.asarray(given), jax.dtypes.canonicalize_dtype(ts.dtype)):
        raise ValueError(f"`{argument}`: {text}")
    check_increasing(f"`{argument}`", ts)
    return ts


def precision_text(times: np.ndarray, needed: float, what: str, dtype: Any) -> str:
    """Say that a precision does not hold known times to `needed`, s; `""` if it does.

    **Arguments:** `what` asks for it, in words.
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
        f"The precision of {jnp.dtype(dtype).name} does not serve for times of {largest:.6g} s, "
        f"which it holds to {spacing:.3g} s; {what}. Count times from the start, as in "
        f"`ts - ts[0]`{double}."
    )


def steps_text(times: np.ndarray, dtype: Any) -> str:
    """Say that a precision does not hold known times to a quarter of their steps, or `""`."""
    if not (len(times) > 1 and times[-1] > times[0]):
        return ""
    step = float(times[-1] - times[0]) / (len(times) - 1)
    return precision_text(times, 0.25 * step, f"they are {step:.3g} s apart", dtype)


def check_increasing(what: str, ts: np.ndarray) -> None:
    """Raise `ValueError` unless known times (T,) are strictly increasing."""
    late = np.flatnonzero(np.diff(ts) <= 0)
    if late.size:
        k = int(late[0])
        raise ValueError(
            f"{what} must be strictly increasing; sample {k + 1} is at {ts[k + 1]} s after "
            f"{ts[k]} s."
        )


def is_finite(argument: str) -> Rule:
    """The rule for `check_all` that a value has neither NaN nor infinity."""
    return lambda x: abs(x) < float("inf"), f"`{argument}` must be finite numbers."


def as_leaf(value: Any) -> Array:
    """A checked value as the JAX array that is stored in a module."""
    if is_traced(value) or not is_eager():
        return jnp.asarray(value)
    # `jnp.asarray` of what is on the host compiles a program for each shape.
    return value if isinstance(value, jax.Array) else jax.device_put(np.array(value))


def finite_leaf(value: ArrayInput | None, argument: str, *shapes: tuple[int, ...]) -> Array:
    """Finite numbers of one of `shapes`, see `float_array`, as a part of a module."""
    return as_leaf(finite(float_array(value, argument, *shapes), argument))


def vector_leaf(value: ArrayInput, argument: str) -> Float[Array, "3"]:
    """A finite vector (3,) as a part of a module."""
    return finite_leaf(value, argument, (3,))


def scalar_leaf(value: ArrayInput, argument: str) -> Float[Array, ""]:
    """A finite number as a part of a module."""
    return finite_leaf(value, argument, ())


def duplicates(names: Iterable[str]) -> list[str]:
    """The names that are there more than once, sorted."""
    return sorted(name for name, count in collections.Counter(names).items() if count > 1)


def precision_of(*trees: Any) -> Any:
    """The type that the real and complex numbers in pytrees have together."""
    leaves = filter(eqx.is_inexact_array, jax.tree.leaves(trees))
    return np.result_type(*(leaf.dtype for leaf in leaves))


def check_one_precision(owner: str, parts: Iterable[tuple[str, Any]]) -> None:
    """Raise `ValueError` unless all floating-point leaves of the parts have one precision.

    Weakly typed leaves of JAX's default precision adapt to the others and always pass.

    **Arguments:** `owner`, subject of the message; `parts`, pairs of a name for
    the message and a pytree.
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
    found = list(dict.fromkeys(precision(leaf) for leaf in leaves if counts(leaf)))
    if len(found) < 2:
        return
    common = default if default in found else found[0]
    for name, tree in parts:
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            if counts(leaf) and precision(leaf) != common:
                raise ValueError(
                    f"{owner} combines {common} and {leaf.dtype}: "
                    f"{name}{jax.tree_util.keystr(path)} is {leaf.dtype}. {BUILD_AFTER_X64}"
                )


# The remedy for parts of different precision.
BUILD_AFTER_X64 = (
    "Objects built before double precision was switched on hold float32: enable x64 before "
    "building any object, `jax.config.update('jax_enable_x64', True)` right after `import jax`, "
    "and give arrays of one dtype."
)


def did_you_mean(name: Any, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """A sentence, with a space in front, with the known name that is most like another one."""
    near = difflib.get_close_matches(str(name), [str(x) for x in known], n=1, cutoff=cutoff)
    return f" Did you mean {near[0]!r}?" if near else otherwise
