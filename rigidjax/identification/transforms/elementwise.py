"""Transformations of individual array elements."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...checks import float_array
from .base import (
    AbstractElements,
    AbstractTransform,
    ActiveLimit,
    Limits,
    clip_value,
    element_names,
    no_limits,
)

Indices = tuple[int, ...] | None

# Fraction of its start value at which a positive parameter counts as zero.
_ZERO = 1e-12


class AbstractElementwise(AbstractElements):
    """A transformation of the elements `which` of an array; the others are held fixed."""

    which: eqx.AbstractVar[Indices]

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        names, which = element_names(shape), self.which
        if which is not None:
            if not which or len(set(which)) < len(which):
                raise ValueError(f"`which` must hold different indices of elements; got {which}")
            wrong = [i for i in which if not 0 <= i < len(names)]
            if wrong:
                raise ValueError(f"`which` must be between 0 and {len(names) - 1}; got {wrong[0]}")
        return names

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(range(int(np.prod(shape)))) if self.which is None else tuple(self.which)

    def _elements_on_limits(self, leaf: np.ndarray, sides: np.ndarray, lower: Any, upper: Any):
        """Return the elements that are on their bounds."""
        active, count = [], int(np.prod(leaf.shape))
        for k, side in zip(self.fitted(leaf.shape), sides, strict=True):
            if side:
                limit = float(np.broadcast_to(lower if side < 0 else upper, leaf.shape).flat[k])
                active.append(ActiveLimit("", np.eye(count)[k], limit, bool(side < 0)))
        return tuple(active)


class Unconstrained(AbstractElementwise):
    """An unbounded value, which is its own coordinate.

    **Arguments:** `which`, indices of the elements (of the flattened array) that are fitted, or
    `None` for all.
    """

    which: Indices = eqx.field(static=True, default=None)
    is_bounded: ClassVar[bool] = False

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return _take(leaf, self.which)

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        return _put(reference, self.which, u)

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.full(_take(reference, self.which).shape, jnp.inf, reference.dtype)

    def limits(self, reference: Array) -> Limits:
        return no_limits(_take(reference, self.which).size, reference.dtype)

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        return ()


class Positive(AbstractElementwise):
    r"""A positive value $\theta = e^u$.

    Data whose optimum is zero or negative drive the value to a negligible fraction of its start,
    where it counts as being on its bound. `Bounded(0.0, inf)` reaches zero exactly, and can start
    there.

    **Arguments:** `which`, as in `Unconstrained`.
    """

    which: Indices = eqx.field(static=True, default=None)
    is_bounded: ClassVar[bool] = True

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        values = np.asarray(_take(leaf, self.which))
        if not np.all(values > 0):
            raise ValueError(f"a positive parameter must start above zero; got {values}")
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return jnp.log(_take(leaf, self.which))

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        return _put(reference, self.which, jnp.exp(u))

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.ones_like(_take(reference, self.which))

    def limits(self, reference: Array) -> Limits:
        values = _take(reference, self.which)
        one = jnp.ones_like(values)
        return Limits(jnp.log(values) + np.log(_ZERO), jnp.inf * one, one)

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        return self._elements_on_limits(leaf, sides, 0.0, np.inf)


class Bounded(AbstractElementwise):
    """A value between bounds, which it can reach.

    The coordinate is linear: the offset from the middle between the bounds, in units of half their
    distance; with a single bound, the offset from it. An optimum on a bound is found exactly.

    **Arguments:** `lower` and `upper`, $a < b$, numbers or arrays in the shape of the parameter,
    infinite without a bound; `which`, as in `Unconstrained`.
    """

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    which: Indices = eqx.field(static=True)
    is_bounded: ClassVar[bool] = True

    def __init__(self, lower: ArrayLike, upper: ArrayLike, which: Indices = None):
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
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        origin, unit, lower, upper = self._scale(leaf)
        return jnp.clip((_take(leaf, self.which) - origin) / unit, lower, upper)

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        a, b = self._bounds(reference)
        origin, unit, lower, upper = self._scale(reference)
        inside = origin + unit * clip_value(u, lower, upper)
        # On a bound the value is exact, without the rounding of the sum.
        exact = jnp.where(u <= lower, a, jnp.where(u >= upper, b, jnp.clip(inside, a, b)))
        return _put(reference, self.which, inside + jax.lax.stop_gradient(exact - inside))

    def spread(self, reference: Array) -> Float[Array, " k"]:
        _, _, lower, upper = self._scale(reference)
        return jnp.where(jnp.isfinite(upper - lower), jnp.ones_like(lower), jnp.inf)

    def limits(self, reference: Array) -> Limits:
        _, _, lower, upper = self._scale(reference)
        return Limits(lower, upper, jnp.full_like(lower, jnp.inf))

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        return self._elements_on_limits(leaf, sides, self.lower, self.upper)

    def _bounds(self, leaf: Array | np.ndarray) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        lower = jnp.broadcast_to(self.lower, leaf.shape).astype(leaf.dtype)
        upper = jnp.broadcast_to(self.upper, leaf.shape).astype(leaf.dtype)
        return _take(lower, self.which), _take(upper, self.which)

    def _scale(
        self, leaf: Array
    ) -> tuple[Float[Array, " k"], Float[Array, " k"], Float[Array, " k"], Float[Array, " k"]]:
        """Return origin and unit of the coordinates, and their lower and upper limits."""
        a, b = self._bounds(leaf)
        below, above = jnp.isfinite(a), jnp.isfinite(b)
        both, zero, one = below & above, jnp.zeros_like(a), jnp.ones_like(a)
        low, high = jnp.where(below, a, zero), jnp.where(above, b, zero)
        origin = jnp.where(both, 0.5 * (low + high), low + high)
        unit = jnp.where(both, 0.5 * (high - low), one)
        lower = jnp.where(both, -one, jnp.where(below, zero, -jnp.inf))
        upper = jnp.where(both, one, jnp.where(above, zero, jnp.inf))
        return origin, unit, lower, upper


def _take(leaf: Array | np.ndarray, which: Indices) -> Any:
    flat = leaf.reshape(-1)
    return flat if which is None else flat[np.asarray(which)]


def _put(reference: Array, which: Indices, values: Float[Array, " k"]) -> Array:
    if which is None:
        return values.reshape(reference.shape)
    return reference.reshape(-1).at[np.asarray(which)].set(values).reshape(reference.shape)


class Known(AbstractTransform):
    """A leaf that keeps its start value: a known input of each run, such as a payload.

    ```python
    load = rj.Parameter(
        "load", lambda e: e.model.system.bodies[1].mass, rj.identification.Known(),
        per_run=True, start=[0.0, 0.5, 1.0],
    )
    ```

    It has no components in reports, and no effect on intervals.
    """

    is_bounded: ClassVar[bool] = False

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        return ()

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return ()

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        return leaf, ""

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        return jnp.zeros(0, leaf.dtype)

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        return reference

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return jnp.zeros(0, leaf.dtype)

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return jnp.zeros(0, leaf.dtype)

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.zeros(0, reference.dtype)

    def limits(self, reference: Array) -> Limits:
        return no_limits(0, reference.dtype)

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        return ()
