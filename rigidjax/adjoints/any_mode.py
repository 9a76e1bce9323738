"""A diffrax adjoint that serves forward and reverse mode, of any order."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, PyTree

from ..native import (
    check_backend,
    choose_backend,
    register_partial_eval_split,
    why_too_large_matrices,
    why_too_many_elements,
)
from ..solvers.wrappers.counting import base_solver
from .traced_solve import Marks, TracedSolve, trace_solve


class AnyMode(diffrax.AbstractAdjoint):
    r"""Differentiate a solve by `jax.jvp`, `jax.grad`, or both; the default of `simulate`.

    Each adjoint of diffrax serves one mode: `ForwardMode` is fast in forward mode,
    `RecursiveCheckpointAdjoint` in reverse mode, and `DirectAdjoint` supports both but slows down
    the solve itself. This adjoint is a linear operator of the tangents. It is evaluated in forward
    mode, transposed by reverse mode (by `rigidjax.adjoints` for explicit Runge-Kutta methods and
    the solvers of this package, otherwise with checkpoints), and differentiated once more by
    `DirectAdjoint`. All modes differentiate the steps that were made (first discretise, then
    differentiate), so that they agree to round-off.

    The adaptive steps of a differentiated run are short enough for its derivatives too, in both
    modes, for example at an equilibrium, where the error of the motion is zero for every step size:
    a random tangent of the run is integrated with it, and its relative error has to be within a few
    times `rtol`. The sum of this error over the run is `sol.stats["derivative_error"]`, an estimate
    of the relative error of first derivatives. It is NaN for a run that is not differentiated or
    has given steps. There is no such error control for runs that save the state of the solver and
    for structure-preserving solvers.

    A solve that is not differentiated is as fast as with `ForwardMode`. The time and memory of
    second derivatives grow with `max_steps`, which should be as small as the problem allows.

    **Arguments:** `checkpoints`, number of checkpoints of the reverse mode (see
    `diffrax.RecursiveCheckpointAdjoint`); `backend`, `"auto"`, `"native"` or `"xla"` as in
    `rj.simulate`; `controls_derivatives=False` for steps that are chosen by the error of the motion
    alone.
    """

    checkpoints: int | None = None
    backend: str = eqx.field(static=True, default="auto", converter=check_backend)
    controls_derivatives: bool = eqx.field(static=True, default=True)

    def loop(self, **kwargs: PyTree) -> tuple[PyTree, dict[str, PyTree]]:
        """Run the main loop of `diffrax.diffeqsolve` (its extension point for adjoints)."""
        solve, inputs = trace_solve(
            kwargs, self.checkpoints, self.controls_derivatives, self.backend
        )
        implicit = isinstance(base_solver(kwargs["solver"]), diffrax.AbstractImplicitSolver)
        too_large = why_too_many_elements if implicit else why_too_large_matrices
        solve.backend = choose_backend(self.backend, solve.jaxpr, too_large)
        state, stats = solve.unflatten(_solve_p.bind(*inputs, solve=solve, differentiated=None))
        return state, {**stats, "backend": solve.backend}


def _zero(x: Array):
    """Return the symbolic zero tangent of an array (of type float0 for integers and booleans)."""
    aval = jax.typeof(x)
    new = hasattr(aval, "to_tangent_aval")
    return ad.Zero(aval.to_tangent_aval() if new else aval.at_least_vspace())


def _instantiate(tangents: Sequence[Any], avals: Iterable[Any]):
    """Replace symbolic zeros (`None` under `vmap`) among tangents or cotangents by arrays."""
    return [
        jnp.zeros(aval.shape, aval.dtype) if t is None or type(t) is ad.Zero else t
        for t, aval in zip(tangents, avals, strict=True)
    ]


def _linear_cotangents(inputs: Sequence[Any], count: int, cotangents: Sequence[Any]):
    """Return cotangents of the linear inputs, `None` for the first `count` and other inputs."""
    linear = (ad.is_undefined_primal(x) for x in inputs[count:])
    return [None] * count + [
        ct if is_linear else None for ct, is_linear in zip(cotangents, linear, strict=True)
    ]


def _batch_like(vectors: list[Array], inputs: Sequence[Any]):
    """Return `vectors` with the batch axes of `inputs`.

    Without them, the transpose of an input without a batch axis (such as the model of a batch of
    states) would have a batch axis that is not summed. The vectors are multiplied by a factor of 1
    that depends on all inputs.
    """
    mark = jnp.array(False)
    for x in inputs:
        if jnp.size(x) > 0:
            first = jnp.ravel(x)[0]
            mark = mark | (first != first.dtype.type(0))
    factor = jnp.where(mark & False, 0, 1)
    return [v * factor.astype(v.dtype) for v in vectors]


def _solve_impl(*inputs: Sequence[Any], solve: TracedSolve, differentiated: Marks | None):
    return solve.evaluate(inputs, differentiated)


def _solve_abstract(*inputs: Sequence[Any], solve: TracedSolve, differentiated: Marks | None):
    return list(solve.jaxpr.out_avals)


def _solve_jvp(
    inputs: Sequence[Any],
    tangents: Sequence[Any],
    *,
    solve: TracedSolve,
    differentiated: Marks | None,
):
    primals, others, _ = solve.split(inputs)
    tangents = tangents[: solve.num_primals]
    # Inputs with zero tangents, usually most parameters of a model, are left out.
    with_tangent = tuple(t is not None and type(t) is not ad.Zero for t in tangents)
    moving = _batch_like([t for t, g in zip(tangents, with_tangent, strict=True) if g], inputs)
    out = _forward_p.bind(
        *primals, *others, *moving, solve=solve, with_tangent=with_tangent, batches=()
    )
    out, out_tangents = out[: solve.num_results], out[solve.num_results :]
    count = sum(solve.out_inexact)
    return out, [*out_tangents, *(_zero(x) for x in out[count:])]


def _not_linear(
    cotangents: Sequence[Any],
    *inputs: Sequence[Any],
    solve: TracedSolve,
    differentiated: Marks | None,
):
    raise NotImplementedError("a solve is not linear in its inputs")


def _tangent_impl(*inputs: Sequence[Any], solve: TracedSolve, with_tangent: Marks):
    if solve.backend == "native":
        return solve.all_tangents(inputs, with_tangent)
    return list(solve.tangent(diffrax.ForwardMode(), *solve.split(inputs), with_tangent))


def _tangent_abstract(*inputs: Sequence[Any], solve: TracedSolve, with_tangent: Marks):
    return solve.out_avals


def _linear_jvp(primitive: Primitive, map_of: Callable[..., Iterable[Array]]):
    """Return the JVP rule of a primitive that is linear in its last inputs and depends on primals.

    **Arguments:** `primitive`; `map_of`, its function in terms of differentiable operations.
    """

    def jvp(inputs, tangents, *, solve, **params):
        primals, others, vectors = solve.split(inputs)
        primal_tangents, _, vector_tangents = solve.split(tangents)
        out = primitive.bind(*inputs, solve=solve, **params)
        total = None
        if not all(type(t) is ad.Zero for t in vector_tangents):
            total = primitive.bind(
                *primals,
                *others,
                *_instantiate(vector_tangents, map(jax.typeof, vectors)),
                solve=solve,
                **params,
            )
        if not all(type(t) is ad.Zero for t in primal_tangents):
            function = lambda *x: list(map_of(solve, params, x, others, vectors))  # noqa: E731
            second = jax.jvp(
                function, list(primals), _instantiate(primal_tangents, solve.in_avals)
            )[1]
            total = second if total is None else [a + b for a, b in zip(total, second, strict=True)]
        if total is None:
            total = [_zero(x) for x in out]
        return out, total

    return jvp


def _tangent_transpose(
    cotangents: Sequence[Any], *inputs: Sequence[Any], solve: TracedSolve, with_tangent: Marks
):
    primals, others, _ = solve.split(inputs)
    cotangents = _instantiate(cotangents, solve.out_avals)
    cotangents = _batch_like(cotangents, [*primals, *others])
    count = len(solve.inexact)
    # Tangents that are not transposed belong to inputs without derivatives, and are zero.
    unknown = iter(ad.is_undefined_primal(x) for x in inputs[count:])
    wanted = tuple(g and next(unknown) for g in with_tangent)
    out = _cotangent_p.bind(*primals, *others, *cotangents, solve=solve, wanted=wanted)
    return _linear_cotangents(
        inputs, count, [x for x, g in zip(out, with_tangent, strict=True) if g]
    )


def _cotangent_impl(*inputs: Sequence[Any], solve: TracedSolve, wanted: Marks):
    if solve.backend == "native":
        return solve.all_cotangents(inputs, wanted)
    return solve.reverse_cotangent(inputs, wanted)


def _cotangent_abstract(*inputs: Sequence[Any], solve: TracedSolve, wanted: Marks):
    return solve.in_avals


def _cotangent_transpose(
    cotangents: Sequence[Any], *inputs: Sequence[Any], solve: TracedSolve, wanted: Marks
):
    primals, others, _ = solve.split(inputs)
    cotangents = _instantiate(cotangents, solve.in_avals)
    with_tangent = (True,) * solve.num_primals
    out = _tangent_p.bind(*primals, *others, *cotangents, solve=solve, with_tangent=with_tangent)
    return _linear_cotangents(inputs, len(solve.inexact), out)


def _tangent_jvp(*args: Any, **kwargs: Any):
    return _linear_jvp(
        _tangent_p,
        lambda solve, params, *inputs: solve.tangent(
            diffrax.DirectAdjoint(), *inputs, params["with_tangent"]
        ),
    )(*args, **kwargs)


def _cotangent_jvp(*args: Any, **kwargs: Any):
    return _linear_jvp(
        _cotangent_p,
        lambda solve, params, *inputs: solve.cotangent(
            diffrax.DirectAdjoint(), *inputs, params["wanted"]
        ),
    )(*args, **kwargs)


_solve_p = eqxi.create_vprim(
    "rigidjax_solve", _solve_impl, _solve_abstract, _solve_jvp, _not_linear
)
_tangent_p = eqxi.create_vprim(
    "rigidjax_solve_tangent", _tangent_impl, _tangent_abstract, _tangent_jvp, _tangent_transpose
)
_cotangent_p = eqxi.create_vprim(
    "rigidjax_solve_cotangent",
    _cotangent_impl,
    _cotangent_abstract,
    _cotangent_jvp,
    _cotangent_transpose,
)


# Values and tangents in one loop.

# Smallest batch of points whose elements are vectorised. In a smaller batch the points are computed
# one after the other with their tangents vectorised, because vectors of points would not be filled.
_MIN_VECTORISED = 8

_forward_p = Primitive("rigidjax_solve_forward")
_forward_p.multiple_results = True


class Batch(NamedTuple):
    """One `jax.vmap` of values and tangents.

    **Attributes:** `axes` of the inputs; `size`; `of_values`, whether values are batched too.
    """

    axes: tuple[int | None, ...]
    size: int
    of_values: bool


def _forward_impl(
    *inputs: Sequence[Any], solve: TracedSolve, with_tangent: Marks, batches: Sequence["Batch"]
):
    num_points = math.prod(batch.size for batch in batches if batch.of_values)
    tangent_batch, sequential = None, False
    if solve.backend == "native" and batches and not batches[0].of_values:
        sequential = num_points < _MIN_VECTORISED
        if not sequential and solve.stacks_tangents:
            tangent_batch, *batches = batches

    def evaluate(*inputs):
        if tangent_batch is not None:
            return solve.values_and_several_tangents(
                inputs, with_tangent, tangent_batch.axes, tangent_batch.size
            )
        if solve.backend == "native":
            return solve.values_and_tangents(inputs, with_tangent)
        return solve.forward(diffrax.ForwardMode(), *solve.split(inputs), with_tangent)

    for axes, size, of_values in batches:
        if sequential and of_values:
            evaluate = _map_sequentially(evaluate, axes)
        else:
            evaluate = jax.vmap(evaluate, axes, (0 if of_values else None, 0), axis_size=size)
    values, rates = evaluate(*inputs)
    return [*values, *rates]


def _map_sequentially(function: Callable[..., Any], axes: Sequence[int | None]):
    """Return a function that maps `function` over these axes of its inputs sequentially."""

    def map_all(*inputs):
        moving = [jnp.moveaxis(x, a, 0) for x, a in zip(inputs, axes, strict=True) if a is not None]

        def call_one(moving):
            moving = iter(moving)
            pairs = zip(inputs, axes, strict=True)
            return function(*(x if a is None else next(moving) for x, a in pairs))

        return jax.lax.map(call_one, moving)

    return map_all


def _forward_abstract(
    *inputs: Sequence[Any], solve: TracedSolve, with_tangent: Marks, batches: Sequence["Batch"]
):
    lead = tuple(batch.size for batch in reversed(batches))
    lead_of_values = tuple(batch.size for batch in reversed(batches) if batch.of_values)
    return [
        *(a.update(shape=(*lead_of_values, *a.shape)) for a in solve.jaxpr.out_avals),
        *(a.update(shape=(*lead, *a.shape)) for a in solve.out_avals),
    ]


def _forward_values(*, solve: TracedSolve, with_tangent: Marks, batches: Sequence["Batch"]):
    # The values use the steps of the derivatives, so that both belong to one discretisation.
    function = lambda *inputs: _solve_p.bind(*inputs, solve=solve, differentiated=with_tangent)  # noqa: E731
    for axes, size, of_values in batches:
        if of_values:
            function = jax.vmap(function, axes[: len(solve.inexact)], axis_size=size)
    return function


def _forward_tangents(*, solve: TracedSolve, with_tangent: Marks, batches: Sequence["Batch"]):
    function = lambda *inputs: _tangent_p.bind(*inputs, solve=solve, with_tangent=with_tangent)  # noqa: E731
    for axes, size, _ in batches:
        function = jax.vmap(function, axes, axis_size=size)
    return function


def _forward_batched(
    inputs: Sequence[Any],
    axes: Sequence[int | None],
    *,
    solve: TracedSolve,
    with_tangent: Marks,
    batches: Sequence["Batch"],
):
    size = next(x.shape[a] for x, a in zip(inputs, axes, strict=True) if a is not None)
    of_values = any(a is not None for a in axes[: len(solve.inexact)])
    batches = (*batches, Batch(tuple(axes), size, of_values))
    out = _forward_p.bind(*inputs, solve=solve, with_tangent=with_tangent, batches=batches)
    count = solve.num_results
    return out, [0 if of_values else None] * count + [0] * (len(out) - count)


def _forward_jvp(
    inputs: Sequence[Any], tangents: Sequence[Any], *, solve: TracedSolve, **params: Any
):
    differentiated = tuple(type(t) is not ad.Zero for t in tangents)

    def function(*values):
        values = iter(values)
        full = [next(values) if m else x for x, m in zip(inputs, differentiated, strict=True)]
        rates = _forward_tangents(solve=solve, **params)(*full)
        return [*_forward_values(solve=solve, **params)(*full[: len(solve.inexact)]), *rates]

    primals = [x for x, m in zip(inputs, differentiated, strict=True) if m]
    return jax.jvp(function, primals, [t for t in tangents if type(t) is not ad.Zero])


_forward_p.def_impl(_forward_impl)
_forward_p.def_abstract_eval(_forward_abstract)
mlir.register_lowering(_forward_p, mlir.lower_fun(_forward_impl, multiple_results=True))
batching.primitive_batchers[_forward_p] = _forward_batched
ad.primitive_jvps[_forward_p] = _forward_jvp
register_partial_eval_split(
    _forward_p,
    lambda *, solve, **_: (len(solve.inexact), solve.num_results),
    _forward_values,
    _forward_tangents,
)
