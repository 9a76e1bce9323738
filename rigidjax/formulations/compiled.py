"""Methods of a model that are compiled once for all times."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp

from ..checks import is_traced
from ..native import call_by_kernel
from ..persistent_jit import persistent_jit
from .charts import split_chart

Method = TypeVar("Method", bound=Callable[..., object])


def bind_at(model: Any, t: Any, y: Any) -> Any:
    """Return the model with the values of its inputs, actuators and held joints at `(t, y)`."""
    return model.bind(t, y)


def compile_method(method: Method, bind: Callable[[Any, Any, Any], Any] = bind_at) -> Method:
    """Apply `equinox.filter_jit` to a method of a time and of unknowns, of a prepared model.

    `filter_jit` alone would treat a time or a vector of Python numbers as a constant and compile
    again for every value. Outside transformations the native backend runs the method, because it
    compiles faster.

    **Arguments:** `bind`, which puts the values at `(t, y)` into the model.
    """

    def call_prepared(self, t, y, args, kwargs):
        return method(bind(self, t, y).prepare(t), t, y, *args, **kwargs)

    # Deferred to the first call: both inspect signatures, which would slow down the import.
    jitted = functools.cache(lambda: persistent_jit(call_prepared))
    by_backend = functools.cache(
        lambda: persistent_jit(functools.partial(call_by_kernel, call_prepared))
    )

    @functools.wraps(method)
    def with_arrays(self, t, y, *args, **kwargs):
        if (shape := jnp.shape(split_chart(y)[0])) not in [(size,) for size in self.sizes]:
            sizes = " or ".join(f"({size},)" for size in sorted(self.sizes))
            raise ValueError(
                f"`{type(self).__name__}` has unknowns of shape {sizes}; got {shape}. "
                "`model.encode(state)` gives them, and `jax.vmap` takes many at once."
            )
        t = jnp.asarray(t, jnp.result_type(*jax.tree.leaves(y)))
        args = [_array(x) for x in args]
        kwargs = {name: _array(x) for name, x in kwargs.items()}
        model = self if is_traced(self) else self.separate_arrays()
        call = jitted if is_traced((self, t, y, args, kwargs)) else by_backend
        return call()(model, t, y, args, kwargs)

    return cast(Method, with_arrays)


def _array(value: Any):
    return jnp.asarray(value) if isinstance(value, list | tuple) else value
