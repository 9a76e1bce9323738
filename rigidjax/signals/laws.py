"""Functions that are given as parts of a model: laws of forces, prescribed motions, potentials."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


class Law(eqx.Module):
    """A plain function as a part of a model: static, with the arguments bound to it as leaves.

    Not a `jax.tree_util.Partial`, all of which share one empty tuple: `equinox.tree_at`, with which
    diffrax gives an implicit solver its tolerances, takes two of them for the same node.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    first: list[Any]
    keywords: dict[str, Any]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*self.first, *args, **self.keywords, **keywords)


def as_law(function: Any, argument: str) -> Any:
    """A function as a part of a model that goes through plain `jax.jit`, `vmap` and `grad`.

    Arrays of an Equinox module, and what is bound by a `jax.tree_util.Partial`, stay leaves, its
    parameters; plain functions, also those inside of a module, become static. Two of them are the
    same only if they are one object: what is compiled for one `lambda` is compiled again for
    another with the same text.

    **Arguments:** `function`; `argument`, how messages name it, as in `Motor(torque=...)`.
    **Errors:** `TypeError` for what is no function, has no hash, or holds something else than
    arrays, numbers and functions.
    """
    if not callable(function):
        raise TypeError(f"`{argument}` must be a function or a module; got {function!r}.")
    if isinstance(function, jax.tree_util.Partial):
        bound = list(function.args), dict(function.keywords)
        function = _static(function.func, argument, *bound)
    elif not isinstance(function, eqx.Module):
        return _static(function, argument)
    return with_static_functions(function, argument)


def with_static_functions(module: Any, name: str) -> Any:
    """The module with the plain functions among its leaves made static.

    **Errors:** `TypeError`, naming the field, for a leaf that is no array, number or function.
    """
    leaves = jax.tree.leaves(module)
    if all(map(_is_number, leaves)):
        return module

    def checked(path, leaf):
        field = f"{name}{jax.tree_util.keystr(path)}"
        if _is_number(leaf):
            return leaf
        if callable(leaf):
            return _static(leaf, field)
        raise TypeError(
            f"`{field}` is {leaf!r}, which is neither an array nor a number nor a function. "
            "Declare the field as `eqx.field(static=True)`."
        )

    return jax.tree_util.tree_map_with_path(checked, module)


def check_shapes(function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Call the function on arguments of these shapes, without computing anything.

    What it raises for a law that returns a wrong shape comes when the law is given, not when a run
    is compiled.
    """
    dtype = jnp.result_type(float)
    arguments = (jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)
    # Not the function itself: JAX asks what it calls for a hash.
    jax.eval_shape(lambda *args: function(*args), *arguments)


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
