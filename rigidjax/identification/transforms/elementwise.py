"""Transformations that act on each element of an array by itself."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...checks import float_array
from .base import AbstractNumbers, element_names

Components = tuple[int, ...] | None

# How far inside of its bounds a fit starts, as a part of their distance: the coordinate of
# `Bounded` has no derivative at a bound.
_MARGIN = 1e-2


class AbstractElementwise(AbstractNumbers):
    """A transformation of the elements `which` of an array; the others stay as they are."""

    which: eqx.AbstractVar[Components]

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        names, which = element_names(shape), self.which
        if which is not None:
            if not which or len(set(which)) < len(which):
                raise ValueError(f"`which` must hold different numbers of elements; got {which}")
            wrong = [i for i in which if not 0 <= i < len(names)]
            if wrong:
                raise ValueError(f"`which` must be between 0 and {len(names) - 1}; got {wrong[0]}")
        return names

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(range(int(np.prod(shape)))) if self.which is None else tuple(self.which)


class Free(AbstractElementwise):
    """Any real number; the coordinate is the number itself.

    **Arguments:** `which`, numbers of the elements (of the flattened array) that are fitted; `None`
    for all.
    """

    which: Components = eqx.field(static=True, default=None)
    spread: ClassVar[float] = float("inf")

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return _take(leaf, self.which)

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        return _put(reference, self.which, u)

    def bound(self, leaf: np.ndarray) -> str:
        return ""


class Positive(AbstractElementwise):
    r"""A positive number $\theta = e^u$.

    **Arguments:** `which`, as of `Free`.
    """

    which: Components = eqx.field(static=True, default=None)
    spread: ClassVar[float] = 1.0

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        values = np.asarray(_take(leaf, self.which))
        if not np.all(values > 0):
            raise ValueError(f"a positive parameter must start above zero; got {values}")
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return jnp.log(_take(leaf, self.which))

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        return _put(reference, self.which, jnp.exp(u))

    def bound(self, leaf: np.ndarray) -> str:
        return ""


class Bounded(AbstractElementwise):
    r"""A number between bounds, $\theta = \frac12(a + b) + \frac12(b - a)\sin u$.

    The sine does not flatten out far from the middle as a logistic function does: a step that goes
    beyond a bound comes back.

    **Arguments:** `lower` and `upper`, $a < b$, numbers or arrays in the shape of the parameter;
    `which`, as of `Free`.
    """

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    which: Components = eqx.field(static=True)
    spread: ClassVar[float] = 1.0

    def __init__(self, lower: ArrayLike, upper: ArrayLike, which: Components = None):
        self.lower = jnp.asarray(float_array(lower, "Bounded(lower=...)"))
        self.upper = jnp.asarray(float_array(upper, "Bounded(upper=...)"))
        if not np.all(np.asarray(self.lower) < np.asarray(self.upper)):
            raise ValueError(f"`Bounded` needs lower < upper; got {lower} and {upper}.")
        self.which = which

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        a, b = self._bounds(leaf)
        values = np.asarray(_take(leaf, self.which))
        if not np.all((values >= a) & (values <= b)):
            raise ValueError(f"a bounded parameter must start between {a} and {b}; got {values}")
        inside = np.clip(values, a + _MARGIN * (b - a), b - _MARGIN * (b - a))
        if np.array_equal(inside, values):
            return leaf, ""
        note = f"started at {inside}, as {values} is too close to a bound to move from it"
        return np.asarray(_put(jnp.asarray(leaf), self.which, jnp.asarray(inside))), note

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        a, b = self._bounds(leaf)
        return jnp.arcsin((2 * _take(leaf, self.which) - a - b) / (b - a))

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        a, b = self._bounds(reference)
        return _put(reference, self.which, 0.5 * (a + b) + 0.5 * (b - a) * jnp.sin(u))

    def bound(self, leaf: np.ndarray) -> str:
        a, b = (np.asarray(x) for x in self._bounds(leaf))
        values = np.asarray(_take(leaf, self.which))
        close = 1e-6 * (b - a)
        if np.any(values - a < close):
            return "its lower bound"
        return "its upper bound" if np.any(b - values < close) else ""

    def _bounds(self, leaf):
        lower = jnp.broadcast_to(self.lower, leaf.shape).astype(leaf.dtype)
        upper = jnp.broadcast_to(self.upper, leaf.shape).astype(leaf.dtype)
        return _take(lower, self.which), _take(upper, self.which)


def _take(leaf, which):
    flat = leaf.reshape(-1)
    return flat if which is None else flat[np.asarray(which)]


def _put(reference, which, values):
    if which is None:
        return values.reshape(reference.shape)
    return reference.reshape(-1).at[np.asarray(which)].set(values).reshape(reference.shape)
