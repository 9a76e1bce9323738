"""Explicit Runge-Kutta methods with unrolled stages, or with a plain loop over stages."""

import math
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from ...annotations import Args, Jump, StepResult, Terms, Time, Y
from ...native import trace_without_mesh
from ...signals.shared_tables import freeze_signals
from ..base.hooked import AbstractDelegating, DelegatedProperties
from ..base.replayable import Start
from ..base.terms import apply_direction, unwrap


class Unrolled(DelegatedProperties):
    r"""An explicit Runge-Kutta solver of diffrax, its loop over stages unrolled.

    diffrax runs the stages in a loop over a buffer, which keeps compilation short for large
    vector fields. For a small vector field, such as that of one rigid body, unrolled stages are
    faster: operations of successive stages can be fused, zeros of the tableau cost nothing, and
    the reverse pass has no loop. Steps, errors and dense output agree with those of the wrapped
    solver to round-off.

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
        """Butcher tableau of the wrapped solver."""
        tableau = self.solver.tableau
        assert isinstance(tableau, diffrax.ButcherTableau)
        return tableau

    @property
    def term_structure(self) -> type[diffrax.AbstractTerm]:
        return diffrax.AbstractTerm

    def func(self, terms: Terms, t0: Time, y0: Y, args: Args) -> Y:
        return terms.vf(t0, y0, args)

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> PyTree[Array]:
        """Return the state of a first-same-as-last method, with no rate yet; `None` for others."""
        if not self.tableau.fsal:
            return None
        return jnp.array(True), jax.tree.map(jnp.zeros_like, y0)

    def make_step(self, start: Start) -> StepResult[PyTree]:
        _, terms, t0, t1, y0, args, made_jump, solver_state = start
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

    def _first_rate(
        self,
        terms: Terms,
        t0: Time,
        y0: Y,
        args: Args,
        solver_state: PyTree[Array],
        made_jump: Jump,
    ):
        """Return the rate at the start of a step, reused from the last step where possible."""
        if solver_state is None or made_jump is True:
            return directed_rate(terms, t0, y0, args)
        first, f = solver_state
        fresh = first | made_jump
        return jax.lax.cond(fresh, lambda: directed_rate(terms, t0, y0, args), lambda: f)


class StageLoop(Unrolled):
    """An explicit Runge-Kutta solver of diffrax with a plain loop over a table of rates.

    diffrax's loop can skip the first stage and accepts several kinds of terms. The variables that
    it carries for this purpose make forward derivatives several times as expensive with the native
    backend. Arguments and results are those of `Unrolled`.
    """

    def make_step(self, start: Start) -> StepResult[PyTree]:
        _, terms, t0, t1, y0, args, made_jump, solver_state = start
        tableau, (y, tree) = self.tableau, ravel_pytree(y0)
        dt, count = jnp.asarray(t1 - t0, y.dtype), len(tableau.c) + 1
        weights = np.zeros((count, count))
        for i, row in enumerate(tableau.a_lower):
            weights[i + 1, : len(row)] = row
        weights, nodes = (
            jnp.asarray(weights, y.dtype),
            jnp.asarray([0.0, *tableau.c], jnp.result_type(t0)),
        )

        def stage(i, rates):
            c = nodes[i]
            # The end of the step is hit exactly, without round-off.
            t = jnp.where(c == 1, t1, t0 + c * (t1 - t0))
            stage_y = tree(y + dt * (weights[i] @ rates))
            new = ravel_pytree(directed_rate(terms, t, stage_y, args))[0]
            return jax.lax.dynamic_update_index_in_dim(rates, new, i, 0)

        rates, begin = jnp.zeros((count, y.size), y.dtype), 0
        if solver_state is not None and made_jump is not True:
            first = self._first_rate(terms, t0, y0, args, solver_state, made_jump)
            rates, begin = rates.at[0].set(ravel_pytree(first)[0]), 1
        # Without first-same-as-last, the last stage of an `ssal` method is not evaluated: its
        # unknowns are the end of the step.
        evaluated = count - 1 if tableau.ssal and not tableau.fsal else count
        rates = jax.lax.fori_loop(begin, evaluated, stage, rates)
        b, b_error = (jnp.asarray(x, y.dtype) for x in (tableau.b_sol, tableau.b_error))
        y1, error = tree(y + dt * (b @ rates)), tree(dt * (b_error @ rates))
        state = (jnp.array(False), tree(rates[-1])) if tableau.fsal else None
        dense = dict(y0=y0, y1=y1, k=jax.vmap(tree)(dt * rates))
        return y1, error, dense, state, diffrax.RESULTS.successful


def directed_rate(terms: Terms, t: Time, y: Y, args: Args) -> Y:
    """Return the vector field of a term as a rate in the direction of integration."""
    _, direction = unwrap(terms)
    field = terms.vf(t, y, args)
    return jax.tree.map(lambda f: apply_direction(direction, f), field)


# Unrolling more stages, or a vector field with more array elements, lengthens compilation by JAX by
# more than it saves at run time. The field of one rigid body has about 400 elements, that of a
# double pendulum 670.
MAX_STAGES, MAX_ELEMENTS = 7, 600
# Largest numbers of elements of a field, and of all its stages, that the native backend unrolls.
# One body has up to 525; derivatives of two (533), unrolled, take twice as long to compile and run.
_MAX_UNROLLED_FIELD, _MAX_UNROLLED_ELEMENTS = 530, 8_000


def is_small_field(terms: Terms, t: Time, y: Y, args: Args) -> bool:
    """Return whether the vector field is small enough for unrolled stages to save time."""
    return measure_field(terms, t, y, args).elements <= MAX_ELEMENTS


class FieldSize(NamedTuple):
    """Number of array elements that a vector field computes, and whether it has control flow."""

    elements: int
    has_control_flow: bool


def measure_field(terms: Terms, t: Time, y: Y, args: Args) -> FieldSize:
    """Return the size of the vector field."""
    # Signals are looked up once per step, not in every stage: they do not count.
    terms = freeze_signals(terms, t)
    jaxpr = trace_without_mesh(lambda t, y: terms.vf(t, y, args), t, y).jaxpr
    return FieldSize(_count_elements(jaxpr), _has_control_flow(jaxpr))


def _has_control_flow(jaxpr: Jaxpr) -> bool:
    return any(
        equation.primitive.name in ("cond", "while", "scan")
        or any(map(_has_control_flow, _inner_jaxprs(equation)))
        for equation in jaxpr.eqns
    )


def _inner_jaxprs(equation: JaxprEqn) -> list[Jaxpr]:
    inner = [getattr(p, "jaxpr", p) for p in equation.params.values()]
    return [p for p in inner if hasattr(p, "eqns")]


def _count_elements(jaxpr: Jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        inner = _inner_jaxprs(equation)
        sizes = (math.prod(var.aval.shape) for var in equation.outvars)  # pyright: ignore
        total += sum(map(_count_elements, inner)) if inner else sum(sizes)
    return total


def unroll_stages(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """Return `solver` with unrolled stages, also inside the wrappers of this package.

    A solver with many stages, or of another kind, is returned unchanged.
    """

    def form(inner, stages):
        return Unrolled(inner) if stages <= MAX_STAGES else inner

    return _map_runge_kutta(solver, form)


def native_form(
    solver: diffrax.AbstractSolver, size: FieldSize, use: str = "batch"
) -> diffrax.AbstractSolver:
    """Return `solver` in the form that is fastest with the native backend.

    **Arguments:** `solver`; `size` of the vector field; `use`, `"single"` or `"batch"` for values
    of one run or many, `"forward"` or `"reverse"` for derivatives.
    """
    # Copies of branches and loops gain little from each other, and take long to compile.
    most = {"batch": None, "forward": MAX_STAGES}.get(use, 0) if size.has_control_flow else None

    def form(inner, stages):
        unrolled = is_unrolled(stages, size.elements) and (most is None or stages <= most)
        return (Unrolled if unrolled else StageLoop)(inner)

    return _map_runge_kutta(solver, form)


def is_unrolled(stages: int, elements: int) -> bool:
    """Return whether stages of a field with that many elements are unrolled in native runs."""
    return elements <= _MAX_UNROLLED_FIELD and stages * elements <= _MAX_UNROLLED_ELEMENTS


def _map_runge_kutta(
    solver: diffrax.AbstractSolver,
    form: Callable[[diffrax.AbstractERK, int], diffrax.AbstractSolver],
):
    """Replace the explicit Runge-Kutta method inside `solver` by `form(method, stages)`."""
    if isinstance(solver, AbstractDelegating):
        inner = _map_runge_kutta(solver.solver, form)
        return eqx.tree_at(lambda s: s.solver, solver, inner)
    tableau = getattr(solver, "tableau", None)
    is_method = isinstance(solver, diffrax.AbstractERK) and not isinstance(solver, Unrolled)
    if is_method and isinstance(tableau, diffrax.ButcherTableau):
        return form(solver, len(tableau.c) + 1)  # pyright: ignore[reportArgumentType]
    return solver


def loop_over_stages(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """Return `solver` with a plain loop over the stages of its explicit Runge-Kutta method."""
    return _map_runge_kutta(solver, lambda inner, stages: StageLoop(inner))


def set_stage_loop(
    solver: diffrax.AbstractSolver, scan_kind: str = "lax"
) -> diffrax.AbstractSolver:
    """Return `solver` with the loop over stages for forward mode, or for both modes (`"bounded"`).

    diffrax does the same, but not for a solver inside more than one wrapper.
    """
    # Wrappers first: `isinstance` counts a `HalfSolver` as an instance of the class inside it.
    if isinstance(solver, diffrax.AbstractWrappedSolver):
        return eqx.tree_at(lambda s: s.solver, solver, set_stage_loop(solver.solver, scan_kind))
    if isinstance(solver, diffrax.AbstractRungeKutta) and solver.scan_kind is None:
        return eqx.tree_at(lambda s: s.scan_kind, solver, scan_kind, is_leaf=lambda x: x is None)
    return solver


def _combine(y: Y, dt: Time, weights: np.ndarray, fs: list[Y]) -> Y:
    """Return `y + dt * sum(weights * fs)`, leaf by leaf, without the terms of zero weight."""
    used = [(float(w), f) for w, f in zip(weights, fs, strict=True) if w != 0]

    def leaf(*leaves):
        total = sum(w * f for (w, _), f in zip(used, leaves, strict=True))
        return dt * total

    increment = jax.tree.map(leaf, *(f for _, f in used))
    if y is None:
        return increment
    return jax.tree.map(lambda a, b: a + b, y, increment)
