"""Explicit Runge-Kutta methods with their stages written out."""

import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..signal import with_signals
from .after_step import AbstractDelegating
from .terms import unwrapped


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
    def scan_kind(self) -> Any:
        """The wrapped solver's, where diffrax looks for it; not used."""
        return self.solver.scan_kind

    @property
    def term_structure(self) -> Any:
        """Structure of the terms."""
        return diffrax.AbstractTerm

    @property
    def interpolation_cls(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Dense output of the wrapped solver."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        """As the wrapped solver."""
        return self.solver.term_compatible_contr_kwargs

    def order(self, terms: Any) -> int | None:
        """Order of the wrapped solver."""
        return self.solver.order(terms)

    def strong_order(self, terms: Any) -> Any:
        """Strong order of the wrapped solver."""
        return self.solver.strong_order(terms)

    def error_order(self, terms: Any) -> Any:
        """Order of the error estimate of the wrapped solver."""
        return self.solver.error_order(terms)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """Vector field at a point."""
        return terms.vf(t0, y0, args)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """First-same-as-last methods carry the last evaluation along; there is none yet."""
        if not self.tableau.fsal:
            return None
        return jnp.array(True), jax.tree.map(jnp.zeros_like, y0)

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Any,
        args: Any,
        solver_state: Any,
        made_jump: Any,
    ) -> tuple[Any, Any, Any, Any, diffrax.RESULTS]:
        """One step from `t0` to `t1`."""
        tableau = self.tableau
        dt = t1 - t0
        last = len(tableau.c) - 1
        if solver_state is None or made_jump is True:
            f = rate(terms, t0, y0, args)
        else:
            first, f = solver_state
            fresh = first | made_jump
            f = jax.lax.cond(fresh, lambda: rate(terms, t0, y0, args), lambda: f)
        fs = [f]
        y = y0
        for i, (row, c) in enumerate(zip(tableau.a_lower, tableau.c, strict=True)):
            y = _combine(y0, dt, row, fs)
            t = t1 if c == 1 else t0 + float(c) * dt
            if i == last and tableau.ssal and not tableau.fsal:
                break
            fs.append(rate(terms, t, y, args))
        y1 = y if tableau.ssal else _combine(y0, dt, tableau.b_sol, fs)
        error = _combine(None, dt, tableau.b_error, fs)
        k = jax.tree.map(lambda *leaves: dt * jnp.stack(leaves), *fs)
        state = (jnp.array(False), fs[-1]) if tableau.fsal else None
        return y1, error, dict(y0=y0, y1=y1, k=k), state, diffrax.RESULTS.successful


def rate(terms: Any, t: Any, y: Any, args: Any) -> Any:
    """The vector field of a term as a rate in the direction of integration."""
    _, direction = unwrapped(terms)
    field = terms.vf(t, y, args)
    if isinstance(direction, int):
        return field
    return jax.tree.map(lambda f: direction.astype(f.dtype) * f, field)


# Beyond this many stages the compilation of written-out stages takes longer than it saves.
MAX_STAGES = 7


# The same for a field of more numbers; those of one rigid body are about 400, those of two without
# joints 500, those of a double pendulum 1,700 (its stages in a loop are a third of the code of
# tangents, and 1,000 fits take half the time).
MAX_NUMBERS = 600


def is_small(terms: Any, t: Any, y: Any, args: Any) -> bool:
    """Whether the vector field computes so few numbers that stages are written out."""
    # A step finds the pieces of signals once.
    terms = with_signals(terms, lambda signal: signal.piece(t))
    jaxpr = jax.make_jaxpr(lambda t, y: terms.vf(t, y, args))(t, y)
    return _numbers(jaxpr.jaxpr) <= MAX_NUMBERS


def _numbers(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        inner = [getattr(p, "jaxpr", p) for p in equation.params.values()]
        inner = [p for p in inner if hasattr(p, "eqns")]
        sizes = (math.prod(var.aval.shape) for var in equation.outvars)
        total += sum(map(_numbers, inner)) if inner else sum(sizes)
    return total


def unrolled(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """`solver` with its stages written out, also inside the wrappers of this package.

    Any other solver, and one with many stages, comes back as it is.
    """
    kind: Any = type(solver)
    inner: Any = solver
    if issubclass(kind, diffrax.AbstractERK) and kind is not Unrolled:
        tableau = kind.tableau
        if isinstance(tableau, diffrax.ButcherTableau) and len(tableau.c) < MAX_STAGES:
            return Unrolled(inner)
    elif issubclass(kind, AbstractDelegating):
        return eqx.tree_at(lambda s: s.solver, inner, unrolled(inner.solver))
    return solver


def forward_stages(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """`solver` whose loop over stages serves forward mode.

    diffrax does that itself, but for solvers inside of more than one wrapper.
    """
    inner: Any = solver
    if isinstance(inner, AbstractDelegating):
        return eqx.tree_at(lambda s: s.solver, inner, forward_stages(inner.solver))
    if isinstance(inner, diffrax.AbstractERK) and inner.scan_kind is None:
        return eqx.tree_at(lambda s: s.scan_kind, inner, "lax", is_leaf=lambda x: x is None)
    return solver


def _combine(y: Any, dt: Any, weights: np.ndarray, fs: list[Any]) -> Any:
    """`y + dt * sum(weights * fs)`, leaf by leaf, without the zeros among the weights."""
    used = [(float(w), f) for w, f in zip(weights, fs, strict=True) if w != 0]

    def leaf(*leaves):
        total = sum(w * f for (w, _), f in zip(used, leaves, strict=True))
        return dt * total

    increment = jax.tree.map(leaf, *(f for _, f in used))
    if y is None:
        return increment
    return jax.tree.map(lambda a, b: a + b, y, increment)
