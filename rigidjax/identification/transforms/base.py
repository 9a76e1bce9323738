"""What every transformation of parameters provides."""

import abc

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float


class AbstractTransform(eqx.Module):
    r"""Unbounded coordinates $u$ of a parameter, the *leaf* of a model, state or sensor.

    Besides its coordinates a leaf has *components*, the physical numbers that are reported. As many
    of them are fitted as there are coordinates; the others keep the values of a `reference`, the
    leaf at the start of the fit.
    """

    spread: eqx.AbstractClassVar[float]
    """A change of a coordinate that is large whatever the units; `inf` if there is none."""

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
    def bound(self, leaf: np.ndarray) -> str:
        """Which bound a fitted leaf has reached, in words, or `""`."""


class AbstractNumbers(AbstractTransform):
    """A transformation whose components are the numbers of the leaf themselves."""

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return leaf.reshape(-1)

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf + change.reshape(leaf.shape)

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return (new - leaf).reshape(-1)


def element_names(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the elements of an array, without leading axes of length one: `"[0]"`, `"[1,2]"`."""
    while shape and shape[0] == 1:
        shape = shape[1:]
    if not shape:
        return ("",)
    return tuple("[" + ",".join(map(str, index)) + "]" for index in np.ndindex(*shape))
