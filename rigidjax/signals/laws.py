"""Functions as parts of a model: laws of forces, prescribed motions, potentials."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .inputs import Input, checks_shapes
from .signal import Signal


class Law(eqx.Module):
    """A plain function as a part of a model: static, with its bound arguments as leaves.

    `jax.tree_util.Partial` cannot take its place: all of its instances share one empty tuple, and
    `equinox.tree_at`, by which diffrax sets the tolerances of implicit solvers, confuses them.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    first: list[Any]
    keywords: dict[str, Any]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*self.first, *args, **self.keywords, **keywords)


def as_law(function: Any, argument: str) -> Any:
    """Convert a function into a part of a model that supports `jax.jit`, `vmap` and `grad`.

    Arrays of an Equinox module and arguments bound by `jax.tree_util.Partial` stay leaves: they
    are parameters. Plain functions, also in fields of a module, become static and are compared by
    identity, so that a `lambda` with the same text as another one is compiled again.

    **Arguments:** `function`; `argument`, its name in messages, as in `Motor(torque=...)`.
    **Errors:** `TypeError` for objects that are not callable or not hashable, and for leaves other
    than arrays, numbers and functions.
    """
    if not callable(function):
        raise TypeError(f"`{argument}` must be a function or a module; got {function!r}.")
    if isinstance(function, jax.tree_util.Partial):
        bound = list(function.args), dict(function.keywords)
        function = _static(function.func, argument, *bound)
    elif isinstance(function, Signal | Input):
        return function.replace(is_law=True)
    elif not isinstance(function, eqx.Module):
        return _static(function, argument)
    return with_static_functions(function, argument)


def with_static_functions(module: Any, name: str) -> Any:
    """Return the module with the plain functions among its leaves made static.

    **Errors:** `TypeError` with the field of a leaf that is not an array, number or function.
    """
    leaves = jax.tree.leaves(module)
    if all(map(_is_number, leaves)):
        return module

    def check_leaf(path, leaf):
        field = f"{name}{jax.tree_util.keystr(path)}"
        if _is_number(leaf):
            return leaf
        if callable(leaf):
            return _static(leaf, field)
        raise TypeError(
            f"`{field}` is {leaf!r}, which is neither an array nor a number nor a function. "
            "Declare the field as `eqx.field(static=True)`."
        )

    return jax.tree_util.tree_map_with_path(check_leaf, module)


def check_shapes(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    """Evaluate the shapes of a function's results for arguments of these shapes.

    A law that returns a wrong shape then raises where it is given, not where a run is compiled.
    """
    dtype = jnp.result_type(float)
    arguments = (jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)
    previous = checks_shapes.value
    checks_shapes.value = True
    try:
        # A lambda, because JAX needs a hashable function.
        return jax.eval_shape(lambda *args: function(*args), *arguments)
    finally:
        checks_shapes.value = previous


def law_result(value: Any, shape: tuple[int, ...], subject: str) -> Array:
    """Return the result of a law as an array; `ValueError` for another shape.

    **Arguments:** `subject`, the beginning of the message, which the shape completes.
    """
    value = jnp.asarray(value)
    if value.shape != shape:
        raise ValueError(f"{subject}; got shape {value.shape}.")
    return value


def _is_number(leaf: Any) -> bool:
    return eqx.is_array_like(leaf)


def _static(function: Any, argument: str, first: Any = (), keywords: Any = None) -> Law:
    try:
        hash(function)
    except TypeError as error:
        raise TypeError(
            f"`{argument}` must have a hash, because a plain function is a static part of the "
            f"model; got {function!r}. Make its class an `equinox.Module`, with arrays as fields."
        ) from error
    return Law(function, list(first), keywords or {})
