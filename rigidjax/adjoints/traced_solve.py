"""A solve of diffrax, traced: its values, tangents and cotangents as programs or kernels."""

import functools
from collections.abc import Callable, Hashable, Sequence

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax._src.interpreters.batching import BatchTracer
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jaxtyping import PyTree

from ..native import (
    Backend,
    choose_backend,
    evaluate_with_lane_compaction,
    gc_paused,
    trace_without_mesh,
)
from ..results import failures_as_nan
from ..signals.signal import Piece, Signal, signals_of, with_signals
from ..solvers.conserving.base import ModelTerm
from ..solvers.evaluations import explicit_evaluations
from ..solvers.explicit.unrolled import (
    MAX_ELEMENTS,
    count_field_elements,
    directed_rate,
    native_form,
    set_stage_loop,
    unroll_stages,
)
from ..solvers.terms import AbstractDAETerm, unwrap
from ..solvers.wrappers.probe import with_probe
from ..solvers.wrappers.switched import with_switching_times
from .probed_loop import probed_loop
from .record import SAVE_Y
from .reverse import cotangents as reverse_cotangents, is_supported


def traced_solve(kwargs, checkpoints, probes):
    """The traced solve, and its inputs, differentiable ones first."""
    solve, inputs = _traced(_with_saving_exposed(kwargs), checkpoints, probes)
    if solve.closes_over_tracers():
        # A vector field such as `lambda t, y, args: theta * y` hides what it depends on.
        kwargs = _with_field_exposed(_with_saving_exposed(kwargs))
        solve, inputs = _traced(kwargs, checkpoints, probes)
        if solve.closes_over_tracers():
            raise ValueError(
                "`AnyMode` cannot see what an event or a projection closes over while it is "
                "traced. Pass such values through `args` or in an Equinox module, or choose one of "
                "diffrax's adjoints."
            )
    return solve, inputs


def _traced(kwargs, checkpoints, probes):
    arrays, static = eqx.partition(kwargs, eqx.is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    inexact = tuple(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves)
    solve = TracedSolve(static, treedef, inexact, checkpoints, probes)
    primals = [leaf for leaf, diff in zip(leaves, inexact, strict=True) if diff]
    others = [leaf for leaf, diff in zip(leaves, inexact, strict=True) if not diff]
    solve.jaxpr = solve.trace(primals, others)
    return solve, [*primals, *others]


def _with_saving_exposed(kwargs):
    """The same arguments with what functions of `SaveAt(fn=...)` close over as arrays of a pytree.

    diffrax wraps all of them in a closure over the direction of time.
    """
    state, args = kwargs["init_state"], kwargs["args"]

    def is_sub(x):
        return isinstance(x, diffrax.SubSaveAt)

    def exposed(sub):
        if not is_sub(sub) or sub.fn is SAVE_Y:
            return sub
        function = eqx.filter_closure_convert(sub.fn, state.tprev, state.y, args)
        return eqx.tree_at(lambda sub: sub.fn, sub, function)

    return {**kwargs, "saveat": jax.tree.map(exposed, kwargs["saveat"], is_leaf=is_sub)}


class _ExposedField(eqx.Module):
    """A vector field with all that it depends on as arrays, signals as such among them."""

    signals: Sequence[Signal | Piece]
    field: Callable[..., PyTree]

    def __call__(self, t, y, args):
        pieces = [s.piece(t) if isinstance(s, Signal) else s for s in self.signals]
        return self.field(pieces, t, y, args)


def _with_field_exposed(kwargs):
    """The same arguments with what the vector field closes over as arrays of a pytree."""
    state, args, terms = kwargs["init_state"], kwargs["args"], kwargs["terms"]
    if isinstance(unwrap(terms)[0], AbstractDAETerm | ModelTerm):
        raise ValueError(
            "`AnyMode` cannot see what the functions of a model, a `MassMatrixTerm` or an "
            "`ImplicitTerm` close over while it is traced. Pass such values through `args` or in "
            "an Equinox module, or choose one of diffrax's adjoints."
        )
    signals = signals_of(terms)

    def field(pieces, t, y, args):
        each = iter(pieces)
        return directed_rate(with_signals(terms, lambda _: next(each)), t, y, args)

    pieces = [signal.piece(state.tprev) for signal in signals]
    exposed = eqx.filter_closure_convert(field, pieces, state.tprev, state.y, args)
    # In the direction of integration: what diffrax wraps around a term to run backwards is gone.
    return {**kwargs, "terms": diffrax.ODETerm(_ExposedField(signals, exposed))}


class TracedSolve:
    """One traced solve: its static parts, and how its arrays are flattened.

    Compared by identity, as a static parameter of a primitive must be.
    """

    def __init__(self, static, treedef, inexact, checkpoints, probes):
        self.static = static
        self.treedef = treedef
        self.inexact = inexact
        self.num_primals = sum(inexact)
        self.reverse = diffrax.RecursiveCheckpointAdjoint(checkpoints)
        self.asked = "auto"
        self.backend = Backend("xla")
        self.probes = probes
        self.kernels: dict[Hashable, tuple[ClosedJaxpr, bool]] = {}
        self.programs: dict[Hashable, ClosedJaxpr] = {}
        self.jaxpr: ClosedJaxpr
        self.out_inexact = ()
        self.out_treedef = None
        self.out_static = None

    def closes_over_tracers(self):
        return any(isinstance(const, Tracer) for const in self.jaxpr.consts)

    def kwargs(self, primals, others):
        """Arguments of the loop."""
        primals, others = iter(primals), iter(others)
        leaves = [next(primals) if diff else next(others) for diff in self.inexact]
        return eqx.combine(jax.tree.unflatten(self.treedef, leaves), self.static)

    def run(self, adjoint, primals, others, written_out=False, moved=None):
        """Outputs (differentiable, others) of the loop of `adjoint`.

        `written_out`: whether stages are, if the vector field is small enough for the backend.
        `moved`: marks of the primals by which it is differentiated, so that steps are accurate for
        that as well; `None` for none.
        """

        def prepare(kwargs):
            solver = self.staged(kwargs) if written_out else kwargs["solver"]
            if isinstance(adjoint, diffrax.ForwardMode):
                return set_stage_loop(solver)
            is_direct = isinstance(adjoint, diffrax.DirectAdjoint)
            return set_stage_loop(solver, "bounded") if is_direct else solver

        wanted = None if moved is None else self.marked(moved)
        kwargs = self.kwargs(primals, others)
        result = probed_loop(adjoint, kwargs, wanted, prepare, self.probes)
        arrays, out_static = eqx.partition(result, eqx.is_array)
        out, self.out_treedef = jax.tree.flatten(arrays)
        self.out_static = out_static
        self.out_inexact = tuple(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in out)
        first = [leaf for leaf, diff in zip(out, self.out_inexact, strict=True) if diff]
        second = [leaf for leaf, diff in zip(out, self.out_inexact, strict=True) if not diff]
        return first, second

    def staged(self, kwargs):
        """The solver with its stages in the form that suits backend and vector field."""
        solver, numbers = kwargs["solver"], _field_numbers(kwargs)
        if numbers is None:
            return solver
        if self.backend == "native":
            return native_form(solver, numbers)
        return unroll_stages(solver) if numbers <= MAX_ELEMENTS else solver

    @gc_paused()
    def trace(self, primals, others, written_out=False, moved=None):
        def flat(primals, others):
            first, second = self.run(diffrax.ForwardMode(), primals, others, written_out, moved)
            return [*first, *second]

        return trace_without_mesh(flat, primals, others)

    def evaluate(self, inputs, moved=None):
        """All outputs, by steps that are accurate for derivatives by the primals `moved` as well.

        In a batch the stages are written out, which is twice as fast there. (One trajectory would
        gain as much, 1.0 ms instead of 2.4 ms for the heavy top, but takes 1.7 s instead of 1.1 s
        to compile.)
        """
        if self.backend == "native":
            program = functools.partial(self.kernel_jaxpr, moved)
            return self.by_kernel(("values", moved), program, inputs)
        if not is_batched(inputs):
            jaxpr = self.jaxpr if moved is None else self.program(False, moved)
        else:
            jaxpr = self.program(True, moved)
            if failures_as_nan.value and jax.default_backend() == "cpu":
                # Members of an ensemble do not wait for each other.
                return evaluate_with_lane_compaction(jaxpr, list(inputs))
        return jaxpr_as_fun(jaxpr)(*inputs)

    def program(self, written_out, moved):
        """The program with its stages written out, if that is asked for and the field is small."""
        key = written_out, moved
        if key not in self.programs:
            primals, others, _ = self.split(shapes_of(self.jaxpr.in_avals))
            self.programs[key] = self.trace(primals, others, written_out, moved)
        return self.programs[key]

    def kernel_jaxpr(self, moved=None):
        """The program of which a kernel is made, which writes out loops of its own accord.

        But where the last stage of a step is the first of the next, diffrax's loop over stages
        begins at a stage that is known at run time only.
        """
        evaluations = explicit_evaluations(self.static["solver"])
        if evaluations and evaluations[1]:
            return self.program(True, moved)
        return self.jaxpr if moved is None else self.program(False, moved)

    @property
    def num_results(self):
        """The number of outputs, differentiable or not."""
        return len(self.out_inexact)

    @property
    def in_avals(self):
        """Shapes and dtypes of the differentiable inputs."""
        return list(self.jaxpr.in_avals[: self.num_primals])

    @property
    def out_avals(self):
        """Shapes and dtypes of the differentiable outputs."""
        return list(self.jaxpr.out_avals[: sum(self.out_inexact)])

    def unflatten(self, out):
        count = sum(self.out_inexact)
        first, second = iter(out[:count]), iter(out[count:])
        leaves = [next(first) if diff else next(second) for diff in self.out_inexact]
        return eqx.combine(jax.tree.unflatten(self.out_treedef, leaves), self.out_static)

    def split(self, inputs):
        """Primals, other arrays, and what follows them (tangents or cotangents)."""
        n, m = self.num_primals, len(self.inexact)
        return inputs[:n], inputs[n:m], inputs[m:]

    def forward(self, adjoint, primals, others, tangents, given):
        """Outputs, differentiable ones first, and the tangents of these.

        The tangents are the Jacobian times `tangents`, of the primals marked in `given`. Six at
        once take a fifth of the time if stages are written out.
        """

        def function(*moved):
            moved = iter(moved)
            full = [next(moved) if g else x for x, g in zip(primals, given, strict=True)]
            return self.run(adjoint, full, others, written_out=True, moved=given)

        moved = [x for x, g in zip(primals, given, strict=True) if g]
        first, rates, rest = jax.jvp(function, moved, list(tangents), has_aux=True)
        return [*first, *rest], rates

    def tangent(self, *args):
        """Outputs' tangents, of the arguments of `forward`."""
        return self.forward(*args)[1]

    def by_kernel(self, name, program, inputs, linear=0, values=(0, 0), several=0):
        """Results of a program as a kernel, or by XLA where one is not to be had.

        **Arguments:** `name`, of the program among those of this solve; `program()`, its jaxpr;
        `linear`, number of the last inputs in which it is linear; `values`, `several`, see
        `native_call`.
        **Raises:** `ValueError` and `NoRule` if a kernel was asked for and is not to be had.
        """
        from ..native import native_call

        if name not in self.kernels:
            with gc_paused():
                closed = program()
            self.kernels[name] = closed, choose_backend(self.asked, closed, None) == "native"
        closed, possible = self.kernels[name]
        if not possible:
            return jaxpr_as_fun(closed)(*inputs)
        strict = self.asked == "native"
        return native_call(
            closed, list(inputs), strict=strict, linear=linear, values=values, several=several
        )

    def all_tangents(self, inputs, given):
        """Outputs' tangents for tangents of the primals marked in `given`, as one program."""
        program = functools.partial(self._forward_program, self.tangent, given)
        return self.by_kernel(("tangents", given), program, inputs, linear=sum(given))

    def values_and_tangents(self, inputs, given):
        """Outputs, and their tangents for those of the primals marked in `given`, as one program.

        Several tangents at one point are members of a batch, and its values are no batch.
        """
        count = self.num_results

        def both(*args):
            values, rates = self.forward(*args)
            return [*values, *rates]

        program = functools.partial(self._forward_program, both, given)
        out = self.by_kernel(("both", given), program, inputs, values=(len(self.inexact), count))
        return out[:count], out[count:]

    def values_and_several_tangents(self, inputs, given, axes, size):
        """The same for `size` tangents of each primal, along these axes of the inputs.

        One member of a batch has all of them, so that it computes values once.
        """
        count = self.num_results

        def program():
            forward = functools.partial(self._forward, self.forward, given)
            stacked = jax.vmap(forward, axes, (None, 0), axis_size=size)

            def both(*inputs):
                values, rates = stacked(*inputs)
                return [*values, *rates]

            return trace_without_mesh(both, *shapes_of(map(jax.typeof, inputs)))

        out = self.by_kernel(("several", given, axes, size), program, inputs, several=size)
        return out[:count], out[count:]

    def _forward(self, function, given, *inputs):
        return function(diffrax.ForwardMode(), *self.split(inputs), given)

    def _forward_program(self, function, given):
        moved = [aval for aval, g in zip(self.in_avals, given, strict=True) if g]
        forward = functools.partial(self._forward, function, given)
        return trace_without_mesh(forward, *shapes_of([*self.jaxpr.in_avals, *moved]))

    def all_cotangents(self, inputs, wanted):
        """Inputs' cotangents by the fastest reverse mode, as one program."""

        def program():
            shapes = shapes_of([*self.jaxpr.in_avals, *self.out_avals])
            return trace_without_mesh(lambda *x: self.reverse_cotangent(x, wanted), *shapes)

        return self.by_kernel(wanted, program, inputs, linear=len(self.out_avals))

    def reverse_cotangent(self, inputs, wanted):
        """Inputs' cotangents by the fastest reverse mode there is for this run.

        Those that are not `wanted` are without meaning.
        """
        primals, others, cotangents = self.split(inputs)
        plain = self.kwargs(primals, others)
        kwargs = with_switching_times(plain)
        if not is_supported(kwargs):
            return self.cotangent(self.reverse, primals, others, cotangents, wanted)
        first = iter(cotangents)
        leaves = [next(first) if diff else None for diff in self.out_inexact]
        saved = jax.tree.unflatten(self.out_treedef, leaves)[0].save_state
        marks = self.marked(wanted)
        kwargs["solver"] = self.staged(kwargs)
        if kwargs is not plain:
            marks["solver"] = jax.tree.map(lambda _: False, kwargs["solver"])
        recorded = with_probe(kwargs, marks) if self.probes else kwargs
        out = reverse_cotangents(kwargs, recorded, saved.ts, saved.ys, marks, is_batched(inputs))
        return jax.tree.leaves(out)

    def marked(self, wanted):
        """A tree like the arguments of the loop, `True` where an input is wanted."""
        marks = iter(wanted)
        leaves = [next(marks) if diff else False for diff in self.inexact]
        static = jax.tree.map(lambda _: False, self.static)
        return eqx.combine(jax.tree.unflatten(self.treedef, leaves), static)

    def cotangent(self, adjoint, primals, others, cotangents, wanted):
        """Inputs' cotangents: the transposed Jacobian times `cotangents`."""
        function = lambda *x: self.run(adjoint, x, others, moved=wanted)[0]  # noqa: E731
        return list(jax.vjp(function, *primals)[1](list(cotangents)))


def _field_numbers(kwargs):
    """Numbers that the vector field computes; `None` if there is none.

    Solvers of a model's own know by themselves; equations of index 3 have no vector field.
    """
    if isinstance(unwrap(kwargs["terms"])[0], AbstractDAETerm | ModelTerm):
        return None
    state = kwargs["init_state"]
    return count_field_elements(kwargs["terms"], state.tprev, state.y, kwargs["args"])


def shapes_of(avals):
    """Return the shapes and dtypes of arrays, weak types included."""
    return [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals
    ]


def is_batched(inputs):
    """Whether a primitive is being vectorised."""
    return any(isinstance(x, BatchTracer) for x in inputs)
