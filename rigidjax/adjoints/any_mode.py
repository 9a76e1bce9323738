"""A diffrax adjoint that serves forward and reverse mode, of any order."""

import math
from typing import NamedTuple

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from ..native import (
    check_backend,
    choose_backend,
    register_partial_eval_split,
    why_too_large_matrices,
    why_too_many_elements,
)
from ..solvers.evaluations import base_solver
from .traced_solve import traced_solve


class AnyMode(diffrax.AbstractAdjoint):
    r"""Differentiate a solve by `jax.jvp`, `jax.grad`, or both; the default of `simulate`.

    diffrax's own adjoints serve one mode each: `ForwardMode` is fast forward, `RecursiveCheckpoint`
    is fast backward, `DirectAdjoint` does both but slows down the solve itself. This one is a
    linear operator in the tangents: it is evaluated by forward mode, transposed by checkpointed
    reverse mode (by `rigidjax.adjoints`, several times faster, for explicit Runge-Kutta methods and
    the solvers of this package), and differentiated once more by `DirectAdjoint`. All of them
    differentiate the steps that were taken (discretise, then differentiate), so they agree to
    round-off.

    Adaptive steps of a run that is differentiated are short enough for its derivatives too, in
    either mode, at an equilibrium for example, where the error of the motion is zero whatever the
    step: a random tangent of the run is integrated with it, and its error relative to its size has
    to be within a few times `rtol`. Its sum over the run is
    `sol.stats["derivative_error"]`, an estimate of the relative error of first derivatives; NaN for
    a run that is not differentiated or whose steps are given. Runs that save the state of the
    solver and structure-preserving solvers go without.

    A solve that is not differentiated costs what it costs with `ForwardMode`. Second derivatives
    take time and memory that grow with `max_steps`: choose it as small as the problem allows.

    **Arguments:** `checkpoints`, number of checkpoints of the reverse mode (see
    `diffrax.RecursiveCheckpointAdjoint`); `backend`, `"auto"`, `"native"` or `"xla"` as in
    `rj.simulate`; `controls_derivatives=False` for steps that are chosen by the error of the motion
    alone.
    """

    checkpoints: int | None = None
    backend: str = eqx.field(static=True, default="auto", converter=check_backend)
    controls_derivatives: bool = eqx.field(static=True, default=True)

    def loop(self, **kwargs: PyTree) -> tuple[PyTree, dict[str, PyTree]]:
        """The main loop of `diffrax.diffeqsolve` (its extension point for adjoints)."""
        solve, inputs = traced_solve(kwargs, self.checkpoints, self.controls_derivatives)
        implicit = isinstance(base_solver(kwargs["solver"]), diffrax.AbstractImplicitSolver)
        solve.asked = self.backend
        too_large = why_too_many_elements if implicit else why_too_large_matrices
        solve.backend = choose_backend(self.backend, solve.jaxpr, too_large)
        state, stats = solve.unflatten(_solve_p.bind(*inputs, solve=solve, moved=None))
        return state, {**stats, "backend": solve.backend}


def _zero(x):
    """Symbolic zero tangent of an array (of type float0 for integers and booleans)."""
    aval = jax.typeof(x)
    new = hasattr(aval, "to_tangent_aval")
    return ad.Zero(aval.to_tangent_aval() if new else aval.at_least_vspace())


def _instantiate(tangents, avals):
    """Tangents or cotangents with symbolic zeros (`None` under `vmap`) made into arrays."""
    return [
        jnp.zeros(aval.shape, aval.dtype) if t is None or type(t) is ad.Zero else t
        for t, aval in zip(tangents, avals, strict=True)
    ]


def _for_linear(inputs, count, cotangents):
    """Cotangents of the inputs after the first `count`; none for those that are not transposed."""
    linear = (ad.is_undefined_primal(x) for x in inputs[count:])
    return [None] * count + [
        ct if is_linear else None for ct, is_linear in zip(cotangents, linear, strict=True)
    ]


def _batched_like(vectors, inputs):
    """`vectors`, batched wherever `inputs` are.

    Otherwise the transpose of one that is shared (the model of a batch of states, say) would come
    out with a batch that nobody sums up. A factor of one that depends on all inputs does it.
    """
    mark = jnp.array(False)
    for x in inputs:
        if jnp.size(x) > 0:
            first = jnp.ravel(x)[0]
            mark = mark | (first != first.dtype.type(0))
    one = jnp.where(mark & False, 0, 1)
    return [v * one.astype(v.dtype) for v in vectors]


def _solve_impl(*inputs, solve, moved):
    return solve.evaluate(inputs, moved)


def _solve_abstract(*inputs, solve, moved):
    return list(solve.jaxpr.out_avals)


def _solve_jvp(inputs, tangents, *, solve, moved):
    primals, others, _ = solve.split(inputs)
    tangents = tangents[: solve.num_primals]
    # Those that are zero take no part: most of a model's numbers, as a rule.
    given = tuple(t is not None and type(t) is not ad.Zero for t in tangents)
    moving = _batched_like([t for t, g in zip(tangents, given, strict=True) if g], inputs)
    out = _forward_p.bind(*primals, *others, *moving, solve=solve, given=given, batches=())
    out, out_tangents = out[: solve.num_results], out[solve.num_results :]
    count = sum(solve.out_inexact)
    return out, [*out_tangents, *(_zero(x) for x in out[count:])]


def _not_linear(cotangents, *inputs, solve, moved):
    raise NotImplementedError("a solve is not linear in its inputs")


def _tangent_impl(*inputs, solve, given):
    if solve.backend == "native":
        return solve.all_tangents(inputs, given)
    return list(solve.tangent(diffrax.ForwardMode(), *solve.split(inputs), given))


def _tangent_abstract(*inputs, solve, given):
    return solve.out_avals


def _linear_jvp(primitive, map_of):
    """JVP of a primitive that is linear in its last inputs and depends on a solve's primals."""

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


def _tangent_transpose(cotangents, *inputs, solve, given):
    primals, others, _ = solve.split(inputs)
    cotangents = _instantiate(cotangents, solve.out_avals)
    cotangents = _batched_like(cotangents, [*primals, *others])
    count = len(solve.inexact)
    # Tangents that are known are zeros: those of what is not differentiated.
    unknown = iter(ad.is_undefined_primal(x) for x in inputs[count:])
    wanted = tuple(g and next(unknown) for g in given)
    out = _cotangent_p.bind(*primals, *others, *cotangents, solve=solve, wanted=wanted)
    return _for_linear(inputs, count, [x for x, g in zip(out, given, strict=True) if g])


def _cotangent_impl(*inputs, solve, wanted):
    if solve.backend == "native":
        return solve.all_cotangents(inputs, wanted)
    return solve.reverse_cotangent(inputs, wanted)


def _cotangent_abstract(*inputs, solve, wanted):
    return solve.in_avals


def _cotangent_transpose(cotangents, *inputs, solve, wanted):
    primals, others, _ = solve.split(inputs)
    cotangents = _instantiate(cotangents, solve.in_avals)
    given = (True,) * solve.num_primals
    out = _tangent_p.bind(*primals, *others, *cotangents, solve=solve, given=given)
    return _for_linear(inputs, len(solve.inexact), out)


def _tangent_jvp(*args, **kwargs):
    return _linear_jvp(
        _tangent_p,
        lambda solve, params, *inputs: solve.tangent(
            diffrax.DirectAdjoint(), *inputs, params["given"]
        ),
    )(*args, **kwargs)


def _cotangent_jvp(*args, **kwargs):
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

# Members of a batch from which on lanes are members, each with all its tangents. Fewer leave lanes
# empty: one after the other has its tangents as lanes (three tops with six tangents each take 0.77
# of the time of 18 members that each have their own values).
_MEMBERS = 8

_forward_p = Primitive("rigidjax_solve_forward")
_forward_p.multiple_results = True


class Batch(NamedTuple):
    """One `jax.vmap` of values and tangents.

    **Attributes:** `axes` of the inputs; `size`; `of_values`, whether these have the axis too.
    """

    axes: tuple[int | None, ...]
    size: int
    of_values: bool


def _forward_impl(*inputs, solve, given, batches):
    members = math.prod(batch.size for batch in batches if batch.of_values)
    several, in_turn = None, False
    if solve.backend == "native" and batches and not batches[0].of_values:
        in_turn = members < _MEMBERS
        if not in_turn:
            several, *batches = batches

    def one(*inputs):
        if several is not None:
            return solve.values_and_several_tangents(inputs, given, several.axes, several.size)
        if solve.backend == "native":
            return solve.values_and_tangents(inputs, given)
        return solve.forward(diffrax.ForwardMode(), *solve.split(inputs), given)

    for axes, size, of_values in batches:
        if in_turn and of_values:
            one = _one_by_one(one, axes)
        else:
            one = jax.vmap(one, axes, (0 if of_values else None, 0), axis_size=size)
    values, rates = one(*inputs)
    return [*values, *rates]


def _one_by_one(function, axes):
    """A function of members along these axes, one after the other."""

    def of_all(*inputs):
        moving = [jnp.moveaxis(x, a, 0) for x, a in zip(inputs, axes, strict=True) if a is not None]

        def of_one(moving):
            moving = iter(moving)
            pairs = zip(inputs, axes, strict=True)
            return function(*(x if a is None else next(moving) for x, a in pairs))

        return jax.lax.map(of_one, moving)

    return of_all


def _forward_abstract(*inputs, solve, given, batches):
    lead = tuple(batch.size for batch in reversed(batches))
    lead_of_values = tuple(batch.size for batch in reversed(batches) if batch.of_values)
    return [
        *(a.update(shape=(*lead_of_values, *a.shape)) for a in solve.jaxpr.out_avals),
        *(a.update(shape=(*lead, *a.shape)) for a in solve.out_avals),
    ]


def _forward_values(*, solve, given, batches):
    # By the steps of the derivatives, so that these are those of the values.
    function = lambda *inputs: _solve_p.bind(*inputs, solve=solve, moved=given)  # noqa: E731
    for axes, size, of_values in batches:
        if of_values:
            function = jax.vmap(function, axes[: len(solve.inexact)], axis_size=size)
    return function


def _forward_tangents(*, solve, given, batches):
    function = lambda *inputs: _tangent_p.bind(*inputs, solve=solve, given=given)  # noqa: E731
    for axes, size, _ in batches:
        function = jax.vmap(function, axes, axis_size=size)
    return function


def _forward_batched(inputs, axes, *, solve, given, batches):
    size = next(x.shape[a] for x, a in zip(inputs, axes, strict=True) if a is not None)
    of_values = any(a is not None for a in axes[: len(solve.inexact)])
    batches = (*batches, Batch(tuple(axes), size, of_values))
    out = _forward_p.bind(*inputs, solve=solve, given=given, batches=batches)
    count = solve.num_results
    return out, [0 if of_values else None] * count + [0] * (len(out) - count)


def _forward_jvp(inputs, tangents, *, solve, **params):
    moved = tuple(type(t) is not ad.Zero for t in tangents)

    def function(*values):
        values = iter(values)
        full = [next(values) if m else x for x, m in zip(inputs, moved, strict=True)]
        rates = _forward_tangents(solve=solve, **params)(*full)
        return [*_forward_values(solve=solve, **params)(*full[: len(solve.inexact)]), *rates]

    primals = [x for x, m in zip(inputs, moved, strict=True) if m]
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
