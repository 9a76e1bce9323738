r"""Step sizes at which derivatives of a run are as accurate as the run.

The error of a step says nothing of the error of its derivatives: at an equilibrium the first is
zero at any step size. So a run that is differentiated carries one tangent of its motion along, the
probe: a perturbation $v$ with $\dot v = f_y v + f_\theta\,\delta\theta$ that starts in a random
direction of what is differentiated, states and parameters alike. A step is accepted if the errors
of both are within the tolerance, that of the probe relative to its size. One probe in general
position contains every mode of the linearised motion, so that it serves all tangents and
cotangents.

Derivatives do not pass through the probe: it chooses steps, and nothing else.

**Source:** the staggered error control of sensitivities in Hindmarsh et al., SUNDIALS (2005), 3.2;
the random direction in the place of all sensitivities is our own.
"""

from typing import Any

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
from .dae.equations import frozen
from .probe_state import Probe, ProbeState
from .terms import AbstractDAETerm, ImplicitTerm, MassMatrixTerm, flattened, unwrapped

# Errors of a component of the probe are relative to its size plus this part of the size of all.
_FLOOR = 0.3
# Local errors of the probe may be so many times the tolerance, and of methods that choose their
# order as well so many times.
_SHARE, _SHARE_OF_PROPOSED = 8.0, 2.0
# Of a probe that starts with parameters alone: a little of every motion, relative to the rest.
_TRACE = 1e-3
# How far the size of the probe of the last steps counts: where all of it passes through zero in
# coordinates and is large in rates, say, errors are relative to the larger size.
_MEMORY = 0.9
# The probe is rescaled if its size has changed by this factor; later in methods with a history,
# which start again then.
_RANGE, _RANGE_OF_HISTORY = 16.0, 1e5


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
    def _size(self) -> Number:
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
        inner = self.solver.init(self._linearized(terms, args, size), t0, t1, Probe(y0, v), args)
        zero = jnp.zeros((), dtype)
        return ProbeState(inner, v, size, zero, jnp.array(False), zero)

    def step(
        self, terms, t0, t1, y0, args, solver_state: ProbeState, made_jump
    ) -> Stepped[ProbeState]:
        """A step with the probe."""
        state = solver_state
        v0 = frozen(state.v)
        # A plain `True` leaves nothing to evaluate again but in methods with a history.
        history = isinstance(self.solver, AbstractDAESolver)
        jump = state.rescaled if made_jump is True and history else made_jump | state.rescaled
        both, error, dense, inner, result = self.solver.step(
            self._linearized(terms, args, state.drive), t0, t1, Probe(y0, v0), args, state.inner,
            True if made_jump is True and not history else jump,
        )  # fmt: skip
        v = frozen(both.v)
        size = jnp.maximum(jnp.maximum(self.norm(v0), self.norm(v)), _MEMORY * state.size)
        size = size.astype(state.size.dtype)
        if error is not None:
            error, relative = self._error(y0, both.y, v0, v, size, error)
            state = state._replace(error=state.error + relative)
        state = self._rescaled(state._replace(inner=inner, size=frozen(size)), v)
        return both.y, error, _of_unknowns(dense), state, result

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
        return self.solver.evaluations(solver_state.inner)  # pyright: ignore

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

    def _rescaled(self, state, v):
        """The state with the probe rescaled if it has become too large or too small."""
        target, size = frozen(self._size).astype(state.size.dtype), state.size
        usable = jnp.isfinite(size) & (size > 0)
        most = _RANGE_OF_HISTORY if isinstance(self.solver, AbstractProposingSolver) else _RANGE
        away = usable & ((size > most * target) | (size * most < target))
        factor = jnp.where(away, target / jnp.where(usable, size, 1.0), 1.0)
        return state._replace(
            v=jax.tree.map(lambda v: v * factor.astype(v.dtype), v),
            drive=state.drive * factor,
            size=size * factor,
            rescaled=away,
        )

    def _linearized(self, terms, args, drive) -> Terms:
        term, _ = unwrapped(terms)
        implicit = isinstance(self.solver, diffrax.AbstractImplicitSolver)
        perturbed = Perturbed((term, args), self.marks, frozen(drive))
        new: Any
        if isinstance(term, AbstractDAETerm):
            new = _implicit_term(term, perturbed)
        else:
            new = diffrax.ODETerm(_Linearized(term, perturbed, not implicit))
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


def _implicit_term(term, perturbed):
    """The linearised equations of a term, with those of the unknowns."""

    def residual_of(term, args, t, y, rate):
        if isinstance(term, ImplicitTerm):
            return term.residual(t, y, rate, args)
        assert isinstance(term, MassMatrixTerm)
        vector, unravel = flattened(rate)
        if term.product is None:
            product = unravel(term.mass_matrix(t, y, args) @ vector)
        else:
            product = term.product(t, y, rate, args)
        return jax.tree.map(lambda a, b: a - b, product, term.vf(t, y, args))

    def residual(t, both, rate, args):
        of_probe = perturbed.tangent(
            lambda tree, x: residual_of(*tree, frozen(t), *x), (both.y, rate.y), (both.v, rate.v)
        )
        return Probe(residual_of(term, args, t, both.y, rate.y), of_probe)

    index = None if term.index is None else 2 * term.index
    return ImplicitTerm(residual, index, None, None, False)


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
    length, for steps that are given, and for structure-preserving methods.
    """
    controller, state = kwargs["stepsize_controller"], kwargs["init_state"]
    tolerances = _tolerances(controller)
    term, _ = unwrapped(kwargs["terms"])
    if tolerances is None or not isinstance(term, diffrax.ODETerm | AbstractDAETerm):
        return kwargs
    marks = with_signals(
        (wanted["terms"], wanted["args"]), lambda signal: any(jax.tree.leaves(signal))
    )
    marks = (unwrapped(marks[0])[0], marks[1])
    marks = tuple(mark is True for mark in jax.tree.leaves(marks))
    of_start = any(x is True for x in jax.tree.leaves(wanted["init_state"].y))
    moves_start = of_start or not any(marks)
    solver = _inside(
        kwargs["solver"], lambda solver: Probed(_two(solver), *tolerances, moves_start, marks)
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


def _two(solver):
    """The solver with a norm for unknowns and probe."""
    finder = getattr(solver, "root_finder", None)
    if finder is None or not hasattr(finder, "norm"):
        return solver
    share = _SHARE_OF_PROPOSED if isinstance(solver, AbstractProposingSolver) else _SHARE
    return eqx.tree_at(lambda s: s.root_finder.norm, solver, ProbeNorm(finder.norm, share))


def probe_state(solver_state: PyTree) -> ProbeState | None:
    """The state of the `Probed` solver inside of a solver's state, `None` without one."""

    def is_state(x):
        return isinstance(x, ProbeState)

    states = filter(is_state, jax.tree.leaves(solver_state, is_leaf=is_state))
    return next(states, None)
