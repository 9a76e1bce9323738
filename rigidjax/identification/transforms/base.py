"""What every transformation of parameters provides."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Limits(NamedTuple):
    r"""Bounds of the coordinates of a parameter, (k,) each, infinite where there are none.

    **Attributes:** `lower`, `upper`; `reach`, the decrease of a coordinate with which the
    linearised parameter is on its lower bound, one for a logarithm, whose bound lies at
    $-\infty$ and is stood for by a finite `lower`, infinite for a coordinate that is linear.
    """

    lower: Float[Array, " k"]
    upper: Float[Array, " k"]
    reach: Float[Array, " k"]


class ActiveLimit(NamedTuple):
    """A linear combination of the components of a leaf that is on its bound.

    **Attributes:** `quantity`, its name, `""` for a component itself; `combination` (c,); `limit`,
    the bound; `is_lower`, whether the combination cannot be less, else it cannot be more.
    """

    quantity: str
    combination: np.ndarray
    limit: float
    is_lower: bool


class AbstractTransform(eqx.Module):
    r"""Coordinates $u$ of a parameter, the *leaf* of a model, state or sensor.

    Besides its coordinates a leaf has *components*, the physical numbers that are reported. As many
    of them are fitted as there are coordinates; the others keep the values of a `reference`, the
    leaf at the start of the fit.
    """

    is_bounded: eqx.AbstractClassVar[bool]
    """Whether coordinates have limits."""

    @abc.abstractmethod
    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Names of the components of a leaf of this shape, `""` for a number.

        **Errors:** `ValueError` for a shape, or a choice of fitted components, that does not fit.
        """

    @abc.abstractmethod
    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Which of the components are fitted."""

    @abc.abstractmethod
    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        """The nearest leaf from which a fit can start, and what was changed (`""` for nothing).

        **Errors:** `ValueError` where "nearest" has no meaning.
        """

    @abc.abstractmethod
    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        """Coordinates $u$ of an admissible leaf."""

    @abc.abstractmethod
    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        """The leaf with coordinates $u$."""

    @abc.abstractmethod
    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        """All components of a leaf, in physical units."""

    @abc.abstractmethod
    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        """The leaf with its components changed by `change`, to first order in it."""

    @abc.abstractmethod
    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        """The inverse: the `change` that makes `new` of `leaf`, to first order in it."""

    @abc.abstractmethod
    def spread(self, reference: Array) -> Float[Array, " k"]:
        """Changes of the coordinates that are large whatever the units; `inf` if there are none."""

    @abc.abstractmethod
    def limits(self, reference: Array) -> Limits:
        """Bounds of the coordinates."""

    @abc.abstractmethod
    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        """The bounds that a fitted leaf is on.

        **Arguments:** `sides` (k,), of each coordinate, -1 on its lower limit, 1 on its upper one,
        else 0.
        """


class AbstractElements(AbstractTransform):
    """A transformation whose components are the numbers of the leaf themselves."""

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return leaf.reshape(-1)

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf + change.reshape(leaf.shape)

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return (new - leaf).reshape(-1)


def no_limits(count: int, dtype: jnp.dtype) -> Limits:
    """Limits of coordinates that may be any number."""
    none = jnp.full(count, jnp.inf, dtype)
    return Limits(-none, none, none)


def clip_value(u: Float[Array, " k"], lower: Array | float, upper: Array | float) -> Array:
    """Clip coordinates to their bounds, with the derivative one everywhere.

    The derivative tells a search on a bound whether the parameter should leave it.
    """
    return u + jax.lax.stop_gradient(jnp.clip(u, lower, upper) - u)


def element_names(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the elements of an array, without leading axes of length one: `"[0]"`, `"[1,2]"`."""
    while shape and shape[0] == 1:
        shape = shape[1:]
    if not shape:
        return ("",)
    return tuple("[" + ",".join(map(str, index)) + "]" for index in np.ndindex(*shape))
