"""Equations of a run together with the linearised equations of a perturbation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...annotations import Args, Scalar, T, Time, Vector, Y
from ...formulations import Charted
from ...private_names import WrapTerm
from ...signals.signal import Piece, Pieces, Signal
from ..base.rate_elimination import Pairs
from ..base.terms import AbstractEquationsTerm, Index, flatten
from ..dae.equations import (
    AbstractEquations,
    build_equations,
    differentiation_index,
    stop_gradients,
)


class Probe(eqx.Module):
    """Unknowns `y` and a tangent `v`, which are integrated together."""

    y: Y
    v: Y


class ProbeState(NamedTuple):
    """State of a `Probed` solver.

    **Attributes:** `inner`, state of the solver for unknowns and probe; `v`, the probe; `drive`,
    size of the perturbation of parameters; `size`, of the probe in the last steps; `error`, sum of
    the relative errors of the probe.
    """

    inner: PyTree[Array]
    v: Y
    drive: Scalar
    size: Scalar
    error: Scalar


@eqx.filter_custom_jvp
def value_and_rate(both: Callable, plain: Callable, *args: Any) -> tuple[PyTree, PyTree]:
    """Return `both(*args)`: the value of `plain(*args)`, and a rate that has no derivatives.

    The value is computed twice in a differentiated run only. The functions close over no arrays.
    """
    return both(*args)


@value_and_rate.def_jvp
def _value_and_rate_jvp(primals: tuple, tangents: tuple):
    both, plain, *args = primals
    value, value_tangent = eqx.filter_jvp(plain, tuple(args), tangents[2:])
    _, rate = both(*args)
    return (value, rate), (value_tangent, jax.tree.map(lambda _: None, rate))


def map_probe(
    solver_state: T, parts: PyTree, function: Callable[[PyTree, Y], tuple[Y, *tuple[Any, ...]]],
    y: Y,
) -> tuple[Any, T]:  # fmt: skip
    """Return `function(parts, y)`, whose first result replaces the unknowns, and the state of a
    solver with its probe, if any, mapped by the derivative of that result.

    The new probe has no derivatives.
    """
    probe = find_probe_state(solver_state)
    if probe is None:
        return function(parts, y), solver_state

    def both(parts, y, v):
        def call(y):
            first, *others = function(parts, y)
            return first, others

        first, rate, others = jax.jvp(call, (y,), (v,), has_aux=True)
        return (first, *others), rate

    out, v = value_and_rate(both, lambda parts, y, v: function(parts, y), parts, y, probe.v)

    def replace(state):
        return state._replace(v=stop_gradients(v)) if _is_state(state) else state

    return out, jax.tree.map(replace, solver_state, is_leaf=_is_state)


def find_probe_state(solver_state: PyTree) -> ProbeState | None:
    """Return the state of a `Probed` solver inside the state of a solver, `None` without one."""
    return next(filter(_is_state, jax.tree.leaves(solver_state, is_leaf=_is_state)), None)


def _is_state(x: Any) -> bool:
    return isinstance(x, ProbeState)


class Perturbed(eqx.Module):
    """Terms and arguments with a perturbation of their marked leaves.

    **Attributes:** `tree`, the terms and arguments; `marks`, which leaves are perturbed, with
    signals as leaves; `drive`, the size of the perturbation.
    """

    tree: PyTree
    marks: tuple[bool, ...] = eqx.field(static=True)
    drive: Scalar

    def tangent(
        self, function: Callable[..., PyTree[Array]], unknowns: T, tangents: T
    ) -> PyTree[Array]:
        """Differentiate `function(tree, unknowns)` in the direction of perturbation and `tangents`.

        The result has derivatives with respect to `tangents` only.
        """
        return self.value_and_tangent(function, unknowns, tangents)[1]

    def value_and_tangent(
        self, function: Callable[..., PyTree[Array]], unknowns: T, tangents: T
    ) -> tuple[PyTree[Array], PyTree[Array]]:
        """Return the value too, which has no derivatives; see `tangent`."""
        leaves, treedef = jax.tree.flatten(self.tree, is_leaf=_is_signal)
        marked = [x for x, mark in zip(leaves, self.marks, strict=True) if mark]
        arrays, rest = eqx.partition(marked, eqx.is_inexact_array)
        arrays = stop_gradients(arrays)
        rates = [_perturbation(x, self.drive) for x in arrays]

        def call(arrays, unknowns):
            new = iter(eqx.combine(arrays, rest))
            pairs = zip(leaves, self.marks, strict=True)
            tree = jax.tree.unflatten(
                treedef, [next(new) if mark else stop_gradients(x) for x, mark in pairs]
            )
            return function(tree, unknowns)

        return jax.jvp(call, (arrays, stop_gradients(unknowns)), (rates, tangents))


class LinearizedField(eqx.Module):
    """Vector field of the unknowns and the probe."""

    perturbed: Perturbed
    is_explicit: bool = eqx.field(static=True)

    def __call__(self, t: Time, both: Probe, args: Args):
        def pair(perturbed, t, y, v):
            return perturbed.value_and_tangent(
                lambda tree, y: tree[0].vf(stop_gradients(t), y, tree[1]), y, v
            )

        def value(perturbed, t, y, _):
            term, args = perturbed.tree
            return term.vf(t, y, args)

        operands = self.perturbed, t, both.y, both.v
        if self.is_explicit:
            return Probe(*value_and_rate(pair, value, *operands))
        # The iteration of implicit methods needs the derivative with respect to the probe.
        return Probe(value(*operands), pair(*operands)[1])


class LinearizedTerm(AbstractEquationsTerm):
    """Equations of a term and linearised equations of a perturbation."""

    term: diffrax.AbstractTerm
    perturbed: Perturbed

    @property
    def index(self) -> Index:
        """Index of the unknowns of the term, followed by that of the probe."""
        index = differentiation_index(self.term)
        return None if index is None else 2 * index

    def vf(self, t: Time, y: Probe, args: Args) -> Probe:
        """Return the vector field of the unknowns, which the equations do not use."""
        return Probe(self.term.vf(t, y.y, args), jax.tree.map(jnp.zeros_like, y.v))

    def equations(
        self, t: Time, y: Probe, args: Args, direction: int | Array
    ) -> "LinearizedEquations":
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
    # As for the unknowns, so that unknowns and probe start in the same way.
    is_singular: bool = eqx.field(static=True)

    @property
    def rates(self) -> Pairs:
        return self.plain.rates

    def residual(self, t: Time, y: Vector, rate: Vector):
        (y, v), (rate, v_rate) = jnp.split(y, 2), jnp.split(rate, 2)

        def pair(equations, t, x, tangents):
            return equations.perturbed.value_and_tangent(
                lambda tree, x: equations.of(tree, t, x[0]).residual(t, *x), x, tangents
            )

        def value(equations, t, x, _):
            return equations.plain.residual(t, *x)

        operands = self, t, (y, rate), (v, v_rate)
        return jnp.concatenate(value_and_rate(pair, value, *operands))

    def evaluate(self, t: Time, y: Vector):
        return self.plain.evaluate(t, jnp.split(y, 2)[0])

    def residual_at(self, point: PyTree, t: Time, y: Vector, rate: Vector):
        return self.residual(t, y, rate)  # The tangent comes with the value.

    def linearize(self, t: Time, y: Vector, rate: Vector):
        point, M, K = self.plain.linearize(t, jnp.split(y, 2)[0], jnp.split(rate, 2)[0])
        double = jax.scipy.linalg.block_diag
        return point, double(M, M), double(K, K)

    def start_rate(self, t: Time, y: Vector):
        y, v = jnp.split(y, 2)

        def start_rate(tree, y):
            return self.of(tree, t, y).start_rate(t, y)

        of_probe = self.perturbed.tangent(start_rate, y, v)
        return jnp.concatenate([self.plain.start_rate(t, y), of_probe])

    def of(self, tree: PyTree, t: Time, y: Vector) -> AbstractEquations:
        """Return the equations of terms and arguments."""
        term, args = tree
        return build_equations(_in_direction(term, self.direction), t, self.unravel(y), args)


def _in_direction(term: diffrax.AbstractTerm, direction: int | Array):
    return term if isinstance(direction, int) else WrapTerm(term, direction)


def _is_signal(x: object):
    return isinstance(x, Signal | Piece | Pieces)


def random_direction(y: Y) -> Y:
    """Return a random direction of the unknowns; references of charts do not change."""
    if isinstance(y, Charted):
        still = jax.tree.map(jnp.zeros_like, y)
        return eqx.tree_at(lambda c: c.values, still, random_direction(y.values))
    leaves, treedef = jax.tree.flatten(y)
    rng = np.random.default_rng(0)
    return jax.tree.unflatten(treedef, [_signs(rng, x) for x in leaves])


def _signs(rng: np.random.Generator, x: Array):
    """Return factors of random sign with absolute values from 0.5 to 1.5."""
    values = rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    return jnp.asarray(values, x.dtype)


def _perturbation(tree: PyTree[Array], drive: Scalar) -> PyTree[Array]:
    """Return a perturbation of the size of the arrays times `drive`, with size 1 for zeros."""
    rng = np.random.default_rng(1)

    def leaf(x):
        if x.size == 0:
            return x
        size = jnp.max(jnp.abs(x))
        size = jnp.where(size > 0, size, 1.0)
        return _signs(rng, x) * (size * drive.astype(x.dtype))

    new = jax.tree.map(leaf, tree)
    if isinstance(tree, Pieces):
        pieces = tuple(_perturbation(piece, drive) for piece in tree.pieces)
        return eqx.tree_at(lambda p: p.pieces, new, pieces)
    if isinstance(tree, Piece):
        return eqx.tree_at(lambda p: p.start, new, jnp.zeros_like(tree.start))
    if isinstance(tree, Signal):
        return eqx.tree_at(lambda s: s.ts, new, jnp.zeros_like(tree.ts))
    return new
