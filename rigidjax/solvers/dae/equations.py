"""Terms as equations $F(t, y, \\dot y) = 0$ of flattened unknowns, for the implicit solvers."""

import abc
import functools
from collections.abc import Callable
from typing import ClassVar, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ...annotations import Args, Matrix, Scalar, T, Terms, Time, Vector, Y
from ...native import variants
from ...private_names import AdjointTerm
from ...small_arrays import inverse
from ..base.rate_elimination import Pairs
from ..base.terms import (
    AbstractEquationsTerm,
    ImplicitTerm,
    Index,
    MassMatrixTerm,
    apply_direction,
    flatten,
    unwrap,
)

# Iterations of the regularised least-norm rate.
_ITERATIONS = 30

Point = PyTree[Array]


class AbstractEquations(eqx.Module):
    r"""Equations $F(t, y, \dot y) = 0$, with time in the direction of integration.

    $t$ is a scalar, and $y$ has shape (n,). The solvers evaluate the residual and its two Jacobians
    $M = \partial F / \partial \dot y$ and $K = \partial F / \partial y$. A `point` holds the part
    of the residual at one $(t, y)$ that is independent of $\dot y$.

    **Attributes:** `is_singular`, whether $M$ can be singular.
    """

    is_singular: eqx.AbstractVar[bool]

    @property
    def rates(self) -> Pairs:
        """Pairs (i, j) where equation i is $\\dot y_i = y_j$."""
        return ()

    @abc.abstractmethod
    def residual(self, t: Time, y: Vector, rate: Vector) -> Vector:
        r"""Return the residual $F(t, y, \dot y)$, shape (n,)."""

    @abc.abstractmethod
    def evaluate(self, t: Time, y: Vector) -> Point:
        r"""Return the part of the residual at $(t, y)$ that is independent of $\dot y$."""

    @abc.abstractmethod
    def residual_at(self, point: Point, t: Time, y: Vector, rate: Vector) -> Vector:
        """Return the residual, shape (n,), from the `point` of `evaluate`."""

    @abc.abstractmethod
    def linearize(self, t: Time, y: Vector, rate: Vector) -> tuple[Point, Matrix, Matrix]:
        """Return the point and the Jacobians $M$ and $K$, both (n, n)."""

    @abc.abstractmethod
    def start_rate(self, t: Time, y: Vector) -> Vector:
        r"""Return $\dot y$ at the start, shape (n,), of least norm where it is not unique."""


class ExplicitEquations(AbstractEquations):
    r"""Explicit ordinary differential equations $\dot y - f(t, y) = 0$."""

    f: Callable
    jacobian: Callable | None
    is_singular: ClassVar[bool] = False

    def residual(self, t: Time, y: Vector, rate: Vector):
        return rate - self.f(t, y)

    def evaluate(self, t: Time, y: Vector):
        return self.f(t, y)

    def residual_at(self, point: Point, t: Time, y: Vector, rate: Vector):
        return rate - point

    def linearize(self, t: Time, y: Vector, rate: Vector):
        f, J = _value_and_jacobian(self.f, self.jacobian, t, y)
        return f, jnp.eye(y.size, dtype=y.dtype), -J

    def start_rate(self, t: Time, y: Vector):
        return self.f(t, y)


class ConstantMassEquations(AbstractEquations):
    r"""Equations $M \dot y - f(t, y) = 0$ with a constant mass matrix."""

    f: Callable
    jacobian: Callable | None
    M: Matrix
    rates: Pairs = eqx.field(static=True, default=())  # pyright: ignore
    is_singular: ClassVar[bool] = True

    def residual(self, t: Time, y: Vector, rate: Vector):
        return self.M @ rate - self.f(t, y)

    def evaluate(self, t: Time, y: Vector):
        return self.f(t, y)

    def residual_at(self, point: Point, t: Time, y: Vector, rate: Vector):
        return self.M @ rate - point

    def linearize(self, t: Time, y: Vector, rate: Vector):
        f, J = _value_and_jacobian(self.f, self.jacobian, t, y)
        return f, self.M, -J

    def start_rate(self, t: Time, y: Vector):
        return _least_norm_rate(self.M, self.f(t, y))


class VariableMassEquations(AbstractEquations):
    r"""Equations $M(t, y)\,\dot y - f(t, y) = 0$.

    **Attributes:** `times(t, y, rate)`, product of $M$ and a rate.
    """

    f: Callable
    jacobian: Callable | None
    mass: Callable
    times: Callable
    rates: Pairs = eqx.field(static=True, default=())  # pyright: ignore
    is_singular: ClassVar[bool] = True

    def residual(self, t: Time, y: Vector, rate: Vector):
        return self.times(t, y, rate) - self.f(t, y)

    def evaluate(self, t: Time, y: Vector):
        return self.f(t, y)

    def residual_at(self, point: Point, t: Time, y: Vector, rate: Vector):
        return self.times(t, y, rate) - point

    def linearize(self, t: Time, y: Vector, rate: Vector):
        def residual(y):
            f = self.f(t, y) if self.jacobian is None else 0.0
            return self.times(t, y, rate) - f, f

        _, through, f = jax.linearize(residual, y, has_aux=True)
        K = matrix_of(through, y)
        if self.jacobian is not None:
            f, K = self.f(t, y), K - self.jacobian(t, y)
        return f, self.mass(t, y), K

    def start_rate(self, t: Time, y: Vector):
        return _least_norm_rate(self.mass(t, y), self.f(t, y))


class ImplicitEquations(AbstractEquations):
    r"""Fully implicit equations $F(t, y, \dot y) = 0$."""

    F: Callable
    rate: Callable
    is_singular: ClassVar[bool] = True

    def residual(self, t: Time, y: Vector, rate: Vector):
        return self.F(t, y, rate)

    def evaluate(self, t: Time, y: Vector):
        return None

    def residual_at(self, point: Point, t: Time, y: Vector, rate: Vector):
        return self.F(t, y, rate)

    def linearize(self, t: Time, y: Vector, rate: Vector):
        _, through = jax.linearize(lambda y, rate: self.F(t, y, rate), y, rate)
        zero = jnp.zeros_like(y)
        M = matrix_of(lambda v: through(zero, v), y)
        return None, M, matrix_of(lambda v: through(v, zero), y)

    def start_rate(self, t: Time, y: Vector):
        return self.rate(t, y)


def build_equations(terms: Terms, t: Time, y: Y, args: Args) -> AbstractEquations:
    """Return the equations of a term for flattened unknowns.

    Values that the functions of the term close over become leaves of the result, so that the
    equations can be differentiated with respect to these values.

    **Raises:** `TypeError` for another kind of term, `ValueError` for matrices of a wrong shape.
    """
    term, direction = unwrap(terms)
    if isinstance(term, AbstractEquationsTerm):
        return cast("AbstractEquations", term.equations(t, y, args, direction))
    vector, unravel = flatten(y)
    n, dtype = vector.size, vector.dtype

    def in_term_direction(x):
        """Return a time or rate in the term's own direction of time."""
        return apply_direction(direction, x)

    def flat(function):
        def call(t, y):
            return flatten(function(in_term_direction(t), unravel(y), args))[0].astype(dtype)

        return eqx.filter_closure_convert(call, t, vector)

    def matrix(function, name, factor: int | Array = 1):
        def call(t, y):
            value = jnp.asarray(function(in_term_direction(t), unravel(y), args), dtype)
            if value.shape != (n, n):
                raise ValueError(
                    f"`MassMatrixTerm({name}=...)` must give a matrix of shape ({n}, {n}), the "
                    f"number of unknowns; got shape {value.shape}."
                )
            return apply_direction(factor, value)

        return eqx.filter_closure_convert(call, t, vector)

    def times(term, mass):
        def call(t, y, rate):
            if term.product is None:
                return mass(t, y) @ rate
            product = term.product(in_term_direction(t), unravel(y), unravel(rate), args)
            return flatten(product)[0].astype(dtype)

        return eqx.filter_closure_convert(call, t, vector, vector)

    if isinstance(term, ImplicitTerm):

        def call(t, y, rate):
            rate = unravel(in_term_direction(rate))
            return flatten(term.residual(in_term_direction(t), unravel(y), rate, args))[0]

        F = eqx.filter_closure_convert(call, t, vector, vector)
        return ImplicitEquations(F, _with_direction(flat(term.vf), direction))
    if isinstance(term, AdjointTerm):
        # In `diffrax.BacksolveAdjoint` a rate costs one evaluation, but `vf` a whole Jacobian.
        rate = functools.partial(_adjoint_rate, term)
        return ExplicitEquations(_with_direction(flat(rate), direction), None)
    f = _with_direction(flat(term.vf), direction)
    if isinstance(term, MassMatrixTerm):
        _check_rates(term.rates, n)
        J = None if term.jacobian is None else matrix(term.jacobian, "jacobian", direction)
        mass = matrix(term.mass_matrix, "mass")
        if callable(term.mass):
            return VariableMassEquations(f, J, mass, times(term, mass), term.rates)
        return ConstantMassEquations(f, J, mass(t, vector), term.rates)
    if isinstance(term, diffrax.ODETerm):
        return ExplicitEquations(f, None)
    raise TypeError(
        "This solver takes a `diffrax.ODETerm`, a `MassMatrixTerm` or an `ImplicitTerm`; got "
        f"{type(term).__name__}."
    )


def _adjoint_rate(term: AdjointTerm, t: Time, y: Y, args: Args):
    return term.vf_prod(t, y, args, jnp.ones((), jnp.result_type(t)))


def _check_rates(rates: Pairs, n: int):
    largest = max((max(pair) for pair in rates), default=0)
    if largest >= n:
        raise ValueError(
            f"`MassMatrixTerm(rates=...)` must have unknowns from 0 to {n - 1}; got {largest}."
        )


class _DirectedRate(eqx.Module):
    """A rate with respect to time in the direction of integration."""

    function: Callable
    direction: Array

    def __call__(self, t: Time, y: Vector):
        return apply_direction(self.direction, self.function(t, y))


def _with_direction(function: Callable[..., Vector], direction: int | Array):
    return function if isinstance(direction, int) else _DirectedRate(function, direction)


def _value_and_jacobian(f: Callable, jacobian: Callable | None, t: Time, y: Vector):
    if jacobian is not None:
        return f(t, y), jacobian(t, y)
    value, through = jax.linearize(lambda y: f(t, y), y)
    return value, matrix_of(through, y)


def matrix_of(linear: Callable[[Vector], Vector], y: Vector) -> Float[Array, "m n"]:
    """Return the matrix, (m, n), of a linear map of vectors like `y`, (n,)."""
    unit = jnp.eye(y.size, dtype=y.dtype)
    # One column after another in native runs, where a batch would take n times the code.
    return variants(
        sequential=lambda: jax.lax.map(linear, unit).T,
        batched=lambda: jax.vmap(linear, out_axes=1)(unit),
    )


@jax.jit
def _least_norm_rate(M: Matrix, f: Vector):
    r"""Return the rate of least norm with $M \dot y = f$, to the accuracy of an initial guess.

    Each iteration of the regularised equations reduces the error by the factor
    $\delta/(\sigma^2 + \delta)$, where $\delta$ is the square root of round-off and $\sigma$ the
    smallest nonzero singular value of $M$ with its rows scaled to largest entries of 1. The scaling
    does not change the solution.
    """
    size = jnp.max(jnp.abs(stop_gradients(M)), axis=1)
    size = jnp.where(size > 0, size, 1.0)
    M, f = M / size[:, None], f / size
    n = len(M)
    delta = jnp.sqrt(jnp.finfo(M.dtype).eps).astype(M.dtype)
    damped = inverse(M.T @ M + delta * jnp.eye(n, dtype=M.dtype)) @ M.T
    return jax.lax.fori_loop(
        0, _ITERATIONS, lambda _, rate: rate + damped @ (f - M @ rate), 0.0 * f
    )


def stop_gradients(tree: T) -> T:
    """Apply `jax.lax.stop_gradient` to the floating-point arrays of a tree."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def step_length(t0: Time, t1: Time, dtype: jnp.dtype) -> Scalar:
    """Return the length of a step, replaced by 1 if it is zero.

    Steps of zero length occur where a finished run waits for the others of its batch. Their results
    are discarded, but must be finite for derivatives.
    """
    h = t1 - t0
    return jnp.where(h > 0, h, 1.0).astype(dtype)


def index_scaling(exponents: Index, h: Scalar) -> Vector | float:
    r"""Return the factors $h^{i-1}$ for the errors of unknowns of index $i > 1$, shape (n,).

    **Arguments:** `exponents`, index of each unknown, `None` if none is above 1; `h`.
    **Returns:** shape (n,), with 1 for an index of 0 or 1; the number 1 for `None`.

    **Source:** Hairer-Wanner II, VII.4, p. 484 ff.; the code RADAU5.
    """
    if exponents is None:
        return 1.0
    powers = jnp.stack([jnp.ones_like(h), jnp.ones_like(h), h, h * h])
    return powers[jnp.asarray(exponents)]


def differentiation_index(terms: Terms) -> Index:
    """Return the index of each unknown, `None` if none is above 1."""
    return getattr(unwrap(terms)[0], "index", None)
