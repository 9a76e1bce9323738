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

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from diffrax._term import WrapTerm
from jaxtyping import Array, PyTree

from ...annotations import (
    Count,
    History,
    InterpolationClass,
    Norm,
    Number,
    ReplayResult,
    Scalar,
    StepResult,
    Terms,
    Y,
)
from ...signals.signal import with_signals
from ..dae.base import AbstractDAESolver, AbstractProposingSolver
from ..dae.bdf.bdf import BDF, BDFState
from ..dae.equations import differentiation_index, stop_gradients
from ..dae.extrapolation import Odex
from ..dae.radau.radau import AbstractRadau
from ..linear import RepeatedBlock
from ..terms import AbstractDAETerm, MassMatrixTerm, apply_direction, flatten, unwrap
from .after_step import AbstractDelegating
from .perturbed import LinearizedField, LinearizedTerm, Perturbed, random_direction
from .probe_state import Probe, ProbeState

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
_NO_PROBE = (
    "The steps of this run are chosen by the error of the motion alone, and its derivatives may be "
    "wrong near an equilibrium: unknowns have an index above 1. Give `{}(consistent=...)`, a "
    "function that moves unknowns onto the constraints, or accept this by "
    "`rj.AnyMode(controls_derivatives=False)`."
)


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
        size = stop_gradients(size)
        v = jax.tree.map(lambda y, r: r * (part * size).astype(y.dtype), y0, random_direction(y0))
        dtype = jnp.result_type(*jax.tree.leaves(y0))
        size = jnp.asarray(size, dtype)
        term, direction = unwrap(terms)
        if differentiation_index(term) is not None:
            t = apply_direction(direction, jnp.asarray(t0))
            v = self._perturbed(term, args, size).tangent(
                lambda tree, y: tree[0].consistent(t, y, tree[1]), y0, v
            )
        inner = self.pair.init(self._linearized(terms, args, size), t0, t1, Probe(y0, v), args)
        zero = jnp.zeros((), dtype)
        return ProbeState(inner, v, size, zero, zero)

    def step(
        self, terms, t0, t1, y0, args, solver_state: ProbeState, made_jump
    ) -> StepResult[ProbeState]:
        """A step with the probe."""
        state, v0 = solver_state, stop_gradients(solver_state.v)
        # Derivatives pass through the step as it is repeated, of the unknowns alone; those of a
        # method with a history through its state.
        exact = isinstance(self.solver, AbstractDAESolver) and not isinstance(self.solver, BDF)
        given = terms, t0, t1, y0, args, state.inner
        given = stop_gradients(given) if exact else given
        both, error, dense, inner, result = self._step_of_both(given, state, made_jump)
        y1, v = both.y, stop_gradients(both.v)
        if exact:
            step_record = _first_half(self.inner.step_record(state.inner, inner), v)
            none = None, None
            y1, dense, _ = self.inner.replay(terms, t0, t1, y0, args, none, step_record, made_jump)
        differential = _differential(terms, y0)
        now = jnp.maximum(self.norm(differential(v0)), self.norm(differential(v)))
        size = stop_gradients(jnp.maximum(now, _MEMORY * state.size)).astype(state.size.dtype)
        if error is not None:
            error = Probe(error.y, differential(error.v))
            error, relative = self._error(y0, both.y, v0, v, size, error)
            state = state._replace(error=state.error + relative)
        state = self._rescaled(state._replace(inner=inner, v=v, size=size))
        return y1, error, _of_unknowns(dense), state, result

    def _step_of_both(self, given, state, made_jump):
        terms, t0, t1, y0, args, before = given
        both = Probe(y0, stop_gradients(state.v))
        terms = self._linearized(terms, args, state.drive)
        return self.pair.step(terms, t0, t1, both, args, before, made_jump)

    def history(self, solver_state) -> History:
        """That of the unknowns."""
        values, lengths = self.inner.history(solver_state.inner)
        return _first_half(values, solver_state.v), lengths

    def step_record(self, before, after) -> PyTree[Array]:
        """What the step of the unknowns had to find out."""
        return _first_half(self.inner.step_record(before.inner, after.inner), after.v)

    def replay(self, terms, t0, t1, y0, args, history, step_record, made_jump) -> ReplayResult:
        return self.inner.replay(terms, t0, t1, y0, args, history, step_record, made_jump)

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
        return stop_gradients(error), stop_gradients(of_probe).astype(size.dtype)

    def _rescaled(self, state):
        """The state with the probe rescaled if it has become too large or too small."""
        target, size = stop_gradients(self._size).astype(state.size.dtype), state.size
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
            if isinstance(solver, AbstractRadau):
                # The first iterate of the probe is computed where the step starts; at index 3 its
                # error in the constraints is as large as the step's motion.
                patient = dataclasses.replace(solver.root_finder, patience=2)
                solver = eqx.tree_at(lambda s: s.root_finder, solver, patient)
        if not isinstance(solver, AbstractDAESolver) or isinstance(solver, Odex):
            return solver
        return eqx.tree_at(lambda s: s.linear_solver, solver, RepeatedBlock(solver.linear_solver))  # pyright: ignore

    def _perturbed(self, term, args, drive) -> Perturbed:
        return Perturbed((term, args), self.marks, stop_gradients(drive))

    def _linearized(self, terms, args, drive) -> Terms:
        term, _ = unwrap(terms)
        perturbed = self._perturbed(term, args, drive)
        new: Any
        if isinstance(self.solver, AbstractRadau | BDF):
            new = LinearizedTerm(term=term, perturbed=perturbed)  # pyright: ignore[reportCallIssue]
        else:
            explicit = not isinstance(self.solver, diffrax.AbstractImplicitSolver)
            new = diffrax.ODETerm(LinearizedField(term, perturbed, explicit))
            if isinstance(term, MassMatrixTerm):
                mass = jnp.asarray(term.mass)
                double = jax.scipy.linalg.block_diag(mass, mass)
                new = MassMatrixTerm(vector_field=new.vector_field, mass=double, check_start=False)
        return WrapTerm(new, terms.direction) if isinstance(terms, WrapTerm) else new


def _differential(terms: Terms, y: Y) -> Callable[[Y], Y]:
    """Return a function that sets unknowns of the largest index, the multipliers, to zero."""
    index, (_, unravel) = differentiation_index(terms), flatten(y)
    if index is None:
        return lambda v: v
    kept = np.asarray(index) < max(index)
    return lambda v: unravel(jnp.where(kept, flatten(v)[0], 0.0))


def _of_unknowns(dense):
    """Dense information of the unknowns from that of both."""
    is_probe = lambda x: isinstance(x, Probe)  # noqa: E731
    return jax.tree.map(lambda x: x.y if is_probe(x) else x, dense, is_leaf=is_probe)


def _first_half(tree, v):
    """Arrays of the unknowns from those of unknowns and probe, flattened and side by side."""
    n = flatten(v)[0].size

    def leaf(x):
        return x[..., :n] if x.ndim > 0 and x.shape[-1] == 2 * n else x

    return jax.tree.map(leaf, tree)


def probed(kwargs: dict[str, PyTree], wanted: dict[str, PyTree]) -> dict[str, PyTree]:
    """Arguments of a loop whose steps are as accurate for its derivatives as for itself.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `wanted`, alike, `True` for the arrays by
    which it is differentiated.
    **Returns:** the arguments with another solver and its state; the same for steps of a fixed
    length, for steps that are given and for structure-preserving methods; for unknowns of index
    2 and 3 without `consistent`, with a warning.
    """
    controller, state = kwargs["stepsize_controller"], kwargs["init_state"]
    tolerances = _tolerances(controller)
    term, _ = unwrap(kwargs["terms"])
    known = isinstance(term, diffrax.ODETerm | AbstractDAETerm)
    if tolerances is None or not known:
        return kwargs
    if differentiation_index(term) is not None and getattr(term, "consistent", None) is None:
        # The constraints do not allow a random direction.
        warnings.warn(_NO_PROBE.format(type(term).__name__), stacklevel=2)
        return kwargs
    marks = with_signals(
        (wanted["terms"], wanted["args"]), lambda signal: any(jax.tree.leaves(signal))
    )
    marks = (unwrap(marks[0])[0], marks[1])
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
        phi = inner.history.phi
        of_probe = jnp.arange(phi.shape[1]) >= phi.shape[1] // 2
        phi = phi * jnp.where(of_probe, factor, 1.0).astype(phi.dtype)[None]
        return eqx.tree_at(lambda s: s.history.phi, inner, phi)

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
