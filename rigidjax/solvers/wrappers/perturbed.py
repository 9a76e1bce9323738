"""The equations of a run together with those of a perturbation of it, linearised."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from diffrax._term import WrapTerm
from jaxtyping import Array, PyTree

from ...annotations import Scalar, T, Y
from ...formulations import Charted
from ...signals.signal import Piece, Signal
from ..dae.equations import (
    AbstractEquations,
    build_equations,
    differentiation_index,
    stop_gradients,
)
from ..rate_elimination import Pairs
from ..terms import AbstractEquationsTerm, Index, flatten
from .probe_state import Probe


class Perturbed(eqx.Module):
    """Terms and arguments with a perturbation of their marked leaves."""

    tree: PyTree
    marks: tuple[bool, ...] = eqx.field(static=True)
    drive: Scalar

    def tangent(self, function, unknowns: T, tangents: T) -> PyTree[Array]:
        """Derivative of `function(tree, unknowns)`, none of it differentiated once more but by
        `tangents`."""
        leaves, treedef = jax.tree.flatten(self.tree, is_leaf=_is_law)
        moved = [x for x, mark in zip(leaves, self.marks, strict=True) if mark]
        arrays, rest = eqx.partition(moved, eqx.is_inexact_array)
        arrays = stop_gradients(arrays)
        rates = [_perturbation(x, self.drive) for x in arrays]

        def call(arrays, unknowns):
            new = iter(eqx.combine(arrays, rest))
            pairs = zip(leaves, self.marks, strict=True)
            tree = jax.tree.unflatten(
                treedef, [next(new) if mark else stop_gradients(x) for x, mark in pairs]
            )
            return function(tree, unknowns)

        return jax.jvp(call, (arrays, stop_gradients(unknowns)), (rates, tangents))[1]


class LinearizedField(eqx.Module):
    """The vector field of unknowns and probe."""

    term: diffrax.AbstractTerm
    perturbed: Perturbed
    apart: bool = eqx.field(static=True)

    def __call__(self, t, both, args):
        rate = self.perturbed.tangent(
            lambda tree, y: tree[0].vf(stop_gradients(t), y, tree[1]), both.y, both.v
        )
        # Implicit methods take the derivative by the probe for their iteration.
        rate = stop_gradients(rate) if self.apart else rate
        return Probe(self.term.vf(t, both.y, args), rate)


class LinearizedTerm(AbstractEquationsTerm):
    """The equations of a term and the linearised ones of a perturbation."""

    term: diffrax.AbstractTerm
    perturbed: Perturbed

    @property
    def index(self) -> Index:
        """That of the term, twice."""
        index = differentiation_index(self.term)
        return None if index is None else 2 * index

    def vf(self, t, y, args) -> Probe:
        """The field of the unknowns; the equations are not made of it."""
        return Probe(self.term.vf(t, y.y, args), jax.tree.map(jnp.zeros_like, y.v))

    def equations(self, t, y, args, direction) -> "LinearizedEquations":
        plain = build_equations(_in_direction(self.term, direction), t, y.y, args)
        return LinearizedEquations(
            plain=plain,
            perturbed=self.perturbed,
            unravel=flatten(y.y)[1],
            direction=direction,
            is_singular=plain.is_singular,
        )


class LinearizedEquations(AbstractEquations):
    r"""$F = 0$ and its derivative in the direction of a perturbation, side by side."""

    plain: AbstractEquations
    perturbed: Perturbed
    unravel: Callable[[Array], Y] = eqx.field(static=True)
    direction: int | Array
    is_singular: bool = eqx.field(static=True)  # as those of the unknowns, so that both start alike

    @property
    def rates(self) -> Pairs:
        return self.plain.rates

    def residual(self, t, y, rate):
        point = self.plain.evaluate(t, jnp.split(y, 2)[0])
        return self.residual_at(point, t, y, rate)

    def evaluate(self, t, y):
        return self.plain.evaluate(t, jnp.split(y, 2)[0])

    def residual_at(self, point, t, y, rate):
        (y, v), (rate, v_rate) = jnp.split(y, 2), jnp.split(rate, 2)

        def residual(tree, x):
            return self._equations(tree, t, x[0]).residual(t, *x)

        of_probe = self.perturbed.tangent(residual, (y, rate), (v, v_rate))
        return jnp.concatenate([self.plain.residual_at(point, t, y, rate), of_probe])

    def linearize(self, t, y, rate):
        point, M, K = self.plain.linearize(t, jnp.split(y, 2)[0], jnp.split(rate, 2)[0])
        double = jax.scipy.linalg.block_diag
        return point, double(M, M), double(K, K)

    def start_rate(self, t, y):
        y, v = jnp.split(y, 2)

        def start_rate(tree, y):
            return self._equations(tree, t, y).start_rate(t, y)

        of_probe = self.perturbed.tangent(start_rate, y, v)
        return jnp.concatenate([self.plain.start_rate(t, y), of_probe])

    def _equations(self, tree, t, y):
        term, args = tree
        return build_equations(_in_direction(term, self.direction), t, self.unravel(y), args)


def _in_direction(term, direction):
    return term if isinstance(direction, int) else WrapTerm(term, direction)


def _is_law(x):
    return isinstance(x, Signal | Piece)


def random_direction(y: Y) -> Y:
    """A random direction for each unknown; the references of charts do not move."""
    if isinstance(y, Charted):
        still = jax.tree.map(jnp.zeros_like, y)
        return eqx.tree_at(lambda c: c.values, still, random_direction(y.values))
    leaves, treedef = jax.tree.flatten(y)
    rng = np.random.default_rng(0)
    return jax.tree.unflatten(treedef, [_signs(rng, x) for x in leaves])


def _signs(rng, x):
    """Factors of random sign, of size 0.5 to 1.5."""
    values = rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    return jnp.asarray(values, x.dtype)


def _perturbation(tree: PyTree[Array], drive: Scalar) -> PyTree[Array]:
    """A perturbation of the size of the arrays themselves, of 1 where these are zero."""
    rng = np.random.default_rng(1)

    def leaf(x):
        if x.size == 0:
            return x
        size = jnp.max(jnp.abs(x))
        size = jnp.where(size > 0, size, 1.0)
        return _signs(rng, x) * (size * drive.astype(x.dtype))

    new = jax.tree.map(leaf, tree)
    if isinstance(tree, Piece):
        return eqx.tree_at(lambda p: p.start, new, jnp.zeros_like(tree.start))
    if isinstance(tree, Signal):
        return eqx.tree_at(lambda s: s.ts, new, jnp.zeros_like(tree.ts))
    return new
