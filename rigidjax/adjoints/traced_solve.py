"""A traced solve of diffrax with values, tangents and cotangents as jaxprs or kernels."""

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jaxtyping import Array, Float, PyTree

from ..annotations import Time, Y
from ..native import (
    Backend,
    choose_backend,
    evaluate_with_lane_compaction,
    gc_paused,
    trace_without_mesh,
    why_no_kernels,
)
from ..private_names import BatchTracer
from ..results import failures_as_nan
from ..signals.signal import Piece, Pieces, Signal, signals_of, with_signals
from ..solvers.base.terms import AbstractDAETerm, unwrap
from ..solvers.conserving.base import ModelTerm
from ..solvers.explicit.unrolled import (
    MAX_ELEMENTS,
    FieldSize,
    directed_rate,
    loop_over_stages,
    measure_field,
    native_form,
    set_stage_loop,
    unroll_stages,
)
from ..solvers.wrappers.counting import explicit_evaluations
from ..solvers.wrappers.probe import with_probe
from ..solvers.wrappers.switched import with_switching_times
from . import explicit, steps
from .boundaries import Tree, probed_loop
from .record import SAVE_Y


def is_supported(kwargs: Tree) -> bool:
    """Return whether `transpose_run` supports the loop with these arguments."""
    return explicit.is_supported(kwargs) or steps.is_supported(kwargs)


def transpose_run(
    kwargs: Tree, recorded_kwargs: Tree, ct_ts: Float[Array, " T"] | None, ct_ys: Y,
    ct_solver: PyTree, wanted: Tree, batched: bool,
) -> Tree:  # fmt: skip
    """Return the cotangents of a loop's arguments from those of the saved times and unknowns.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `recorded_kwargs`, the arguments with which
    steps are chosen and recorded, see `rigidjax.solvers.wrappers.probe`; `ct_ts`, `ct_ys`,
    cotangents with the structure of `save_state.ts` and `save_state.ys`; `ct_solver`, those of the
    final state of the solver, used if the run saves it; `wanted`, a tree like `kwargs`, `True`
    where cotangents are computed; `batched`, whether there is a batch of trajectories.
    **Returns:** a tree like `kwargs` with cotangents of the inexact arrays (arbitrary values of the
    same shape where they are not wanted) and `None` for other leaves.
    """
    if explicit.is_supported(kwargs):
        return explicit.transpose_run(kwargs, recorded_kwargs, ct_ts, ct_ys, wanted, batched)
    return steps.transpose_run(kwargs, recorded_kwargs, ct_ts, ct_ys, ct_solver, wanted, batched)


# One mark for each differentiable input.
Marks: TypeAlias = tuple[bool, ...]


def trace_solve(kwargs: Tree, checkpoints: int | None, probes: bool, backend: str):
    """Return the traced solve and its inputs, differentiable inputs first.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `checkpoints`, their number in reverse mode;
    `probes`, whether a probe chooses the steps of differentiated runs; `backend`, as requested.
    """
    options = checkpoints, probes, backend
    solve, inputs = _trace_arguments(_expose_save_functions(kwargs), *options)
    if solve.closes_over_tracers():
        # A vector field such as `lambda t, y, args: theta * y` hides what it depends on.
        kwargs = _expose_field(_expose_save_functions(kwargs))
        solve, inputs = _trace_arguments(kwargs, *options)
        if solve.closes_over_tracers():
            raise ValueError(
                "`AnyMode` cannot see what an event, a projection or a policy closes over, or "
                "remembers from an earlier call, while it is traced. Pass such values through "
                "`args` or in an Equinox module, or choose one of diffrax's adjoints."
            )
    return solve, inputs


def _trace_arguments(kwargs: Tree, checkpoints: int | None, probes: bool, backend: str):
    arrays, static = eqx.partition(kwargs, eqx.is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    inexact = tuple(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves)
    solve = TracedSolve(static, treedef, inexact, checkpoints, probes, backend)
    primals = [leaf for leaf, diff in zip(leaves, inexact, strict=True) if diff]
    others = [leaf for leaf, diff in zip(leaves, inexact, strict=True) if not diff]
    solve.jaxpr = solve.trace(primals, others)
    return solve, [*primals, *others]


def _expose_save_functions(kwargs: Tree):
    """Return the arguments with save functions whose captured arrays are leaves of a pytree.

    diffrax wraps functions of `SaveAt(fn=...)` in a closure over the direction of time.
    """
    state, args = kwargs["init_state"], kwargs["args"]

    def is_sub(x):
        return isinstance(x, diffrax.SubSaveAt)

    def expose(sub):
        if not is_sub(sub) or sub.fn is SAVE_Y:
            return sub
        function = eqx.filter_closure_convert(sub.fn, state.tprev, state.y, args)
        return eqx.tree_at(lambda sub: sub.fn, sub, function)

    return {**kwargs, "saveat": jax.tree.map(expose, kwargs["saveat"], is_leaf=is_sub)}


class _ExposedField(eqx.Module):
    """A vector field whose captured arrays and signals are leaves of a pytree."""

    signals: Sequence[Signal | Piece | Pieces]
    field: Callable[..., PyTree]

    def __call__(self, t: Time, y: PyTree, args: PyTree):
        return self.field([_freeze(signal, t) for signal in self.signals], t, y, args)


def _freeze(signal: Signal | Piece | Pieces, t: Time) -> Signal | Piece | Pieces:
    """Return the polynomials of a signal around a time; a frozen signal is returned unchanged."""
    return signal.freeze(t, t) if isinstance(signal, Signal) else signal


def _expose_field(kwargs: Tree):
    """Return the arguments with a vector field whose captured arrays are leaves of a pytree."""
    state, args, terms = kwargs["init_state"], kwargs["args"], kwargs["terms"]
    if isinstance(unwrap(terms)[0], AbstractDAETerm | ModelTerm):
        raise ValueError(
            "`AnyMode` cannot see what the functions of a model, a `MassMatrixTerm` or an "
            "`ImplicitTerm` close over while it is traced. Pass such values through `args` or in "
            "an Equinox module, or choose one of diffrax's adjoints."
        )
    signals = signals_of(terms)

    def field(pieces, t, y, args):
        remaining = iter(pieces)
        return directed_rate(with_signals(terms, lambda _: next(remaining)), t, y, args)

    pieces = [_freeze(signal, state.tprev) for signal in signals]
    exposed = eqx.filter_closure_convert(field, pieces, state.tprev, state.y, args)
    # The field includes the direction of time, so that diffrax's wrapper for it is not needed.
    return {**kwargs, "terms": diffrax.ODETerm(_ExposedField(signals, exposed))}


class TracedSolve:
    """A traced solve: the static parts of its arguments, and the flattening of their arrays.

    It is compared by identity, as a static parameter of a primitive has to be.
    """

    def __init__(
        self,
        static: Tree,
        treedef: Any,
        inexact: Marks,
        checkpoints: int | None,
        probes: bool,
        requested_backend: str,
    ):
        self.static = static
        self.treedef = treedef
        self.inexact = inexact
        self.num_primals = sum(inexact)
        self.reverse = diffrax.RecursiveCheckpointAdjoint(checkpoints)
        self.requested_backend = requested_backend
        # Provisional, until the jaxpr of the loop is known.
        possible = requested_backend != "xla" and not why_no_kernels()
        self.backend = Backend("native" if possible else "xla")
        self.probes = probes
        self.kernels: dict[Hashable, tuple[ClosedJaxpr, bool]] = {}
        self.jaxprs: dict[Hashable, ClosedJaxpr] = {}
        self.jaxpr: ClosedJaxpr
        self.out_inexact = ()
        self.out_treedef = None
        self.out_static = None

    def closes_over_tracers(self):
        return any(isinstance(const, Tracer) for const in self.jaxpr.consts)

    def kwargs(self, primals: Sequence[Any], others: Sequence[Any]):
        """Return the arguments of the loop."""
        next_primals, next_others = iter(primals), iter(others)
        leaves = [next(next_primals) if diff else next(next_others) for diff in self.inexact]
        return eqx.combine(jax.tree.unflatten(self.treedef, leaves), self.static)

    def run(
        self,
        adjoint: diffrax.AbstractAdjoint,
        primals: Sequence[Any],
        others: Sequence[Any],
        unrolled: bool = False,
        differentiated: Marks | None = None,
    ):
        """Return the differentiable and the other outputs of the loop of `adjoint`.

        **Arguments:** `adjoint`; `primals`, `others`, arrays of the arguments; `unrolled`, whether
        to unroll the stages of a small vector field in a batch or with tangents; `differentiated`,
        the primals that the loop is differentiated with respect to, for which steps are accurate
        too, `None` for none.
        """

        def prepare(kwargs):
            # Equations of a probe make a stage long, so that it is emitted once.
            if unrolled or (differentiated is None and self.backend == "native"):
                of_values = "batch" if unrolled else "single"
                use = of_values if differentiated is None else "forward"
                solver = self.solver_with_stages(kwargs, use)
            elif isinstance(adjoint, diffrax.ForwardMode):
                solver = loop_over_stages(kwargs["solver"])
            else:
                solver = kwargs["solver"]
            if isinstance(adjoint, diffrax.ForwardMode):
                return set_stage_loop(solver)
            is_direct = isinstance(adjoint, diffrax.DirectAdjoint)
            return set_stage_loop(solver, "bounded") if is_direct else solver

        wanted = None if differentiated is None else self.mark_inputs(differentiated)
        kwargs = self.kwargs(primals, others)
        result = probed_loop(adjoint, kwargs, wanted, prepare, self.probes)
        arrays, out_static = eqx.partition(result, eqx.is_array)
        out, self.out_treedef = jax.tree.flatten(arrays)
        self.out_static = out_static
        self.out_inexact = tuple(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in out)
        first = [leaf for leaf, diff in zip(out, self.out_inexact, strict=True) if diff]
        second = [leaf for leaf, diff in zip(out, self.out_inexact, strict=True) if not diff]
        return first, second

    def solver_with_stages(self, kwargs: Tree, use: str):
        """Return the solver with its stages in the form for the backend and the vector field."""
        solver, size = kwargs["solver"], _measure_field(kwargs)
        if size is None:
            return solver
        if self.backend == "native":
            return native_form(solver, size, use)
        return unroll_stages(solver) if size.elements <= MAX_ELEMENTS else loop_over_stages(solver)

    @functools.cached_property
    def stacks_tangents(self) -> bool:
        """Whether all tangents of a point in a batch are computed by one lane of a kernel.

        For an explicit method with a large vector field such a kernel takes twice as long to
        compile as one in which each tangent has a lane and repeats the values, and is slower.
        Implicit methods factorise once for all tangents.
        """
        if not explicit_evaluations(self.static["solver"]):
            return True
        sizes = []

        def count(*inputs):
            primals, others, _ = self.split(inputs)
            sizes.append(_measure_field(self.kwargs(primals, others)))

        jax.eval_shape(count, *shapes_of(self.jaxpr.in_avals))
        return sizes[0] is None or sizes[0].elements <= MAX_ELEMENTS

    @gc_paused()
    def trace(
        self,
        primals: Sequence[Any],
        others: Sequence[Any],
        unrolled: bool = False,
        differentiated: Marks | None = None,
    ):
        def flat(primals, others):
            first, second = self.run(
                diffrax.ForwardMode(), primals, others, unrolled, differentiated
            )
            return [*first, *second]

        return trace_without_mesh(flat, primals, others)

    def evaluate(self, inputs: Sequence[Any], differentiated: Marks | None = None):
        """Return all outputs, with steps accurate for derivatives in the `differentiated` primals.

        The stages of a batch are unrolled, which is faster. For a single trajectory the longer
        compile time would exceed the gain.
        """
        if self.backend == "native":
            unrolled = differentiated is None and is_batched(inputs)
            make_jaxpr = functools.partial(self.loop_jaxpr, unrolled, differentiated)
            return self.call_kernel(("values", differentiated, unrolled), make_jaxpr, inputs)
        if not is_batched(inputs):
            jaxpr = self.loop_jaxpr(False, differentiated)
        else:
            jaxpr = self.loop_jaxpr(True, differentiated)
            if failures_as_nan.value and jax.default_backend() == "cpu":
                # Members of an ensemble that have finished do not occupy lanes.
                return evaluate_with_lane_compaction(jaxpr, list(inputs))
        return jaxpr_as_fun(jaxpr)(*inputs)

    def loop_jaxpr(self, unrolled: bool, differentiated: Marks | None):
        """Return the jaxpr of the loop, with small stages unrolled if `unrolled`."""
        if not unrolled and differentiated is None:
            return self.jaxpr
        key = unrolled, differentiated
        if key not in self.jaxprs:
            primals, others, _ = self.split(shapes_of(self.jaxpr.in_avals))
            self.jaxprs[key] = self.trace(primals, others, unrolled, differentiated)
        return self.jaxprs[key]

    @property
    def num_results(self):
        """Number of outputs."""
        return len(self.out_inexact)

    @property
    def in_avals(self):
        """Shapes and dtypes of the differentiable inputs."""
        return list(self.jaxpr.in_avals[: self.num_primals])

    @property
    def out_avals(self):
        """Shapes and dtypes of the differentiable outputs."""
        return list(self.jaxpr.out_avals[: sum(self.out_inexact)])

    def unflatten(self, out: Sequence[Any]):
        count = sum(self.out_inexact)
        first, second = iter(out[:count]), iter(out[count:])
        leaves = [next(first) if diff else next(second) for diff in self.out_inexact]
        return eqx.combine(jax.tree.unflatten(self.out_treedef, leaves), self.out_static)

    def split(self, inputs: Sequence[Any]):
        """Split inputs into primals, other arrays, and tangents or cotangents."""
        n, m = self.num_primals, len(self.inexact)
        return inputs[:n], inputs[n:m], inputs[m:]

    def forward(
        self,
        adjoint: diffrax.AbstractAdjoint,
        primals: Sequence[Any],
        others: Sequence[Any],
        tangents: Sequence[Any],
        with_tangent: Marks,
    ):
        """Return all outputs, differentiable outputs first, and the tangents of the latter.

        The stages are unrolled, which is faster with several tangents.

        **Arguments:** `adjoint`; `primals`, `others`, arrays of the arguments; `tangents`, of the
        primals marked in `with_tangent`.
        """

        def function(*differentiated):
            differentiated = iter(differentiated)
            full = [
                next(differentiated) if g else x for x, g in zip(primals, with_tangent, strict=True)
            ]
            return self.run(adjoint, full, others, unrolled=True, differentiated=with_tangent)

        differentiated = [x for x, g in zip(primals, with_tangent, strict=True) if g]
        first, rates, rest = jax.jvp(function, differentiated, list(tangents), has_aux=True)
        return [*first, *rest], rates

    def tangent(self, *args: Any):
        """Return the tangents of the outputs, for the arguments of `forward`."""
        return self.forward(*args)[1]

    def call_kernel(
        self,
        name: Hashable,
        make_jaxpr: Callable[[], ClosedJaxpr],
        inputs: Sequence[Any],
        linear: int = 0,
        values: tuple[int, int] = (0, 0),
        num_tangents: int = 0,
    ):
        """Evaluate a jaxpr as a kernel, or by XLA if it cannot be one.

        **Arguments:** `name`, key of the jaxpr among those of this solve; `make_jaxpr`, a function
        that returns the jaxpr; `inputs`; `linear`, the number of last inputs in which the jaxpr is
        linear; `values`, `num_tangents`, see `native_call`.
        **Raises:** `ValueError` and `NoRule` if the native backend was requested and is not
        possible.
        """
        from ..native import native_call

        if name not in self.kernels:
            with gc_paused():
                closed = make_jaxpr()
            self.kernels[name] = (
                closed,
                choose_backend(self.requested_backend, closed, None) == "native",
            )
        closed, possible = self.kernels[name]
        if not possible:
            return jaxpr_as_fun(closed)(*inputs)
        strict = self.requested_backend == "native"
        return native_call(
            closed,
            list(inputs),
            strict=strict,
            num_linear=linear,
            primal_counts=values,
            num_tangents=num_tangents,
        )

    def all_tangents(self, inputs: Sequence[Any], with_tangent: Marks):
        """Return tangents of the outputs for those of the marked primals, by a single jaxpr."""
        make_jaxpr = functools.partial(self._forward_jaxpr, self.tangent, with_tangent)
        return self.call_kernel(
            ("tangents", with_tangent), make_jaxpr, inputs, linear=sum(with_tangent)
        )

    def values_and_tangents(self, inputs: Sequence[Any], with_tangent: Marks):
        """Return outputs and their tangents for those of the marked primals, by a single jaxpr.

        Several tangents at one point form a batch, while the values are not batched.
        """
        count = self.num_results

        def both(*args):
            values, rates = self.forward(*args)
            return [*values, *rates]

        make_jaxpr = functools.partial(self._forward_jaxpr, both, with_tangent)
        out = self.call_kernel(
            ("both", with_tangent), make_jaxpr, inputs, values=(len(self.inexact), count)
        )
        return out[:count], out[count:]

    def values_and_several_tangents(
        self, inputs: Sequence[Any], with_tangent: Marks, axes: Sequence[int | None], size: int
    ):
        """Return outputs and `size` tangents of each, for tangents along `axes` of the inputs.

        One batch element of the kernel computes all tangents of a point, so that values are
        computed once.
        """
        count = self.num_results

        def make_jaxpr():
            forward = functools.partial(self._forward, self.forward, with_tangent)
            stacked = jax.vmap(forward, axes, (None, 0), axis_size=size)

            def both(*inputs):
                values, rates = stacked(*inputs)
                return [*values, *rates]

            return trace_without_mesh(both, *shapes_of(map(jax.typeof, inputs)))

        out = self.call_kernel(
            ("several", with_tangent, axes, size), make_jaxpr, inputs, num_tangents=size
        )
        return out[:count], out[count:]

    def _forward(self, function: Callable[..., Any], with_tangent: Marks, *inputs: Any):
        return function(diffrax.ForwardMode(), *self.split(inputs), with_tangent)

    def _forward_jaxpr(self, function: Callable[..., Any], with_tangent: Marks):
        differentiated = [aval for aval, g in zip(self.in_avals, with_tangent, strict=True) if g]
        forward = functools.partial(self._forward, function, with_tangent)
        return trace_without_mesh(forward, *shapes_of([*self.jaxpr.in_avals, *differentiated]))

    def all_cotangents(self, inputs: Sequence[Any], wanted: Marks):
        """Return cotangents of the inputs by the fastest reverse mode, in a single jaxpr."""

        def make_jaxpr():
            shapes = shapes_of([*self.jaxpr.in_avals, *self.out_avals])
            return trace_without_mesh(lambda *x: self.reverse_cotangent(x, wanted), *shapes)

        return self.call_kernel(wanted, make_jaxpr, inputs, linear=len(self.out_avals))

    def reverse_cotangent(self, inputs: Sequence[Any], wanted: Marks):
        """Return cotangents of the inputs by the fastest reverse mode that supports the run.

        Cotangents that are not `wanted` have arbitrary values.
        """
        from .traced_solve import is_supported, transpose_run

        primals, others, cotangents = self.split(inputs)
        plain = self.kwargs(primals, others)
        # Runs that save the state of the solver keep their solver: see `probed_loop`.
        saves_solver = plain["saveat"].solver_state
        kwargs = plain if saves_solver else with_switching_times(plain)
        if not is_supported(kwargs):
            return self.cotangent(self.reverse, primals, others, cotangents, wanted)
        first = iter(cotangents)
        leaves = [next(first) if diff else None for diff in self.out_inexact]
        final: Any = jax.tree.unflatten(self.out_treedef, leaves)[0]
        saved = final.save_state
        marks = self.mark_inputs(wanted)
        # Wrapping a solver or changing the form of its stages does not change its leaves.
        pairs = zip(jax.tree.leaves(plain["solver"]), jax.tree.leaves(marks["solver"]), strict=True)
        marked = {id(leaf) for leaf, is_marked in pairs if is_marked}
        kwargs["solver"] = self.solver_with_stages(kwargs, "reverse")
        marks["solver"] = jax.tree.map(lambda leaf: id(leaf) in marked, kwargs["solver"])
        recorded_kwargs = with_probe(kwargs, marks) if self.probes and not saves_solver else kwargs
        out = transpose_run(
            kwargs, recorded_kwargs, saved.ts, saved.ys, final.solver_state, marks,
            is_batched(inputs),
        )  # fmt: skip
        return jax.tree.leaves(out)

    def mark_inputs(self, wanted: Marks):
        """Return a tree like the arguments of the loop, `True` where an input is marked."""
        marks = iter(wanted)
        leaves = [next(marks) if diff else False for diff in self.inexact]
        static = jax.tree.map(lambda _: False, self.static)
        return eqx.combine(jax.tree.unflatten(self.treedef, leaves), static)

    def cotangent(
        self,
        adjoint: diffrax.AbstractAdjoint,
        primals: Sequence[Any],
        others: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Marks,
    ):
        """Return cotangents of the inputs: the transposed Jacobian times `cotangents`."""
        function = lambda *x: self.run(adjoint, x, others, differentiated=wanted)[0]  # noqa: E731
        return list(jax.vjp(function, *primals)[1](list(cotangents)))


def _measure_field(kwargs: Tree) -> FieldSize | None:
    """Return the size of the vector field.

    The result is `None` for terms without a vector field and for solvers that take a `ModelTerm`.
    """
    if isinstance(unwrap(kwargs["terms"])[0], AbstractDAETerm | ModelTerm):
        return None
    state = kwargs["init_state"]
    return measure_field(kwargs["terms"], state.tprev, state.y, kwargs["args"])


def shapes_of(avals: Iterable[Any]) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes and dtypes of arrays, weak types included."""
    return [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals
    ]


def is_batched(inputs: Sequence[Any]) -> bool:
    """Return whether a primitive is being vectorised."""
    return any(isinstance(x, BatchTracer) for x in inputs)
