"""Every kind of term as $F(t, y, \\dot y) = 0$ on vectors, as implicit solvers need it."""

import abc
import functools
from collections.abc import Callable
from typing import ClassVar, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from diffrax._term import AdjointTerm
from jaxtyping import Array, Float, PyTree

from ...annotations import Args, Matrix, Scalar, T, Terms, Time, Vector, Y
from ...native import variants
from ...native.ops import inverse
from ..rate_elimination import Pairs
from ..terms import (
    AbstractEquationsTerm,
    ImplicitTerm,
    Index,
    MassMatrixTerm,
    apply_direction,
    flatten,
    unwrap,
)

# How often a first guess of a rate is improved.
_ITERATIONS = 30

Point = PyTree[Array]


class AbstractEquations(eqx.Module):
    r"""$F(t, y, \dot y) = 0$ with $t$ in the direction of integration; $t$ a scalar, $y$ (n,).

    What these solvers do with the equations takes two linearisations, $M = \partial F / \partial
    \dot y$ and $K = \partial F / \partial y$, and the residual at many places. `point` is what of
    the residual at one $(t, y)$ can be kept for several $\dot y$.
    """

    is_singular: eqx.AbstractVar[bool]  # whether M may be so

    @property
    def rates(self) -> Pairs:
        """Pairs (i, j) of the equations $\\dot y_i = y_j$ that are known to be such."""
        return ()

    @abc.abstractmethod
    def residual(self, t: Time, y: Vector, rate: Vector) -> Vector:
        r"""$F(t, y, \dot y)$, shape (n,)."""

    @abc.abstractmethod
    def evaluate(self, t: Time, y: Vector) -> Point:
        """The point $(t, y)$."""

    @abc.abstractmethod
    def residual_at(self, point: Point, t: Time, y: Vector, rate: Vector) -> Vector:
        """The residual at a point."""

    @abc.abstractmethod
    def linearize(self, t: Time, y: Vector, rate: Vector) -> tuple[Point, Matrix, Matrix]:
        """The point, $M$ and $K$, both (n, n)."""

    @abc.abstractmethod
    def start_rate(self, t: Time, y: Vector) -> Vector:
        r"""$\dot y$ at the start, shape (n,), of least norm where the equations leave it open."""


class ExplicitEquations(AbstractEquations):
    r"""$\dot y - f(t, y) = 0$."""

    f: Callable
    jacobian: Callable | None
    is_singular: ClassVar[bool] = False

    def residual(self, t, y, rate):
        return rate - self.f(t, y)

    def evaluate(self, t, y):
        return self.f(t, y)

    def residual_at(self, point, t, y, rate):
        return rate - point

    def linearize(self, t, y, rate):
        f, J = _value_and_jacobian(self.f, self.jacobian, t, y)
        return f, jnp.eye(y.size, dtype=y.dtype), -J

    def start_rate(self, t, y):
        return self.f(t, y)


class ConstantMassEquations(AbstractEquations):
    r"""$M \dot y - f(t, y) = 0$ with a constant matrix."""

    f: Callable
    jacobian: Callable | None
    M: Matrix
    rates: Pairs = eqx.field(static=True, default=())  # pyright: ignore
    is_singular: ClassVar[bool] = True

    def residual(self, t, y, rate):
        return self.M @ rate - self.f(t, y)

    def evaluate(self, t, y):
        return self.f(t, y)

    def residual_at(self, point, t, y, rate):
        return self.M @ rate - point

    def linearize(self, t, y, rate):
        f, J = _value_and_jacobian(self.f, self.jacobian, t, y)
        return f, self.M, -J

    def start_rate(self, t, y):
        return _least_norm_rate(self.M, self.f(t, y))


class VariableMassEquations(AbstractEquations):
    r"""$M(t, y)\,\dot y - f(t, y) = 0$; `times(t, y, rate)`, the product with $M$."""

    f: Callable
    jacobian: Callable | None
    mass: Callable
    times: Callable
    rates: Pairs = eqx.field(static=True, default=())  # pyright: ignore
    is_singular: ClassVar[bool] = True

    def residual(self, t, y, rate):
        return self.times(t, y, rate) - self.f(t, y)

    def evaluate(self, t, y):
        return self.f(t, y)

    def residual_at(self, point, t, y, rate):
        return self.times(t, y, rate) - point

    def linearize(self, t, y, rate):
        def residual(y):
            f = self.f(t, y) if self.jacobian is None else 0.0
            return self.times(t, y, rate) - f, f

        _, through, f = jax.linearize(residual, y, has_aux=True)
        K = matrix_of(through, y)
        if self.jacobian is not None:
            f, K = self.f(t, y), K - self.jacobian(t, y)
        return f, self.mass(t, y), K

    def start_rate(self, t, y):
        return _least_norm_rate(self.mass(t, y), self.f(t, y))


class ImplicitEquations(AbstractEquations):
    r"""$F(t, y, \dot y) = 0$."""

    F: Callable
    rate: Callable
    is_singular: ClassVar[bool] = True

    def residual(self, t, y, rate):
        return self.F(t, y, rate)

    def evaluate(self, t, y):
        return None

    def residual_at(self, point, t, y, rate):
        return self.F(t, y, rate)

    def linearize(self, t, y, rate):
        _, through = jax.linearize(lambda y, rate: self.F(t, y, rate), y, rate)
        zero = jnp.zeros_like(y)
        M = matrix_of(lambda v: through(zero, v), y)
        return None, M, matrix_of(lambda v: through(v, zero), y)

    def start_rate(self, t, y):
        return self.rate(t, y)


def build_equations(terms: Terms, t: Time, y: Y, args: Args) -> AbstractEquations:
    """The equations of a term, on flattened unknowns.

    What the functions of a term close over becomes part of the result, so that derivatives with
    respect to it are seen.

    **Raises:** `TypeError` for another kind of term, `ValueError` for matrices of a wrong shape.
    """
    term, direction = unwrap(terms)
    if isinstance(term, AbstractEquationsTerm):
        return cast("AbstractEquations", term.equations(t, y, args, direction))
    vector, unravel = flatten(y)
    n, dtype = vector.size, vector.dtype

    def own(x):
        """A time or rate in the term's own direction of time."""
        return apply_direction(direction, x)

    def flat(function):
        def call(t, y):
            return flatten(function(own(t), unravel(y), args))[0].astype(dtype)

        return eqx.filter_closure_convert(call, t, vector)

    def matrix(function, name, factor: int | Array = 1):
        def call(t, y):
            value = jnp.asarray(function(own(t), unravel(y), args), dtype)
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
            product = term.product(own(t), unravel(y), unravel(rate), args)
            return flatten(product)[0].astype(dtype)

        return eqx.filter_closure_convert(call, t, vector, vector)

    if isinstance(term, ImplicitTerm):

        def call(t, y, rate):
            rate = unravel(own(rate))
            return flatten(term.residual(own(t), unravel(y), rate, args))[0]

        F = eqx.filter_closure_convert(call, t, vector, vector)
        return ImplicitEquations(F, _with_direction(flat(term.vf), direction))
    if isinstance(term, AdjointTerm):
        # `diffrax.BacksolveAdjoint`: a rate takes one evaluation, `vf` a whole Jacobian.
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


def _adjoint_rate(term, t, y, args):
    return term.vf_prod(t, y, args, jnp.ones((), jnp.result_type(t)))


def _check_rates(rates, n):
    largest = max((max(pair) for pair in rates), default=0)
    if largest >= n:
        raise ValueError(
            f"`MassMatrixTerm(rates=...)` names the unknown {largest}; there are {n}, from 0."
        )


class _DirectedRate(eqx.Module):
    """A rate of change with respect to time that runs forwards or backwards."""

    function: Callable
    direction: Array

    def __call__(self, t, y):
        return apply_direction(self.direction, self.function(t, y))


def _with_direction(function, direction):
    return function if isinstance(direction, int) else _DirectedRate(function, direction)


def _value_and_jacobian(f, jacobian, t, y):
    if jacobian is not None:
        return f(t, y), jacobian(t, y)
    value, through = jax.linearize(lambda y: f(t, y), y)
    return value, matrix_of(through, y)


def matrix_of(linear: Callable[[Vector], Vector], y: Vector) -> Float[Array, "m n"]:
    """The matrix, (m, n), of a linear map of vectors like `y`, (n,)."""
    unit = jnp.eye(y.size, dtype=y.dtype)
    # In kernels one after another: side by side they would be n times the code.
    return variants(
        kernel=lambda: jax.lax.map(linear, unit).T,
        xla=lambda: jax.vmap(linear, out_axes=1)(unit),
    )


@jax.jit
def _least_norm_rate(M, f):
    r"""The rate of least norm with $M \dot y = f$, as a first guess needs it.

    By iterated regularisation with $\delta$, the root of round-off: errors fall each time by
    $\delta/(\sigma^2 + \delta)$. Here $\sigma$ is the smallest singular value of $M$ but for zeros,
    its rows divided by their largest entries, which the solution does not depend on.
    """
    size = jnp.max(jnp.abs(stop_gradients(M)), axis=1)
    size = jnp.where(size > 0, size, 1.0)
    M, f = M / size[:, None], f / size
    n = len(M)
    delta = jnp.sqrt(jnp.finfo(M.dtype).eps).astype(M.dtype)
    by = inverse(M.T @ M + delta * jnp.eye(n, dtype=M.dtype)) @ M.T
    return jax.lax.fori_loop(0, _ITERATIONS, lambda _, rate: rate + by @ (f - M @ rate), 0.0 * f)


def stop_gradients(tree: T) -> T:
    """A tree of which no derivative is taken."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def step_length(t0: Time, t1: Time, dtype: jnp.dtype) -> Scalar:
    """Length of a step; 1 if it has none, as for a trajectory that waits for others of a batch.

    What is computed then is thrown away, but has to be finite for the sake of derivatives.
    """
    h = t1 - t0
    return jnp.where(h > 0, h, 1.0).astype(dtype)


def index_scaling(exponents: Index, h: Scalar) -> Vector | float:
    r"""Factors $h^{i-1}$ of the errors of unknowns of index $i > 1$, shape (n,); 1 for none.

    **Source:** Hairer-Wanner II, VII.4, p. 484 ff.; the code RADAU5.
    """
    if exponents is None:
        return 1.0
    powers = jnp.stack([jnp.ones_like(h), jnp.ones_like(h), h, h * h])
    return powers[jnp.asarray(exponents)]


def differentiation_index(terms: Terms) -> Index:
    """Index of each unknown, `None` if none is above 1."""
    return getattr(unwrap(terms)[0], "index", None)
