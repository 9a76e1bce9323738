"""Terms of differential-algebraic equations, for diffrax."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array

from ...annotations import Args, Terms, Time, Vector, Y
from ...checks import ArrayInput
from ...private_names import WrapTerm
from .rate_elimination import checked_rates

# Differentiation index of each unknown; `None` if none is above 1.
Index = tuple[int, ...] | None


class AbstractDAETerm(diffrax.AbstractTerm):
    """A term other than $\\dot y = f$, for the implicit solvers of this package.

    **Attributes:** `index`, the differentiation index of each unknown (0 and 1 are alike), in the
    order of the flattened unknowns; `None` if none is above 1.
    """

    index: eqx.AbstractVar[Index]

    def contr(self, t0: Time, t1: Time, **kwargs: Any) -> Time:
        """Return the length of the interval."""
        return t1 - t0

    def prod(self, vf: Y, control: Time) -> Y:
        """Return the product of a rate and a length of time."""
        return jax.tree.map(lambda v: control * v, vf)


class AbstractEquationsTerm(AbstractDAETerm):
    """A term that builds its own `AbstractEquations`, see `rigidjax.solvers.dae.equations`."""

    check_start: ClassVar[bool] = False

    @abc.abstractmethod
    def equations(self, t: Time, y: Y, args: Args, direction: int | Array) -> eqx.Module:
        """Return the equations as `AbstractEquations`, with time running in the given direction."""


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
    - `names`: a name for each of the n equations, used in the error if the start violates the
      equation; empty for equations that are not algebraic.
    - `check_start`: whether to check at the start the algebraic equations, `rates` and `product`;
      the checks lengthen compilation.
    - `rates`: pairs (i, j) of unknowns where equation i is $\dot y_i = y_j$, such as positions and
      velocities. The default `linear_solver` eliminates these unknowns before it inverts a Newton
      matrix, which is faster; other linear solvers get the whole matrix.
    - `product`: $M(t, y)\,\dot y$ as a function of `(t, y, y_dot, args)`, of the structure of `y`,
      where it is cheaper than the matrix or has simpler derivatives; `None` to multiply by the
      matrix.
    - `consistent`: a function of `(t, y, args)` that projects the unknowns onto the algebraic
      equations and their time derivatives, and leaves consistent unknowns unchanged. If an index
      is above 1, the step-size control of a differentiated run needs this function to bound the
      errors of the derivatives; without it such a run gives a warning.

    **Raises:** `ValueError` for an index other than 0 to 3, for `rates` that are not pairs of
    unknowns, for matrices of a wrong shape, and for `product` beside a constant matrix; with
    `check_start`, an error at run time if the start violates an algebraic equation, if an
    equation is not the one that `rates` states, or if `product` differs from the product with
    the matrix.
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

    def __check_init__(self):
        if self.product is not None and not callable(self.mass):
            raise ValueError(
                "`MassMatrixTerm(product=...)` is for a `mass` that is a function; a constant "
                "matrix is multiplied directly. Omit `product`."
            )

    def vf(self, t: Time, y: Y, args: Args) -> Y:
        """Return the right-hand side $f$."""
        return self.vector_field(t, y, args)

    def mass_matrix(self, t: Time, y: Y, args: Args) -> ArrayLike:
        """Return the matrix $M$, shape (n, n)."""
        return self.mass(t, y, args) if callable(self.mass) else jnp.asarray(self.mass)


class ImplicitTerm(AbstractDAETerm):
    r"""The equations $F(t, y, \dot y) = 0$.

    **Arguments:**

    - `residual`: $F$ as a function of `(t, y, y_dot, args)`, of the structure of `y`.
    - `index`: as in `MassMatrixTerm`.
    - `rate`: $\dot y$ at the start as a function of `(t, y, args)`; `None` for zero. A multistep
      method needs it for the first step, other methods for the first Jacobian.
    - `names`, `check_start`, `consistent`: as in `MassMatrixTerm`.

    **Raises:** `ValueError` for an index other than 0 to 3; at run time an error with the number
    of an algebraic equation that the start violates.
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

    def vf(self, t: Time, y: Y, args: Args) -> Y:
        """Return the rate $\\dot y$ at the start, zero without `rate`."""
        if self.rate is None:
            return jax.tree.map(jnp.zeros_like, y)
        return self.rate(t, y, args)


def checked_index(index: ArrayInput | None) -> Index:
    """Return the index of each unknown as a tuple of integers; `None` if none is above 1."""
    if index is None:
        return None
    index = tuple(int(i) for i in np.asarray(index).ravel())
    if not all(0 <= i <= 3 for i in index):
        raise ValueError(f"`index=` holds a differentiation index other than 0 to 3: {index}.")
    return None if max(index, default=0) < 2 else index


def unwrap(terms: Terms) -> tuple[Terms, int | Array]:
    """Return the term inside diffrax's wrapper for backward time, and the direction, 1 or -1."""
    if isinstance(terms, WrapTerm):
        return terms.term, cast("int | Array", terms.direction)
    return terms, 1


def apply_direction(direction: int | Array, x: Array) -> Array:
    """Return `x`, a time or a rate, times the direction of time, 1 or -1."""
    return x if isinstance(direction, int) else direction.astype(jnp.result_type(x)) * x


def check_unknowns(y: Y, solver: str) -> None:
    """Raise `TypeError` for unknowns that are not real."""
    for leaf in jax.tree.leaves(y):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise TypeError(
                f"`{solver}` integrates real unknowns; got {jnp.result_type(leaf)}. Write complex "
                "unknowns as their real and imaginary parts."
            )


def flatten(y: Y) -> tuple[Vector, Callable[[Vector], Y]]:
    """Return the unknowns as one vector, and the function that restores their structure."""
    if isinstance(y, jax.Array) and y.ndim == 1:
        return y, lambda y: y
    return ravel_pytree(y)
