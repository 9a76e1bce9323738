"""Explicit Runge-Kutta methods with their stages written out, or in a loop of few operations."""

import math

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from ...annotations import Args, InterpolationClass, Number, StepResult, Terms, Time, Y
from ...native import trace_without_mesh
from ...signals.signal import with_signals
from ..terms import apply_direction, unwrap
from ..wrappers.after_step import AbstractDelegating


class Unrolled(diffrax.AbstractWrappedSolver):
    r"""An explicit Runge-Kutta solver of diffrax, its loop over stages unrolled.

    diffrax runs the stages in a loop over a buffer, which keeps compilation short for large
    vector fields. The right-hand side of a rigid body is about fifty scalar operations: written
    out, its stages fuse, zeros of the tableau cost nothing, and the reverse pass is straight
    code. Steps, errors and dense output are those of the wrapped solver, to round-off.

    **Arguments:** `solver`, any `diffrax.AbstractERK`.
    **Raises:** `TypeError` for any other solver.
    """

    solver: diffrax.AbstractERK

    def __check_init__(self):
        if not isinstance(self.solver, diffrax.AbstractERK):
            raise TypeError(
                "`Unrolled(solver=...)` takes an explicit Runge-Kutta method of diffrax; got "
                f"{type(self.solver).__name__}."
            )

    @property
    def tableau(self) -> diffrax.ButcherTableau:
        """Tableau of the wrapped solver."""
        tableau = self.solver.tableau
        assert isinstance(tableau, diffrax.ButcherTableau)
        return tableau

    @property
    def scan_kind(self) -> str | None:
        """The wrapped solver's, where diffrax looks for it; not used."""
        return self.solver.scan_kind

    @property
    def term_structure(self) -> type[diffrax.AbstractTerm]:
        return diffrax.AbstractTerm

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> PyTree:
        return self.solver.term_compatible_contr_kwargs

    def order(self, terms) -> int | None:
        return self.solver.order(terms)

    def strong_order(self, terms) -> Number | None:
        return self.solver.strong_order(terms)

    def error_order(self, terms) -> Number | None:
        return self.solver.error_order(terms)

    def func(self, terms, t0, y0, args) -> Y:
        return terms.vf(t0, y0, args)

    def init(self, terms, t0, t1, y0, args) -> PyTree[Array]:
        """First-same-as-last methods carry the last evaluation along; there is none yet."""
        if not self.tableau.fsal:
            return None
        return jnp.array(True), jax.tree.map(jnp.zeros_like, y0)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump) -> StepResult[PyTree]:
        tableau = self.tableau
        dt = t1 - t0
        last = len(tableau.c) - 1
        f = self._first_rate(terms, t0, y0, args, solver_state, made_jump)
        fs = [f]
        y = y0
        for i, (row, c) in enumerate(zip(tableau.a_lower, tableau.c, strict=True)):
            y = _combine(y0, dt, row, fs)
            t = t1 if c == 1 else t0 + float(c) * dt
            if i == last and tableau.ssal and not tableau.fsal:
                break
            fs.append(directed_rate(terms, t, y, args))
        y1 = y if tableau.ssal else _combine(y0, dt, tableau.b_sol, fs)
        error = _combine(None, dt, tableau.b_error, fs)
        k = jax.tree.map(lambda *leaves: dt * jnp.stack(leaves), *fs)
        state = (jnp.array(False), fs[-1]) if tableau.fsal else None
        return y1, error, dict(y0=y0, y1=y1, k=k), state, diffrax.RESULTS.successful

    def _first_rate(self, terms, t0, y0, args, solver_state, made_jump):
        """The field at the start of a step."""
        if solver_state is None or made_jump is True:
            return directed_rate(terms, t0, y0, args)
        first, f = solver_state
        fresh = first | made_jump
        return jax.lax.cond(fresh, lambda: directed_rate(terms, t0, y0, args), lambda: f)


class StageLoop(Unrolled):
    """An explicit Runge-Kutta solver of diffrax whose stages are a loop over a table of rates.

    diffrax's own loop can skip the first stage and serves several kinds of terms; what that takes
    is kept in variables of the loop, and costs a native kernel for tangents several times as much
    as the stages do. Arguments and results as of `Unrolled`.
    """

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump) -> StepResult[PyTree]:
        tableau, (start, tree) = self.tableau, ravel_pytree(y0)
        dt, count = jnp.asarray(t1 - t0, start.dtype), len(tableau.c) + 1
        weights = np.zeros((count, count))
        for i, row in enumerate(tableau.a_lower):
            weights[i + 1, : len(row)] = row
        weights, nodes = (
            jnp.asarray(weights, start.dtype),
            jnp.asarray(tableau.c, jnp.result_type(t0)),
        )
        first = self._first_rate(terms, t0, y0, args, solver_state, made_jump)

        def stage(i, rates):
            c = nodes[i - 1]
            # No error of round-off at the end of the step.
            t = jnp.where(c == 1, t1, t0 + c * (t1 - t0))
            y = tree(start + dt * (weights[i] @ rates))
            new = ravel_pytree(directed_rate(terms, t, y, args))[0]
            return jax.lax.dynamic_update_index_in_dim(rates, new, i, 0)

        rates = jnp.zeros((count, start.size), start.dtype).at[0].set(ravel_pytree(first)[0])
        # The last stage of others is the end of the step.
        needed = count - 1 if tableau.ssal and not tableau.fsal else count
        rates = jax.lax.fori_loop(1, needed, stage, rates)
        b, b_error = (jnp.asarray(x, start.dtype) for x in (tableau.b_sol, tableau.b_error))
        y1, error = tree(start + dt * (b @ rates)), tree(dt * (b_error @ rates))
        state = (jnp.array(False), tree(rates[-1])) if tableau.fsal else None
        dense = dict(y0=y0, y1=y1, k=jax.vmap(tree)(dt * rates))
        return y1, error, dense, state, diffrax.RESULTS.successful


def directed_rate(terms: Terms, t: Time, y: Y, args: Args) -> Y:
    """The vector field of a term as a rate in the direction of integration."""
    _, direction = unwrap(terms)
    field = terms.vf(t, y, args)
    return jax.tree.map(lambda f: apply_direction(direction, f), field)


# XLA takes longer to compile the written-out stages of more stages or of a field of more numbers
# than they save. Fields of one rigid body compute about 400 numbers, those of two without joints
# 500, those of a double pendulum 1,700.
MAX_STAGES, MAX_ELEMENTS = 7, 600
# Numbers of all stages together up to which kernels write them out.
_MAX_UNROLLED_ELEMENTS = 8_000


def is_small_field(terms: Terms, t: Time, y: Y, args: Args) -> bool:
    """Whether the vector field computes so few numbers that XLA gains by written-out stages."""
    return count_field_elements(terms, t, y, args) <= MAX_ELEMENTS


def count_field_elements(terms: Terms, t: Time, y: Y, args: Args) -> int:
    """Numbers that the vector field computes."""
    # A step finds the pieces of signals once.
    terms = with_signals(terms, lambda signal: signal.piece(t))
    return _count_elements(trace_without_mesh(lambda t, y: terms.vf(t, y, args), t, y).jaxpr)


def _count_elements(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        inner = [getattr(p, "jaxpr", p) for p in equation.params.values()]
        inner = [p for p in inner if hasattr(p, "eqns")]
        sizes = (math.prod(var.aval.shape) for var in equation.outvars)
        total += sum(map(_count_elements, inner)) if inner else sum(sizes)
    return total


def unroll_stages(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """`solver` with its stages written out, also inside the wrappers of this package.

    Any other solver, and one with many stages, comes back as it is.
    """

    def form(inner, stages):
        return Unrolled(inner) if stages <= MAX_STAGES else inner

    return _map_runge_kutta(solver, form)


def native_form(solver: diffrax.AbstractSolver, numbers: int) -> diffrax.AbstractSolver:
    """`solver` in the form that kernels are fastest with, for a field of that many numbers."""

    def form(inner, stages):
        return (Unrolled if is_unrolled(stages, numbers) else StageLoop)(inner)

    return _map_runge_kutta(solver, form)


def is_unrolled(stages: int, numbers: int) -> bool:
    """Whether kernels write out the stages of a field of that many numbers."""
    return stages * numbers <= _MAX_UNROLLED_ELEMENTS


def _map_runge_kutta(solver, form):
    """`solver`, the Runge-Kutta method inside of its wrappers as `form(method, stages)` has it."""
    if isinstance(solver, AbstractDelegating):
        inner = _map_runge_kutta(solver.solver, form)
        return eqx.tree_at(lambda s: s.solver, solver, inner)
    tableau = getattr(solver, "tableau", None)
    is_method = isinstance(solver, diffrax.AbstractERK) and not isinstance(solver, Unrolled)
    if is_method and isinstance(tableau, diffrax.ButcherTableau):
        return form(solver, len(tableau.c) + 1)
    return solver


def set_stage_loop(
    solver: diffrax.AbstractSolver, scan_kind: str = "lax"
) -> diffrax.AbstractSolver:
    """`solver` whose loop over stages serves forward mode, or with `"bounded"` both modes.

    diffrax does that itself, but for solvers inside of more than one wrapper.
    """
    # diffrax takes a `HalfSolver` for an instance of the class of the solver inside.
    if isinstance(solver, diffrax.AbstractWrappedSolver):
        return eqx.tree_at(lambda s: s.solver, solver, set_stage_loop(solver.solver, scan_kind))
    if isinstance(solver, diffrax.AbstractRungeKutta) and solver.scan_kind is None:
        return eqx.tree_at(lambda s: s.scan_kind, solver, scan_kind, is_leaf=lambda x: x is None)
    return solver


def _combine(y: Y, dt: Time, weights: np.ndarray, fs: list[Y]) -> Y:
    """`y + dt * sum(weights * fs)`, leaf by leaf, without the zeros among the weights."""
    used = [(float(w), f) for w, f in zip(weights, fs, strict=True) if w != 0]

    def leaf(*leaves):
        total = sum(w * f for (w, _), f in zip(used, leaves, strict=True))
        return dt * total

    increment = jax.tree.map(leaf, *(f for _, f in used))
    if y is None:
        return increment
    return jax.tree.map(lambda a, b: a + b, y, increment)
