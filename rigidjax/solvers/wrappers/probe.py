r"""Step sizes at which the derivatives of a run are as accurate as the run.

The error of a step does not bound the error of its derivatives: at an equilibrium the former is
zero for every step size. A differentiated run therefore integrates one tangent, the probe: a
perturbation $v$ with $\dot v = f_y v + f_\theta\,\delta\theta$ in a random direction of everything
that the run is differentiated with respect to, initial values and parameters. A step is accepted if
the errors of both the unknowns and the probe are within the tolerance, where that of the probe is
relative to its size. A probe in general position contains every mode of the linearised motion, so
that one probe controls the errors of all tangents and cotangents.

Derivatives do not pass through the probe, which chooses steps only.

**Source:** the staggered error control of sensitivities in Hindmarsh et al., SUNDIALS (2005), 3.2.
The random direction instead of all sensitivities is new.
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
from jaxtyping import Array, PyTree

from ...annotations import (
    Args,
    Count,
    DenseInfo,
    History,
    Norm,
    Number,
    ReplayResult,
    Scalar,
    StepResult,
    Terms,
    Time,
    Y,
)
from ...private_names import WrapTerm
from ...signals.signal import with_signals
from ..base.hooked import AbstractDelegating
from ..base.linear import RepeatedBlock
from ..base.replayable import Start
from ..base.terms import AbstractDAETerm, MassMatrixTerm, apply_direction, flatten, unwrap
from ..dae.base import AbstractDAESolver, AbstractProposingSolver
from ..dae.equations import differentiation_index, stop_gradients
from .perturbed import (
    LinearizedField,
    LinearizedTerm,
    Perturbed,
    Probe,
    ProbeState,
    random_direction,
)

# Errors of a component of the probe are relative to its size plus this fraction of the whole size.
_RELATIVE_FLOOR = 0.3
# Largest local error of the probe in units of the tolerance; the second value is for methods that
# choose their order too.
_ALLOWED_ERROR, _ALLOWED_ERROR_OF_PROPOSED = 8.0, 4.0
# Initial relative size of the probe in a run that is differentiated in parameters only. It is not
# zero, so that every mode is excited.
_SMALL_START = 1e-3
# The size of the probe is its largest size in recent steps, which decays by this factor per step:
# the probe may pass through zero in positions where its velocities are large.
_SIZE_DECAY = 0.9
# The probe is rescaled if its size has changed by this factor.
_SIZE_RANGE = 16.0
_NO_PROBE = (
    "The steps of this run are chosen by the error of the motion alone, and its derivatives may be "
    "wrong near an equilibrium: unknowns have an index above 1. Give `{}(consistent=...)`, a "
    "function that moves unknowns onto the constraints, or accept this by "
    "`rj.AnyMode(controls_derivatives=False)`."
)


class ProbeNorm(eqx.Module):
    """Maximum of the norm of the unknowns and of that of the probe divided by `share`."""

    norm: Norm
    share: float = eqx.field(static=True)

    def __call__(self, tree: Probe) -> Scalar:
        return jnp.maximum(self.norm(tree.y), self.norm(tree.v) / self.share)


class Probed(AbstractDelegating):
    """A wrapper that integrates a probe and includes its error in that of the step.

    **Arguments:** `solver`, any diffrax solver of an `ODETerm`, a `MassMatrixTerm` or an
    `ImplicitTerm`; `rtol`, `atol`, `norm`, of its controller; `moves_start`, whether the probe
    perturbs the initial unknowns; `marks`, which leaves of terms and arguments it perturbs, with
    signals as leaves.
    """

    solver: diffrax.AbstractSolver
    rtol: Number
    atol: Number
    norm: Norm
    moves_start: bool = eqx.field(static=True)
    marks: tuple[bool, ...] = eqx.field(static=True)

    @property
    def _size(self) -> Array:
        """Size of the probe at which `atol` corresponds to the floor of its relative error."""
        ratio = jnp.asarray(self.atol) / jnp.where(self.rtol > 0, self.rtol, 1.0)
        return jnp.where((self.rtol > 0) & (ratio > 0), ratio, 1.0) / _RELATIVE_FLOOR

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> ProbeState:
        """Return the initial state with the probe in a random direction."""
        size = self._size
        part = 1.0 if self.moves_start else _SMALL_START
        size = stop_gradients(size)
        v = jax.tree.map(lambda y, r: r * (part * size).astype(y.dtype), y0, random_direction(y0))
        dtype = jnp.result_type(*jax.tree.leaves(y0))
        size = jnp.asarray(size, dtype)
        term, direction = unwrap(terms)
        if differentiation_index(term) is not None:
            t = apply_direction(direction, jnp.asarray(t0))
            v = self._perturb(term, args, size).tangent(
                lambda tree, y: tree[0].consistent(t, y, tree[1]), y0, v
            )
        inner = self.pair.init(
            self._linearized_terms(terms, args, size), t0, t1, Probe(y0, v), args
        )
        zero = jnp.zeros((), dtype)
        return ProbeState(inner, v, size, zero, zero)

    def make_step(self, start: Start) -> StepResult[ProbeState]:
        """Make a step of the unknowns and the probe."""
        y0, state = start.y, start.memory
        v0 = stop_gradients(state.v)
        # Derivatives pass through the replayed step of the unknowns alone. For a multistep
        # method they pass through its state.
        solver = self.solver
        exact = isinstance(solver, AbstractDAESolver) and not solver.is_multistep
        own = start._replace(memory=state.inner)
        both, error, dense, inner, result = self._step_pair(
            stop_gradients(own) if exact else own, state
        )
        y1, v = both.y, stop_gradients(both.v)
        if exact:
            step_record = _first_half(self.inner.step_record(state.inner, inner), v)
            y1, dense, _ = self.inner.replay(start._replace(memory=(None, None)), step_record)
        differential = _zero_multipliers(start.terms, y0)
        now = jnp.maximum(self.norm(differential(v0)), self.norm(differential(v)))
        size = stop_gradients(jnp.maximum(now, _SIZE_DECAY * state.size)).astype(state.size.dtype)
        if error is not None:
            error = Probe(error.y, differential(error.v))
            error, relative = self._combined_error(y0, both.y, v0, v, size, error)
            state = state._replace(error=state.error + relative)
        state = self._rescale_probe(state._replace(inner=inner, v=v, size=size))
        return y1, error, _select_unknowns(dense), state, result

    def _step_pair(self, start: Start, state: ProbeState):
        _, terms, t0, t1, y0, args, made_jump, before = start
        both = Probe(y0, stop_gradients(state.v))
        terms = self._linearized_terms(terms, args, state.drive)
        return self.pair.step(terms, t0, t1, both, args, before, made_jump)

    def history(self, solver_state: PyTree) -> History:
        """Return the history of the unknowns."""
        values, lengths = self.inner.history(solver_state.inner)
        return _first_half(values, solver_state.v), lengths

    def step_record(self, before: PyTree, after: PyTree) -> PyTree[Array]:
        """Return the step record of the unknowns."""
        return _first_half(self.inner.step_record(before.inner, after.inner), after.v)

    def replay(self, start: Start, step_record: PyTree[Array]) -> ReplayResult:
        return self.inner.replay(start, step_record)

    def evaluations(self, solver_state: PyTree) -> Count:
        """Count the evaluations of the equations in the last attempted step."""
        return self.solver.evaluations(solver_state.inner)  # pyright: ignore[reportAttributeAccessIssue]

    def _combined_error(self, y0: Y, y1: Y, v0: Y, v1: Y, size: Scalar, error: Probe):
        """Return the error for the controller, and the error of the probe relative to its size."""
        tolerance = jnp.where(self.rtol > 0, self.rtol, self.atol)
        if isinstance(self.solver, AbstractProposingSolver):
            # The proposed step takes both into account.
            return error.y, (_ALLOWED_ERROR_OF_PROPOSED * tolerance).astype(size.dtype)
        ones = jax.tree.map(jnp.ones_like, y0)
        tiny = jnp.finfo(size.dtype).tiny

        def relative(e, v0, v1):
            reference = jnp.maximum(jnp.abs(v0), jnp.abs(v1)) + _RELATIVE_FLOOR * size.astype(
                e.dtype
            )
            return e / (reference + tiny)

        def scale(y0, y1):
            return self.atol + self.rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))

        of_probe = self.norm(jax.tree.map(relative, error.v, v0, v1))
        scales = jax.tree.map(scale, y0, y1)
        of_motion = self.norm(jax.tree.map(lambda e, s: e / s, error.y, scales))
        share = of_probe / (_ALLOWED_ERROR * tolerance)
        # A probe that is not finite does not reject steps: the derivatives are not finite either.
        larger = jnp.isfinite(share) & (share > of_motion)
        scaled_share = share / self.norm(ones)
        error = jax.tree.map(
            lambda e, s: jnp.where(larger, s * scaled_share.astype(e.dtype), e), error.y, scales
        )
        return stop_gradients(error), stop_gradients(of_probe).astype(size.dtype)

    def _rescale_probe(self, state: ProbeState):
        """Rescale a probe that has become too large or too small."""
        target, size = stop_gradients(self._size).astype(state.size.dtype), state.size
        usable = jnp.isfinite(size) & (size > 0)
        away = usable & ((size > _SIZE_RANGE * target) | (size * _SIZE_RANGE < target))
        factor = jnp.where(away, target / jnp.where(usable, size, 1.0), 1.0)
        return state._replace(
            inner=_scale_probe(state.inner, factor),
            v=jax.tree.map(lambda v: v * factor.astype(v.dtype), state.v),
            drive=state.drive * factor,
            size=size * factor,
        )

    @property
    def pair(self) -> Any:
        """Solver of the unknowns and the probe together."""
        solver, finder = self.solver, getattr(self.solver, "root_finder", None)
        if finder is not None and hasattr(finder, "norm"):
            share = (
                _ALLOWED_ERROR_OF_PROPOSED
                if isinstance(solver, AbstractProposingSolver)
                else _ALLOWED_ERROR
            )
            norm = ProbeNorm(finder.norm, share)
            solver = eqx.tree_at(lambda s: s.root_finder.norm, solver, norm)
            if isinstance(solver, AbstractDAESolver) and solver.probe_patience is not None:
                patient = dataclasses.replace(solver.root_finder, patience=solver.probe_patience)
                solver = eqx.tree_at(lambda s: s.root_finder, solver, patient)
        if not (isinstance(solver, AbstractDAESolver) and hasattr(solver, "linear_solver")):
            return solver
        return eqx.tree_at(lambda s: s.linear_solver, solver, RepeatedBlock(solver.linear_solver))  # pyright: ignore

    def _perturb(self, term: diffrax.AbstractTerm, args: Args, drive: Scalar) -> Perturbed:
        return Perturbed((term, args), self.marks, stop_gradients(drive))

    def _linearized_terms(self, terms: Terms, args: Args, drive: Scalar) -> Terms:
        term, _ = unwrap(terms)
        perturbed = self._perturb(term, args, drive)
        new: Any
        if getattr(self.solver, "takes_residuals", False):
            new = LinearizedTerm(term=term, perturbed=perturbed)  # pyright: ignore[reportCallIssue]
        else:
            explicit = not isinstance(self.solver, diffrax.AbstractImplicitSolver)
            new = diffrax.ODETerm(LinearizedField(perturbed, explicit))
            if isinstance(term, MassMatrixTerm):
                mass = jnp.asarray(term.mass)
                double = jax.scipy.linalg.block_diag(mass, mass)
                new = MassMatrixTerm(vector_field=new.vector_field, mass=double, check_start=False)
        return WrapTerm(new, terms.direction) if isinstance(terms, WrapTerm) else new


def _zero_multipliers(terms: Terms, y: Y) -> Callable[[Y], Y]:
    """Return a function that sets unknowns of the largest index, the multipliers, to zero."""
    index, (_, unravel) = differentiation_index(terms), flatten(y)
    if index is None:
        return lambda v: v
    is_differential = np.asarray(index) < max(index)
    return lambda v: unravel(jnp.where(is_differential, flatten(v)[0], 0.0))


def _select_unknowns(dense: DenseInfo):
    """Select the dense information of the unknowns from that of unknowns and probe."""
    is_probe = lambda x: isinstance(x, Probe)  # noqa: E731
    return jax.tree.map(lambda x: x.y if is_probe(x) else x, dense, is_leaf=is_probe)


def _first_half(tree: PyTree, v: Y):
    """Select the first half of arrays of flattened unknowns followed by the probe."""
    n = flatten(v)[0].size

    def leaf(x):
        return x[..., :n] if x.ndim > 0 and x.shape[-1] == 2 * n else x

    return jax.tree.map(leaf, tree)


def with_probe(kwargs: dict[str, PyTree], wanted: dict[str, PyTree]) -> dict[str, PyTree]:
    """Wrap the solver of a loop in `Probed`, so that steps are accurate for derivatives too.

    The arguments are returned unchanged for fixed steps, for given steps, for
    structure-preserving methods, and, with a warning, for unknowns of index 2 and 3 without
    `consistent`.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `wanted`, a tree like `kwargs`, `True` for
    the arrays that the loop is differentiated with respect to.
    **Returns:** the arguments with the new solver and its state.
    """
    controller, state = kwargs["stepsize_controller"], kwargs["init_state"]
    tolerances = _tolerances(controller)
    term, _ = unwrap(kwargs["terms"])
    is_supported = isinstance(term, diffrax.ODETerm | AbstractDAETerm)
    if tolerances is None or not is_supported:
        return kwargs
    if differentiation_index(term) is not None and getattr(term, "consistent", None) is None:
        # A random direction violates the constraints.
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
    solver = _replace_innermost(
        kwargs["solver"], lambda solver: Probed(solver, rtol, atol, norm, moves_start, marks)
    )
    solver_state = solver.init(kwargs["terms"], state.tprev, state.tnext, state.y, kwargs["args"])
    state = eqx.tree_at(lambda s: s.solver_state, state, solver_state, is_leaf=lambda x: x is None)
    return {**kwargs, "solver": solver, "init_state": state}


def _tolerances(controller: PyTree):
    """Return the tolerances and the norm of an adaptive controller, which may be nested."""
    while controller is not None:
        names = ("rtol", "atol", "norm")
        if all(hasattr(controller, name) for name in names):
            return tuple(getattr(controller, name) for name in names)
        controller = getattr(controller, "controller", None)
    return None


def _replace_innermost(
    solver: diffrax.AbstractSolver,
    replace: Callable[[diffrax.AbstractSolver], diffrax.AbstractSolver],
):
    if isinstance(solver, AbstractDelegating):
        return eqx.tree_at(lambda s: s.solver, solver, _replace_innermost(solver.solver, replace))
    return replace(solver)


def _scale_probe(inner: PyTree[Array], factor: Scalar):
    """Scale the probe in the state of a solver."""
    if hasattr(inner, "history"):  # of a multistep method
        phi = inner.history.phi
        of_probe = jnp.arange(phi.shape[1]) >= phi.shape[1] // 2
        phi = phi * jnp.where(of_probe, factor, 1.0).astype(phi.dtype)[None]
        return eqx.tree_at(lambda s: s.history.phi, inner, phi)

    def is_probe(x):
        return isinstance(x, Probe)

    def scale_leaf(x):
        if not is_probe(x):
            return x
        return Probe(x.y, jax.tree.map(lambda v: v * factor.astype(v.dtype), x.v))

    return jax.tree.map(scale_leaf, inner, is_leaf=is_probe)
