"""Integration over one period of a `Stepper`, with the memory of solver and controller."""

from typing import Any, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..adjoints.any_mode import AnyMode
from ..annotations import Count, Flag, Scalar, Time
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.charts import Unknowns, split_chart
from ..formulations.descriptor import Descriptor
from ..native import Backend
from ..private_names import diffeqsolve
from ..results import RESULTS
from ..simulate.endings import name_result
from ..simulate.integration import (
    freeze_signals_of_steps,
    prepare_if_constant,
    with_call_times,
    wrap_solver,
)
from ..solvers import dae_term
from ..solvers.base.hooked import with_hook
from ..solvers.conserving.base import AbstractStructureSolver, ModelTerm
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.explicit.unrolled import MAX_ELEMENTS, measure_field, native_form, unroll_stages
from ..solvers.wrappers.knots import KnotController, Knots, knots_of_signals, separate_delays
from ..solvers.wrappers.sampled import SampledStart, sample_times


class PeriodMethod(eqx.Module):
    """Method by which a `Stepper` integrates over a period.

    **Attributes:** `solver`; `controller`; `projection`, `None` for none; `num_steps`, the number
    of steps of fixed length in a period, `None` for an adaptive step size; `num_samples`, that of
    the samples of each sampled controller in a period, by input; `max_steps`, the largest
    number of attempts in a period; `backend`, as in `simulate`.
    """

    solver: diffrax.AbstractSolver
    controller: diffrax.AbstractStepSizeController
    projection: Any
    num_steps: int | None = eqx.field(static=True)
    num_samples: tuple[tuple[str, int], ...] = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)
    backend: str = eqx.field(static=True)

    @property
    def is_fixed_explicit(self) -> bool:
        """Whether the steps are those of an explicit Runge-Kutta method, all of one length."""
        is_method = isinstance(self.solver, diffrax.AbstractERK)
        tableau = getattr(self.solver, "tableau", None)
        return (
            self.num_steps is not None and is_method and isinstance(tableau, diffrax.ButcherTableau)
        )

    @property
    def has_memory(self) -> bool:
        """Whether the state of the solver matters beyond the unknowns at the end of a step."""
        return isinstance(self.solver, AbstractDAESolver | AbstractStructureSolver)


class Memory(eqx.Module):
    """State of the solver and of the step-size controller at the end of a period.

    **Attributes:** `solver`, `controller`, `None` where there is none; `step`, the length of the
    next step, s; `redundant`, the projector onto multipliers without effect (see
    `solvers.dae.dae_term`), `None` without loops.
    """

    solver: PyTree[Array]
    controller: PyTree[Array]
    step: Scalar
    redundant: Float[Array, "m m"] | None


class Advance(eqx.Module):
    """Result of a period: unknowns, memory, number of steps, result, and backend of the solve."""

    unknowns: Unknowns
    memory: Memory | None
    num_steps: Count
    result: RESULTS
    backend: Backend | None = None


def advance_fixed(
    method: PeriodMethod,
    model: AbstractFormulation,
    unknowns: Unknowns,
    t0: Time,
    t1: Time,
    start: Time,
) -> Advance:
    """Make the steps of fixed length of an explicit Runge-Kutta method in the period.

    The loop has a constant number of iterations, so that JAX differentiates it in every mode.

    **Arguments:** `model`, with the values of its inputs; `t0`, `t1`, start and end, s; `start`,
    s, the time of the first sample of controllers.
    """
    count = method.num_steps
    assert count is not None
    model = prepare_if_constant(with_call_times(model, t0, lambda: unknowns))
    terms = _ode_term(model)
    size = measure_field(terms, t0, unknowns, None)
    is_small = size.elements <= MAX_ELEMENTS
    if method.backend != "xla":
        solver = native_form(method.solver, size)
    else:
        solver = unroll_stages(method.solver) if is_small else method.solver
    solver = _wrap_for_period(solver, method, model, start)

    def make_step(k, carry):
        y, result = carry
        begin, end = (t0 + (t1 - t0) * (k + i) / count for i in (0, 1))
        state = solver.init(terms, begin, end, y, None)
        y, _, _, _, outcome = solver.step(terms, begin, end, y, None, state, True)
        return y, diffrax.RESULTS.where(diffrax.is_successful(result), outcome, result)

    carry = unknowns, diffrax.RESULTS.successful
    unknowns, result = jax.lax.fori_loop(0, count, make_step, carry)
    result = name_result(result, method.solver, model, t0, t1)
    return Advance(unknowns, None, jnp.asarray(count), result)


def start_memory(
    method: PeriodMethod, model: AbstractFormulation, unknowns: Unknowns, t0: Time, t1: Time
) -> Memory:
    """Return the memory before the first step from `t0`.

    **Arguments:** as of `advance_adaptive`.
    """
    model = separate_delays(with_call_times(model, t0, lambda: unknowns), t0, t1)
    model = prepare_if_constant(model)
    redundant = None
    if isinstance(model, AbstractAbsolute) and model.index > 0 and model.has_loops:
        projector = Descriptor(model).redundant_projector(t0, split_chart(unknowns)[0])
        redundant = jax.lax.stop_gradient(projector)
    terms, solver, controller = _arguments(method, model, redundant, t0, t1, t0)
    order = solver.error_order(terms)
    first = None if method.num_steps is None else (t1 - t0) / method.num_steps
    end, controller_state = controller.init(
        terms, t0, t1, unknowns, first, None, solver.func, order
    )
    end = jnp.minimum(end, t1)
    state = solver.init(terms, t0, end, unknowns, None) if method.has_memory else None
    step = end - t0
    if isinstance(controller, KnotController):
        _, _, step, _ = controller_state
    return _stop_gradients(Memory(state, controller_state, step, redundant), state)


def advance_adaptive(
    method: PeriodMethod,
    model: AbstractFormulation,
    unknowns: Unknowns,
    memory: Memory,
    t0: Time,
    t1: Time,
    reset: Flag | None,
    start: Time,
) -> Advance:
    """Integrate over the period with the memory of the period before.

    **Arguments:** `model`, with the values of its inputs; `t0`, `t1`, start and end, s, equal for
    no step; `reset`, whether the right-hand side jumps at `t0`, so that a multistep method starts
    again; `None` where it cannot; `start`, s, the time of the first sample of controllers.
    """
    model = separate_delays(with_call_times(model, t0, lambda: unknowns), t0, t1)
    model = prepare_if_constant(model)
    terms, solver, controller = _arguments(method, model, memory.redundant, t0, t1, start)
    state, controller_state, step = memory.solver, memory.controller, memory.step
    if isinstance(controller, KnotController):
        inner, passed, planned, _ = controller_state
        # The last knots are the samples of controllers in this period, and its end.
        kept = len(passed) - len(_knots_of_period(method, model, t0, t1))
        passed = *passed[:kept], *map(jnp.zeros_like, passed[kept:])
        end, cut = controller.cut_step(t0, planned, passed)
        controller_state, step = (inner, passed, planned, cut), end - t0
    if state is not None and reset is not None:
        end = jnp.minimum(t0 + step, t1)
        # A zero length would give a state that is not finite, whose derivatives are NaN.
        end = jnp.where(end > t0, end, t0 + memory.step)
        state = jax.lax.cond(
            reset,
            lambda state: _like(solver.init(terms, t0, end, unknowns, None), state),
            lambda state: state,
            state,
        )
    solution = diffeqsolve(
        terms, solver, t0, t1, step, unknowns,
        saveat=diffrax.SaveAt(
            t1=True, solver_state=method.has_memory, controller_state=True
        ),
        stepsize_controller=controller,
        adjoint=AnyMode(backend=method.backend, controls_derivatives=False),
        max_steps=method.max_steps,
        throw=False,
        solver_state=state,
        controller_state=controller_state,
    )  # fmt: skip
    ys: Any = solution.ys
    result = name_result(solution.result, method.solver, model, t0, t1)
    controller_state = solution.controller_state
    if isinstance(controller, KnotController):
        _, _, step, _ = cast(Any, controller_state)
    new = Memory(solution.solver_state, controller_state, jnp.asarray(step), memory.redundant)
    unknowns = jax.tree.map(lambda y: y[-1], ys)
    new = _stop_gradients(new, solution.solver_state)
    stats = solution.stats
    return Advance(unknowns, new, stats["num_steps"], result, stats["backend"])


def _arguments(
    method: PeriodMethod,
    model: AbstractFormulation,
    redundant: Array | None,
    t0: Time,
    t1: Time,
    start: Time,
) -> tuple[Any, diffrax.AbstractSolver, diffrax.AbstractStepSizeController]:
    """Return terms, wrapped solver and wrapped controller of a period from `t0` to `t1`."""
    if isinstance(method.solver, AbstractStructureSolver):
        terms = ModelTerm(model)
    elif isinstance(model, AbstractAbsolute) and model.index > 0:
        terms = dae_term(model, redundant=redundant, check_start=False)
    else:
        terms = _ode_term(model)
    controller = method.controller
    solver = _wrap_for_period(method.solver, method, model, start)
    if isinstance(controller, diffrax.AbstractAdaptiveStepSizeController):
        # The end of the period cuts a step as a sample of a signal does: the step after it has the
        # length that was planned before.
        knots = *knots_of_signals(model), *_knots_of_period(method, model, t0, t1)
        controller = KnotController(controller, knots)  # pyright: ignore[reportCallIssue]
    return terms, solver, controller


def _knots_of_period(
    method: PeriodMethod, model: AbstractFormulation, t0: Time, t1: Time
) -> tuple[Knots, ...]:
    """Return the samples of controllers within a period, and its end."""
    times = [*sample_times(model, t0, dict(method.num_samples)), jnp.asarray(t1)[None]]
    return tuple(Knots(ts, None) for ts in times)


def _wrap_for_period(
    solver: diffrax.AbstractSolver, method: PeriodMethod, model: AbstractFormulation, start: Time
) -> diffrax.AbstractSolver:
    """Return the solver with signals, projection and sampled controllers."""
    solver = freeze_signals_of_steps(solver, model, method.controller)
    solver = wrap_solver(solver, model, method.projection)
    if not method.num_samples:
        return solver
    return with_hook(solver, SampledStart(model, jnp.asarray(start), method.num_steps is not None))


def _ode_term(model: AbstractFormulation) -> diffrax.ODETerm:
    field: Any = model.vector_field
    return diffrax.ODETerm(field)


def _stop_gradients(memory: Memory, solver_state: PyTree[Array]) -> Memory:
    """Return the memory without derivatives of step sizes; those of the solver's state remain."""
    stopped = jax.lax.stop_gradient(eqx.filter(memory, eqx.is_array))
    return eqx.tree_at(lambda m: m.solver, stopped, solver_state, is_leaf=lambda x: x is None)


def _like(state: PyTree[Array], other: PyTree[Array]) -> PyTree[Array]:
    """Return the arrays of a state in the dtypes of another one."""
    return jax.tree.map(lambda a, b: jnp.asarray(a, jnp.asarray(b).dtype), state, other)
