"""Interface of all transformations of parameters."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Limits(NamedTuple):
    r"""Bounds of the coordinates of a parameter, (k,) each, infinite without a bound.

    **Attributes:** `lower`, `upper`; `reach`, the decrease of a coordinate at which the linearised
    parameter reaches its lower bound: one for a logarithm, whose bound at $-\infty$ is replaced by
    a finite `lower`; infinite for a linear coordinate.
    """

    lower: Float[Array, " k"]
    upper: Float[Array, " k"]
    reach: Float[Array, " k"]


class ActiveLimit(NamedTuple):
    """A linear combination of the components of a leaf that is on its bound.

    **Attributes:** `quantity`, its name, `""` for a single component; `combination`, its
    coefficients (c,); `limit`, the bound; `is_lower`, whether it is a lower bound.
    """

    quantity: str
    combination: np.ndarray
    limit: float
    is_lower: bool


class AbstractTransform(eqx.Module):
    """Coordinates $u$ of a parameter, the *leaf* of a model, state or sensor.

    Besides its coordinates a leaf has *components*, the physical values that are reported. As many
    components are fitted as there are coordinates; the others keep their values in a `reference`,
    the leaf at the start of the fit.
    """

    is_bounded: eqx.AbstractClassVar[bool]
    """Whether coordinates have limits."""

    @abc.abstractmethod
    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Return the names of the components of a leaf of this shape, `""` for a scalar.

        **Errors:** `ValueError` if the shape, or the choice of fitted components, does not fit.
        """

    @abc.abstractmethod
    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the indices of the fitted components."""

    @abc.abstractmethod
    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        """Return the nearest leaf from which a fit can start, and a note on the change, or `""`.

        **Errors:** `ValueError` where "nearest" has no meaning.
        """

    @abc.abstractmethod
    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        """Return the coordinates $u$ of an admissible leaf."""

    @abc.abstractmethod
    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        """Return the leaf with coordinates $u$."""

    @abc.abstractmethod
    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        """Return all components of a leaf, in physical units."""

    @abc.abstractmethod
    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        """Return the leaf with its components changed by `change`, correct to first order."""

    @abc.abstractmethod
    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        """Return the change of the components from `leaf` to `new`, correct to first order."""

    @abc.abstractmethod
    def spread(self, reference: Array) -> Float[Array, " k"]:
        """Return large changes of the coordinates, in any unit; `inf` without a natural scale."""

    @abc.abstractmethod
    def limits(self, reference: Array) -> Limits:
        """Return the bounds of the coordinates."""

    @abc.abstractmethod
    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        """Return the bounds that a fitted leaf is on.

        **Arguments:** `sides` (k,), for each coordinate -1 on its lower limit, 1 on its upper
        limit, else 0.
        """


class AbstractElements(AbstractTransform):
    """A transformation whose components are the elements of the leaf."""

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return leaf.reshape(-1)

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf + change.reshape(leaf.shape)

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return (new - leaf).reshape(-1)


def no_limits(count: int, dtype: jnp.dtype) -> Limits:
    """Return limits of unbounded coordinates."""
    none = jnp.full(count, jnp.inf, dtype)
    return Limits(-none, none, none)


def clip_value(u: Float[Array, " k"], lower: Array | float, upper: Array | float) -> Array:
    """Clip coordinates to their bounds, with derivative one everywhere.

    With this derivative a search on a bound can tell whether the parameter should leave it.
    """
    return u + jax.lax.stop_gradient(jnp.clip(u, lower, upper) - u)


def element_names(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return names of the elements of an array, without leading axes of length one: `"[1,2]"`."""
    while shape and shape[0] == 1:
        shape = shape[1:]
    if not shape:
        return ("",)
    return tuple("[" + ",".join(map(str, index)) + "]" for index in np.ndindex(*shape))
