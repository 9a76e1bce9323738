"""Terms of differential-algebraic equations, for diffrax."""

import abc
from collections.abc import Callable
from typing import ClassVar, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from diffrax._term import WrapTerm
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array

from ..annotations import Args, Terms, Time, Vector, Y
from ..checks import ArrayInput
from .rate_elimination import checked_rates

# Differentiation index of each unknown; `None` if none is above 1.
Index = tuple[int, ...] | None


class AbstractDAETerm(diffrax.AbstractTerm):
    """A term that is not $\\dot y = f$; for the solvers of this package that say so.

    **Attributes:** `index`, the differentiation index of each unknown (0 and 1 are alike), in the
    order of the flattened unknowns; `None` if none is above 1.
    """

    index: eqx.AbstractVar[Index]

    def contr(self, t0, t1, **kwargs) -> Time:
        """Length of the interval."""
        return t1 - t0

    def prod(self, vf, control) -> Y:
        """Product of a value and a length of time."""
        return jax.tree.map(lambda v: control * v, vf)


class AbstractEquationsTerm(AbstractDAETerm):
    """A term that makes the equations of its unknowns itself (`rigidjax.solvers.dae.equations`)."""

    check_start: ClassVar[bool] = False

    @abc.abstractmethod
    def equations(self, t: Time, y: Y, args: Args, direction: int | Array) -> eqx.Module:
        """The equations as `AbstractEquations`, with time in the given direction."""


class MassMatrixTerm(AbstractDAETerm):
    r"""The equations $M(t, y)\,\dot y = f(t, y)$; $M$ may be singular.

    **Arguments:**

    - `vector_field`: $f$ as a function of `(t, y, args)`, of the structure of `y`.
    - `mass`: $M$, an array of shape (n, n) or a function of `(t, y, args)` that returns one, for
      the n flattened unknowns.
    - `index`: differentiation index of each unknown, n integers, by which errors and Newton
      increments are scaled ($h$ for 2, $h^2$ for 3); `None` if none is above 1.
    - `jacobian`: $\partial f/\partial y$ as a function of `(t, y, args)`, shape (n, n); `None` for
      automatic differentiation.
    - `names`: what to call each of the n equations if the start violates it; empty for those that
      are not algebraic.
    - `check_start`: whether that is checked, which takes about half a second to compile.
    - `rates`: pairs (i, j) of unknowns, if equation i is $\dot y_i = y_j$ (positions and
      velocities, say). They are eliminated before a Newton matrix is inverted, which with 27
      unknowns, 14 of them such, takes a quarter of the time. The default `linear_solver` uses
      them, others see the whole matrix.
    - `product`: $M(t, y)\,\dot y$ as a function of `(t, y, y_dot, args)`, of the structure of `y`,
      where that takes less than the matrix and has simpler derivatives; `None` for the product
      with the matrix.
    - `consistent`: a function of `(t, y, args)` that moves unknowns onto the algebraic equations
      and their derivatives by time, and leaves unknowns that satisfy them unchanged. If an index is
      above 1, steps of a differentiated run are accurate for its derivatives only with it; without
      it such a run gives a warning.

    **Raises:** `ValueError` for an index other than 0 to 3, for pairs that are none, and for
    matrices of another shape; at run time an error for a start that violates an algebraic equation,
    with its number, for an equation that is not what `rates` says, and for a `product` that is not
    that with the matrix, all if `check_start`.
    **Source:** Hairer-Wanner II, VI.1 and VII.1 (error scaling: the code RADAU5).
    """

    vector_field: Callable[..., Y]
    mass: ArrayLike | Callable[..., ArrayLike]
    index: Index = eqx.field(
        static=True, default=None, converter=lambda index: checked_index(index)
    )
    jacobian: Callable[..., ArrayLike] | None = None
    names: tuple[str, ...] | None = eqx.field(static=True, default=None)
    check_start: bool = eqx.field(static=True, default=True)
    rates: tuple[tuple[int, int], ...] = eqx.field(
        static=True, default=(), converter=lambda rates: checked_rates(rates)
    )
    product: Callable[..., Y] | None = None
    consistent: Callable[..., Y] | None = None

    def vf(self, t, y, args) -> Y:
        """The right-hand side $f$."""
        return self.vector_field(t, y, args)

    def mass_matrix(self, t: Time, y: Y, args: Args) -> ArrayLike:
        """The matrix $M$, shape (n, n)."""
        return self.mass(t, y, args) if callable(self.mass) else jnp.asarray(self.mass)


class ImplicitTerm(AbstractDAETerm):
    r"""The equations $F(t, y, \dot y) = 0$.

    **Arguments:**

    - `residual`: $F$ as a function of `(t, y, y_dot, args)`, of the structure of `y`.
    - `index`: as in `MassMatrixTerm`.
    - `rate`: $\dot y$ at the start as a function of `(t, y, args)`; `None` for zero. It serves the
      first step of a multistep method and the first Jacobian of the others.
    - `names`, `check_start`, `consistent`: as in `MassMatrixTerm`.

    **Raises:** `ValueError` for an index other than 0 to 3; at run time an error for a start that
    violates an algebraic equation, with its number.
    **Source:** Brenan-Campbell-Petzold (1.1).
    """

    residual: Callable[..., Y]
    index: Index = eqx.field(
        static=True, default=None, converter=lambda index: checked_index(index)
    )
    rate: Callable[..., Y] | None = None
    names: tuple[str, ...] | None = eqx.field(static=True, default=None)
    check_start: bool = eqx.field(static=True, default=True)
    consistent: Callable[..., Y] | None = None

    def vf(self, t, y, args) -> Y:
        """The rate $\\dot y$ at the start, zero if unknown."""
        if self.rate is None:
            return jax.tree.map(jnp.zeros_like, y)
        return self.rate(t, y, args)


def checked_index(index: ArrayInput | None) -> Index:
    """The index of each unknown as a tuple of integers."""
    if index is None:
        return None
    index = tuple(int(i) for i in np.asarray(index).ravel())
    if not all(0 <= i <= 3 for i in index):
        raise ValueError(f"`index=` holds a differentiation index other than 0 to 3: {index}.")
    return None if max(index, default=0) < 2 else index


def unwrap(terms: Terms) -> tuple[Terms, int | Array]:
    """The term inside diffrax's wrapper, and the direction of time (1 or -1).

    diffrax wraps a term to let time run backwards.
    """
    if isinstance(terms, WrapTerm):
        return terms.term, cast("int | Array", terms.direction)
    return terms, 1


def apply_direction(direction: int | Array, x: Array) -> Array:
    """Return `x`, a time or a rate, times the direction of time, 1 or -1."""
    return x if isinstance(direction, int) else direction.astype(jnp.result_type(x)) * x


def check_unknowns(y: Y, solver: str) -> None:
    """Raise for unknowns that are not real."""
    for leaf in jax.tree.leaves(y):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise TypeError(
                f"`{solver}` integrates real unknowns; got {jnp.result_type(leaf)}. Write complex "
                "unknowns as their real and imaginary parts."
            )


def flatten(y: Y) -> tuple[Vector, Callable[[Vector], Y]]:
    """The unknowns as one vector, and the way back."""
    if isinstance(y, jax.Array) and y.ndim == 1:
        return y, lambda y: y
    return ravel_pytree(y)
