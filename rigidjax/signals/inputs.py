"""Named inputs of a model: laws whose values are given for a run, not when the model is built."""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Scalar, T
from ..checks import ArrayInput, as_leaf, did_you_mean, finite_leaf
from .signal import Signal


class _ChecksShapes(threading.local):
    """Whether only shapes are evaluated, so that inputs without a value may occur in a law."""

    value: bool = False


checks_shapes = _ChecksShapes()


class Input(eqx.Module):
    """A named law that receives its value when a model is used.

    It can be used wherever a force, motor, torque, moment or prescribed motion takes a function of
    time: `rj.Motor("hinge", torque=rj.Input("u"))`. `rj.simulate(..., inputs={"u": ...})` binds the
    name to a value, an `rj.Signal`, a policy or an `rj.SampledController`. Inputs of the same name
    are the same input.

    **Arguments:**

    - `name`: the name.
    - `size`: `None` for a scalar, n for a vector of shape (n,). `rj.Input("u", 3)[1]` is one entry
      of it, a scalar law.
    - `default`: the value while the name is not bound, a scalar or (size,), in the unit of the law;
      `None` if the input must be bound.

    **Raises:** `TypeError` for a name that is not text, `ValueError` for an empty name, a size
    below 1, another shape of `default`, an entry beyond `size`, and, when evaluated, for an input
    without a value.
    """

    default: Float[Array, " *size"] | None
    name: str = eqx.field(static=True)
    size: int | None = eqx.field(static=True)
    entry: int | None = eqx.field(static=True)
    is_law: bool = eqx.field(static=True)
    """Whether it is a law by itself, which is evaluated at the time of the system alone."""

    def __init__(self, name: str, size: int | None = None, default: ArrayInput | None = 0.0):
        if not isinstance(name, str):
            raise TypeError(f"`Input(name=...)` must be a text; got {name!r}.")
        if not name:
            raise ValueError("`Input(name=...)` must not be empty.")
        is_count = isinstance(size, int | np.integer) and not isinstance(size, bool)
        if size is not None and not (is_count and size > 0):
            raise ValueError(f"`Input(size=...)` must be an integer above 0 or None; got {size!r}.")
        self.name, self.size, self.entry = name, None if size is None else int(size), None
        self.is_law = False
        if default is not None:
            shapes = ((),) if size is None else ((), self.shape)
            default = finite_leaf(default, f"Input({name!r}, default=...)", *shapes)
            if default.shape != self.shape:
                default = as_leaf(jnp.broadcast_to(default, self.shape))
        self.default = default

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value of the name, () or (size,)."""
        return () if self.size is None else (self.size,)

    def __getitem__(self, entry: int) -> "Input":
        """Return the law of one entry of a vector."""
        if self.size is None or self.entry is not None:
            raise ValueError(f"`Input({self.name!r})` is a scalar and has no entries.")
        if not isinstance(entry, int | np.integer) or not -self.size <= entry < self.size:
            raise ValueError(
                f"`Input({self.name!r}, {self.size})` has the entries 0 to {self.size - 1}; got "
                f"{entry!r}."
            )
        return self.replace(entry=int(entry) % self.size)

    def replace(self, **fields: Any) -> "Input":
        """Return a copy with other values of these fields, static ones too, unchecked."""
        copy = object.__new__(Input)
        for field in dataclasses.fields(self):
            value = fields.get(field.name, getattr(self, field.name))
            object.__setattr__(copy, field.name, value)
        return copy

    def __iter__(self):
        """Iterate over the entries."""
        return (self[k] for k in range(self.size or 0))

    def __call__(self, t: Scalar, *state: Array) -> Float[Array, " *size"]:
        """Return the default value; bound inputs are replaced before they are evaluated."""
        if self.default is None and checks_shapes.value:
            return self.select(jnp.zeros(self.shape))
        if self.default is None:
            raise ValueError(
                f"The input {self.name!r} has no value here. Bind it by "
                f'`inputs={{"{self.name}": ...}}`, or give `Input({self.name!r}, default=...)`. '
                "The function of a controller cannot depend on forces or accelerations that the "
                "input itself determines."
            )
        return self.select(self.default)

    def select(self, value: Array) -> Array:
        """Return the entry of a value of the whole input."""
        return value if self.entry is None else value[self.entry]


class InputTarget(eqx.Module):
    """Name, shape and default of an input that a controller computes during a run."""

    default: Float[Array, " *size"] | None
    name: str = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)


class InputValue(eqx.Module):
    """The value of a bound input, a law that is constant in time."""

    value: Float[Array, " *size"]

    def __call__(self, t: Scalar, *state: Array) -> Float[Array, " *size"]:
        return self.value


def inputs_of(tree: Any) -> dict[str, Input]:
    """Return the inputs in a pytree by name.

    **Errors:** `ValueError` for inputs of the same name with different sizes.
    """
    found: dict[str, Input] = {}
    for leaf in jax.tree.leaves(tree, is_leaf=_is_input):
        if _is_input(leaf):
            first = found.setdefault(leaf.name, leaf)
            if first.size != leaf.size:
                raise ValueError(
                    f"The input {leaf.name!r} has the sizes {first.size} and {leaf.size} in one "
                    "model. Give both laws the same `Input`."
                )
    return found


def with_inputs(tree: T, values: Mapping[str, Any]) -> T:
    """Return the pytree with inputs replaced by values (scalar or (size,)) or by signals.

    Inputs without an entry in `values` remain.
    """

    def replace(leaf):
        if not _is_input(leaf) or leaf.name not in values:
            return leaf
        value = values[leaf.name]
        if isinstance(value, Signal):
            entry = value if leaf.entry is None else value[leaf.entry]  # pyright: ignore
            return entry.replace(is_law=leaf.is_law)
        return InputValue(leaf.select(jnp.asarray(value)))

    return jax.tree.map(replace, tree, is_leaf=_is_input)


def check_names(names: Sequence[str], known: Mapping[str, Input], argument: str) -> None:
    """Raise `ValueError` for a name that is none of the model's inputs."""
    for name in names:
        if name not in known:
            listed = f" The inputs are {sorted(known)}." if known else " The model has no `Input`."
            hint = did_you_mean(str(name), list(known), listed)
            raise ValueError(f"`{argument}`: there is no input called {name!r}.{hint}")


def check_value(value: Any, known: Input, argument: str, dtype: Any) -> Any:
    """Return the value, in the precision of the model, or the signal of an input.

    **Errors:** `TypeError` for another object, `ValueError` for a wrong shape or NaN.
    """
    where = f"{argument}[{known.name!r}]"
    if isinstance(value, Signal):
        if value.values.shape[1:] != known.shape:
            raise ValueError(
                f"`{where}` must be a Signal of values of shape {known.shape}; got "
                f"{value.values.shape[1:]}."
            )
        return value
    return finite_leaf(value, where, known.shape).astype(dtype)


def _is_input(leaf: object) -> bool:
    return isinstance(leaf, Input)
