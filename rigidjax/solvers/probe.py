r"""Step sizes at which derivatives of a run are as accurate as the run.

The error of a step says nothing of the error of its derivatives: at an equilibrium the first is
zero at any step size. So a run that is differentiated carries one tangent of its motion along, the
probe: a perturbation $v$ with $\dot v = f_y v + f_\theta\,\delta\theta$ that starts in a random
direction of everything that is differentiated, states and parameters alike. A step is accepted if
the errors of both are within the tolerance, that of the probe relative to its size. One probe in
general position contains every mode of the linearised motion, so that it serves all tangents and
cotangents.

Derivatives do not pass through the probe: it chooses steps, and nothing else.

**Source:** the staggered error control of sensitivities in Hindmarsh et al., SUNDIALS (2005), 3.2;
the random direction instead of all sensitivities is our own.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from diffrax._term import WrapTerm
from jaxtyping import Array, PyTree

from ..annotations import (
    Count,
    InterpolationClass,
    Norm,
    Number,
    Past,
    Repeated,
    Scalar,
    Stepped,
    T,
    Terms,
    Y,
)
from ..formulations import Charted
from ..signal import Piece, Signal, with_signals
from .after_step import AbstractDelegating
from .dae.base import AbstractDAESolver, AbstractProposingSolver
from .dae.bdf.bdf import BDF, BDFState
from .dae.equations import AbstractEquations, equations, frozen, index_of
from .dae.extrapolation import Odex
from .dae.radau.radau import AbstractRadau
from .linear import Twice
from .probe_state import Probe, ProbeState
from .rate_elimination import Pairs
from .terms import AbstractDAETerm, AbstractEquationsTerm, MassMatrixTerm, flattened, unwrapped

# Errors of a component of the probe are relative to its size plus this part of the size of all.
_FLOOR = 0.3
# Local errors of the probe may be so many times the tolerance, and of methods that choose their
# order as well so many times.
_SHARE, _SHARE_OF_PROPOSED = 8.0, 4.0
# Of a probe that starts with parameters alone: a little of every motion, relative to the rest.
_TRACE = 1e-3
# How far the size of the probe of the last steps counts: where all of it passes through zero in
# coordinates and is large in rates, say, errors are relative to the larger size.
_MEMORY = 0.9
# The probe is rescaled if its size has changed by this factor.
_RANGE = 16.0


class ProbeNorm(eqx.Module):
    """The larger of the norms of the unknowns and, with more tolerance, of the probe."""

    norm: Norm
    share: float = eqx.field(static=True)

    def __call__(self, tree: Probe) -> Scalar:
        return jnp.maximum(self.norm(tree.y), self.norm(tree.v) / self.share)


class Probed(AbstractDelegating):
    """A solver that carries a probe along and includes its error in that of the step.

    **Arguments:** `solver`, any diffrax solver of an `ODETerm`, a `MassMatrixTerm` or an
    `ImplicitTerm`; `rtol`, `atol`, `norm`, of its controller; `moves_start`, whether the probe
    starts in a direction of the unknowns; `marks`, which leaves of terms and arguments it perturbs,
    signals as one leaf.
    """

    solver: diffrax.AbstractSolver
    rtol: Number
    atol: Number
    norm: Norm
    moves_start: bool = eqx.field(static=True)
    marks: tuple[bool, ...] = eqx.field(static=True)

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    @property
    def _size(self) -> Array:
        """Of the probe, at which `atol` is `_FLOOR` of its tolerance."""
        ratio = jnp.asarray(self.atol) / jnp.where(self.rtol > 0, self.rtol, 1.0)
        return jnp.where((self.rtol > 0) & (ratio > 0), ratio, 1.0) / _FLOOR

    def init(self, terms, t0, t1, y0, args) -> ProbeState:
        """The probe in its random direction."""
        size = self._size
        part = 1.0 if self.moves_start else _TRACE
        size = frozen(size)
        v = jax.tree.map(lambda y, r: r * (part * size).astype(y.dtype), y0, _directions(y0))
        dtype = jnp.result_type(*jax.tree.leaves(y0))
        size = jnp.asarray(size, dtype)
        inner = self.pair.init(self._linearized(terms, args, size), t0, t1, Probe(y0, v), args)
        zero = jnp.zeros((), dtype)
        return ProbeState(inner, v, size, zero, zero)

    def step(
        self, terms, t0, t1, y0, args, solver_state: ProbeState, made_jump
    ) -> Stepped[ProbeState]:
        """A step with the probe."""
        state, v0 = solver_state, frozen(solver_state.v)
        # Derivatives pass through the step as it is repeated, of the unknowns alone; those of a
        # method with a history through its state.
        exact = isinstance(self.solver, AbstractDAESolver) and not isinstance(self.solver, BDF)
        given = terms, t0, t1, y0, args, state.inner
        given = frozen(given) if exact else given
        both, error, dense, inner, result = self._step_of_both(given, state, made_jump)
        y1, v = both.y, frozen(both.v)
        if exact:
            found = _first_half(self.inner.found(state.inner, inner), v)
            none = None, None
            y1, dense, _ = self.inner.repeated(terms, t0, t1, y0, args, none, found, made_jump)
        now = jnp.maximum(self.norm(v0), self.norm(v))
        size = frozen(jnp.maximum(now, _MEMORY * state.size)).astype(state.size.dtype)
        if error is not None:
            error, relative = self._error(y0, both.y, v0, v, size, error)
            state = state._replace(error=state.error + relative)
        state = self._rescaled(state._replace(inner=inner, v=v, size=size))
        return y1, error, _of_unknowns(dense), state, result

    def _step_of_both(self, given, state, made_jump):
        terms, t0, t1, y0, args, before = given
        both = Probe(y0, frozen(state.v))
        terms = self._linearized(terms, args, state.drive)
        return self.pair.step(terms, t0, t1, both, args, before, made_jump)

    def past(self, solver_state) -> Past:
        """That of the unknowns."""
        values, lengths = self.inner.past(solver_state.inner)
        return _first_half(values, solver_state.v), lengths

    def found(self, before, after) -> PyTree[Array]:
        """What the step of the unknowns had to find out."""
        return _first_half(self.inner.found(before.inner, after.inner), after.v)

    def repeated(self, terms, t0, t1, y0, args, past, found, made_jump) -> Repeated:
        return self.inner.repeated(terms, t0, t1, y0, args, past, found, made_jump)

    def evaluations(self, solver_state) -> Count:
        """Evaluations of the equations in the last attempted step."""
        return self.solver.evaluations(solver_state.inner)  # pyright: ignore[reportAttributeAccessIssue]

    def _error(self, y0, y1, v0, v1, size, error):
        """The error for the controller, and that of the probe relative to its size."""
        tolerance = jnp.where(self.rtol > 0, self.rtol, self.atol)
        if isinstance(self.solver, AbstractProposingSolver):
            # The step it proposes is for both already.
            return error.y, (_SHARE_OF_PROPOSED * tolerance).astype(size.dtype)
        ones = jax.tree.map(jnp.ones_like, y0)
        tiny = jnp.finfo(size.dtype).tiny

        def relative(e, v0, v1):
            whole = jnp.maximum(jnp.abs(v0), jnp.abs(v1)) + _FLOOR * size.astype(e.dtype)
            return e / (whole + tiny)

        def scale(y0, y1):
            return self.atol + self.rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))

        of_probe = self.norm(jax.tree.map(relative, error.v, v0, v1))
        scales = jax.tree.map(scale, y0, y1)
        of_motion = self.norm(jax.tree.map(lambda e, s: e / s, error.y, scales))
        share = of_probe / (_SHARE * tolerance)
        # A probe that is not finite says nothing: the derivatives are not finite either.
        larger = jnp.isfinite(share) & (share > of_motion)
        as_much = share / self.norm(ones)
        error = jax.tree.map(
            lambda e, s: jnp.where(larger, s * as_much.astype(e.dtype), e), error.y, scales
        )
        return frozen(error), frozen(of_probe).astype(size.dtype)

    def _rescaled(self, state):
        """The state with the probe rescaled if it has become too large or too small."""
        target, size = frozen(self._size).astype(state.size.dtype), state.size
        usable = jnp.isfinite(size) & (size > 0)
        away = usable & ((size > _RANGE * target) | (size * _RANGE < target))
        factor = jnp.where(away, target / jnp.where(usable, size, 1.0), 1.0)
        return state._replace(
            inner=_scaled_probe(state.inner, factor),
            v=jax.tree.map(lambda v: v * factor.astype(v.dtype), state.v),
            drive=state.drive * factor,
            size=size * factor,
        )

    @property
    def pair(self) -> Any:
        """The solver of unknowns and probe together."""
        solver, finder = self.solver, getattr(self.solver, "root_finder", None)
        if finder is not None and hasattr(finder, "norm"):
            share = _SHARE_OF_PROPOSED if isinstance(solver, AbstractProposingSolver) else _SHARE
            norm = ProbeNorm(finder.norm, share)
            solver = eqx.tree_at(lambda s: s.root_finder.norm, solver, norm)
        if not isinstance(solver, AbstractDAESolver) or isinstance(solver, Odex):
            return solver
        return eqx.tree_at(lambda s: s.linear_solver, solver, Twice(solver.linear_solver))  # pyright: ignore

    def _linearized(self, terms, args, drive) -> Terms:
        term, _ = unwrapped(terms)
        perturbed = Perturbed((term, args), self.marks, frozen(drive))
        new: Any
        if isinstance(self.solver, AbstractRadau | BDF):
            new = LinearizedTerm(term, perturbed)
        else:
            explicit = not isinstance(self.solver, diffrax.AbstractImplicitSolver)
            new = diffrax.ODETerm(_Linearized(term, perturbed, explicit))
            if isinstance(term, MassMatrixTerm):
                mass = jnp.asarray(term.mass)
                double = jax.scipy.linalg.block_diag(mass, mass)
                new = MassMatrixTerm(vector_field=new.vector_field, mass=double, check_start=False)
        return WrapTerm(new, terms.direction) if isinstance(terms, WrapTerm) else new


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
        arrays = frozen(arrays)
        rates = [_perturbation(x, self.drive) for x in arrays]

        def call(arrays, unknowns):
            new = iter(eqx.combine(arrays, rest))
            pairs = zip(leaves, self.marks, strict=True)
            tree = jax.tree.unflatten(
                treedef, [next(new) if mark else frozen(x) for x, mark in pairs]
            )
            return function(tree, unknowns)

        return jax.jvp(call, (arrays, frozen(unknowns)), (rates, tangents))[1]


class _Linearized(eqx.Module):
    """The vector field of unknowns and probe."""

    term: diffrax.AbstractTerm
    perturbed: Perturbed
    apart: bool = eqx.field(static=True)

    def __call__(self, t, both, args):
        rate = self.perturbed.tangent(
            lambda tree, y: tree[0].vf(frozen(t), y, tree[1]), both.y, both.v
        )
        # Implicit methods take the derivative by the probe for their iteration.
        rate = frozen(rate) if self.apart else rate
        return Probe(self.term.vf(t, both.y, args), rate)


class LinearizedTerm(AbstractEquationsTerm):
    """The equations of a term and the linearised ones of a perturbation."""

    term: diffrax.AbstractTerm
    perturbed: Perturbed

    index: ClassVar[None] = None

    def vf(self, t, y, args) -> Probe:
        """The field of the unknowns; the equations are not made of it."""
        return Probe(self.term.vf(t, y.y, args), jax.tree.map(jnp.zeros_like, y.v))

    def equations(self, t, y, args, direction) -> "LinearizedEquations":
        plain = equations(_in_direction(self.term, direction), t, y.y, args)
        return LinearizedEquations(
            plain=plain,
            perturbed=self.perturbed,
            unravel=flattened(y.y)[1],
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
        return self.at(point, t, y, rate)

    def evaluate(self, t, y):
        return self.plain.evaluate(t, jnp.split(y, 2)[0])

    def at(self, point, t, y, rate):
        (y, v), (rate, v_rate) = jnp.split(y, 2), jnp.split(rate, 2)

        def residual(tree, x):
            return self._equations(tree, t, x[0]).residual(t, *x)

        of_probe = self.perturbed.tangent(residual, (y, rate), (v, v_rate))
        return jnp.concatenate([self.plain.at(point, t, y, rate), of_probe])

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
        return equations(_in_direction(term, self.direction), t, self.unravel(y), args)


def _in_direction(term, direction):
    return term if isinstance(direction, int) else WrapTerm(term, direction)


def _is_law(x):
    return isinstance(x, Signal | Piece)


def _directions(y: Y) -> Y:
    """A random direction for each unknown; the references of charts do not move."""
    if isinstance(y, Charted):
        still = jax.tree.map(jnp.zeros_like, y)
        return eqx.tree_at(lambda c: c.values, still, _directions(y.values))
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


def _of_unknowns(dense):
    """Dense information of the unknowns from that of both."""
    is_probe = lambda x: isinstance(x, Probe)  # noqa: E731
    return jax.tree.map(lambda x: x.y if is_probe(x) else x, dense, is_leaf=is_probe)


def _first_half(tree, v):
    """Arrays of the unknowns from those of unknowns and probe, flattened and side by side."""
    n = flattened(v)[0].size

    def leaf(x):
        return x[..., :n] if x.ndim > 0 and x.shape[-1] == 2 * n else x

    return jax.tree.map(leaf, tree)


def probed(kwargs: dict[str, PyTree], wanted: dict[str, PyTree]) -> dict[str, PyTree]:
    """Arguments of a loop whose steps are as accurate for its derivatives as for itself.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `wanted`, alike, `True` for the arrays by
    which it is differentiated.
    **Returns:** the arguments with another solver and its state; the same for steps of a fixed
    length, for steps that are given, for equations of index 2 and 3, and for structure-preserving
    methods.
    """
    controller, state = kwargs["stepsize_controller"], kwargs["init_state"]
    tolerances = _tolerances(controller)
    term, _ = unwrapped(kwargs["terms"])
    known = isinstance(term, diffrax.ODETerm | AbstractDAETerm)
    # Of index 2 and 3 a random direction is none that the constraints allow.
    if tolerances is None or not known or index_of(term) is not None:
        return kwargs
    marks = with_signals(
        (wanted["terms"], wanted["args"]), lambda signal: any(jax.tree.leaves(signal))
    )
    marks = (unwrapped(marks[0])[0], marks[1])
    marks = tuple(mark is True for mark in jax.tree.leaves(marks))
    of_start = any(x is True for x in jax.tree.leaves(wanted["init_state"].y))
    moves_start = of_start or not any(marks)
    rtol, atol, norm = tolerances
    solver = _inside(
        kwargs["solver"], lambda solver: Probed(solver, rtol, atol, norm, moves_start, marks)
    )
    solver_state = solver.init(kwargs["terms"], state.tprev, state.tnext, state.y, kwargs["args"])
    state = eqx.tree_at(lambda s: s.solver_state, state, solver_state, is_leaf=lambda x: x is None)
    return {**kwargs, "solver": solver, "init_state": state}


def _tolerances(controller):
    """Tolerances and norm of an adaptive controller, also inside of others."""
    while controller is not None:
        names = ("rtol", "atol", "norm")
        if all(hasattr(controller, name) for name in names):
            return tuple(getattr(controller, name) for name in names)
        controller = getattr(controller, "controller", None)
    return None


def _inside(solver, replace):
    if isinstance(solver, AbstractDelegating):
        return eqx.tree_at(lambda s: s.solver, solver, _inside(solver.solver, replace))
    return replace(solver)


def _scaled_probe(inner, factor):
    """The state of a solver with its parts of the probe scaled."""
    if isinstance(inner, BDFState):
        phi = inner.past.phi
        of_probe = jnp.arange(phi.shape[1]) >= phi.shape[1] // 2
        phi = phi * jnp.where(of_probe, factor, 1.0).astype(phi.dtype)[None]
        return eqx.tree_at(lambda s: s.past.phi, inner, phi)

    def is_probe(x):
        return isinstance(x, Probe)

    def scaled(x):
        if not is_probe(x):
            return x
        return Probe(x.y, jax.tree.map(lambda v: v * factor.astype(v.dtype), x.v))

    return jax.tree.map(scaled, inner, is_leaf=is_probe)


def probe_state(solver_state: PyTree) -> ProbeState | None:
    """The state of the `Probed` solver inside of a solver's state, `None` without one."""

    def is_state(x):
        return isinstance(x, ProbeState)

    states = filter(is_state, jax.tree.leaves(solver_state, is_leaf=is_state))
    return next(states, None)
