"""A random function as a kernel against XLA: values of a batch and of one member, derivatives."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rigidjax import native
from rigidjax.native.jaxrules import primitive
from rigidjax.native.primitives.registry import NoRule
from rigidjax.native.values.lanes import Lanes, is_constant

from . import rounding
from .blocks import as_function
from .generate import Case

# Errors of JAX for a derivative that does not exist in a mode, or a dtype without a rule.
NOT_IN_JAX = (NotImplementedError, TypeError, ValueError)
MOST_COLUMNS = 12


class Failure(NamedTuple):
    """A difference, or an exception.

    **Attributes:** `kind`, "value" or the name of the exception; `form`, see `check`; `message`;
    `output` and `member` that differ, -1 where there is none.
    """

    kind: str
    form: str
    message: str
    output: int = -1
    member: int = -1


class Outcome(NamedTuple):
    """Elements compared, how many rounding leaves undecided, and the first failure.

    **Attributes:** `skipped`, why nothing was compared, or "".
    """

    elements: int = 0
    undecided: int = 0
    failure: Failure | None = None
    skipped: str = ""


def derivative(function: Callable[..., tuple], mode: str) -> Callable[..., Any]:
    """Return a function of the same arguments: its results, or a derivative along with them."""
    if mode == "":
        return function

    def differentiate(*args):
        real = [k for k, x in enumerate(args) if jnp.asarray(x).dtype.kind == "f"]

        def of_real(*chosen):
            full = list(args)
            for k, x in zip(real, chosen, strict=True):
                full[k] = x
            results = function(*full)
            return tuple(y for y in results if y.dtype.kind == "f")

        return _MODES[mode](of_real, tuple(jnp.asarray(args[k]) for k in real))

    return differentiate


def _jvp(function, xs):
    # One rounding: the same numbers in every program.
    return jax.jvp(function, xs, tuple(0.5 * x + _direction(x) for x in xs))


def _vjp(function, xs):
    values, pull_back = jax.vjp(function, *xs)
    return values, pull_back(tuple(_direction(y) for y in values))


def _jacobian(function, xs):
    """By columns of the smallest argument: many tangents at one point."""
    k = min(range(len(xs)), key=lambda k: (xs[k].size == 0, xs[k].size))
    if xs[k].size > MOST_COLUMNS:
        return _jvp(function, xs)
    return jax.jacfwd(function, argnums=k)(*xs)


def _hessian(function, xs):
    """The product of the Hessian and a vector, of a sum of results."""

    def total(*xs):
        values = function(*xs)
        return sum((jnp.sum(_direction(y) * jnp.sin(y)).astype(float) for y in values), 0.0)

    def gradient(*xs):
        return jax.grad(total, argnums=tuple(range(len(xs))))(*xs)

    return _jvp(gradient, xs)[1]


def _direction(y):
    return jnp.asarray(np.cos(np.arange(1.0, y.size + 1.0)).reshape(y.shape), y.dtype)


_MODES = {"jvp": _jvp, "vjp": _vjp, "jacobian": _jacobian, "hessian": _hessian}


def batch_of(function: Callable[..., Any], case: Case) -> Callable[..., Any]:
    """Return the function of the whole batch; the function itself where there is none."""
    return _batch(function, case.batched) if case.batch else function


def _batch(function: Callable[..., Any], batched: Sequence[bool]) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=[0 if b else None for b in batched])


def member(case: Case, k: int) -> list[np.ndarray]:
    """Return the arguments of one member."""
    return [x[k] if b else x for x, b in zip(case.arguments, case.batched, strict=True)]


def _map_in_loop(function: Callable[..., tuple], batched: Sequence[bool]) -> Callable[..., tuple]:
    """Return the function of the batch as a loop, whose iterations kernels run in lanes."""

    def map_rows(*args):
        rows = [x for x, b in zip(args, batched, strict=True) if b]

        def apply_to_row(row):
            row = iter(row)
            return function(*(next(row) if b else x for x, b in zip(args, batched, strict=True)))

        return jax.lax.map(apply_to_row, rows)

    return native.jit(map_rows)


def _mix_with_uniform(
    function: Callable[..., tuple], batched: Sequence[bool]
) -> Callable[..., tuple]:
    """Return the function of the batch as a kernel with one more argument and result, which is the
    same for all batch elements, so that uniform values are computed as scalars."""

    def with_uniform(uniform, *args):
        return (2.0 * uniform, *function(*args))

    def apply_with_uniform(*args):
        uniform = jnp.arange(3.0)
        first = [x[0] if b else x for x, b in zip(args, batched, strict=True)]
        (size,) = {len(x) for x, b in zip(args, batched, strict=True) if b}
        closed = jax.make_jaxpr(with_uniform)(uniform, *first)
        _, *results = primitive.native_call_p.bind(
            uniform, *map(jnp.asarray, args), closed=closed, batched=(False, *batched),
            size=size, num_linear=0, mode=primitive.LoweringMode(True, False, False, False, 0),
            primal_counts=(1, 1),
        )  # fmt: skip
        return tuple(results)

    return apply_with_uniform


def in_form(
    form: str, function: Callable[..., tuple], mode: str, batched: Sequence[bool]
) -> Callable[..., Any]:
    """Return a function, or its derivative, as a kernel in one of the forms of `check`; "xla"
    returns what the results of a batch are compared with."""
    if form in ("mapped", "mixed"):
        return (_map_in_loop if form == "mapped" else _mix_with_uniform)(function, batched)
    program = derivative(function if form == "xla" else native.jit(function), mode)
    return _batch(program, batched) if any(batched) and form != "member" else program


def forms_of(case: Case, seed: int) -> tuple[str, ...]:
    """Return in which forms a case is run as a kernel."""
    if not case.batch:
        return ("batch",)
    if case.mode:
        return ("batch", "member") if seed % 2 else ("batch",)
    return ("batch", "member", ("mapped", "mixed", "batch")[seed % 3])[: 3 if seed % 3 < 2 else 2]


def check(case: Case, seed: int = 0, forms: tuple[str, ...] | None = None) -> Outcome:
    """Compare the kernel with XLA in several forms: "batch" by `jax.vmap`, one "member" of it,
    "mapped" by `jax.lax.map` inside the kernel, "mixed" with a uniform argument."""
    noisy = "operands" if case.mode else "results"
    function = as_function(case.block)
    names = dict(near=rounding.near, near_norm=rounding.near_norm, doubtful=rounding.doubtful)
    disturbed = as_function(case.block, noisy, **names)
    of = functools.partial(derivative, mode=case.mode)
    reference = jax.jit(rounding.with_errors(batch_of(of(disturbed), case)))
    try:
        drawn = rounding.draws(reference, case.arguments, rounding.DRAWS, seed)
    except NOT_IN_JAX as error:
        if not case.mode:
            raise
        return Outcome(skipped=f"{type(error).__name__}: {str(error)[:200]}")
    elements = undecided = 0
    chosen = seed % case.batch if case.batch else -1
    for form in forms_of(case, seed) if forms is None else forms:
        program = in_form(form, function, case.mode, case.batched)
        args, expected = case.arguments, drawn
        if form == "member":
            args, expected = member(case, chosen), [x[:, chosen] for x in drawn]
        try:
            actual = _results(program, args)
        except NoRule as error:
            if not case.mode:
                return Outcome(elements, undecided, Failure("NoRule", form, str(error)))
            # The derivative has a primitive that the function has not.
            return Outcome(elements, undecided, skipped=f"NoRule: {error}")
        except Exception as error:
            message = f"{type(error).__name__}: {str(error)[:500]}"
            if case.mode and _fails_in_jax(of(function), case, type(error)):
                # Rounding, which has its own derivatives, cut the path to it.
                return Outcome(elements, undecided, skipped=message)
            return Outcome(elements, undecided, Failure(type(error).__name__, form, message))
        for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
            verdict = rounding.compare(a, e)
            if verdict.wrong.any():
                more = rounding.draws(reference, case.arguments, rounding.MANY_DRAWS, seed + 1)[k]
                e = more[:, chosen] if form == "member" else more
                verdict = rounding.compare(a, e)
            if verdict.wrong.any() and np.isnan(e[0][verdict.wrong]).all():
                verdict = _without_symbolic_zeros(case, form, args, k, e)
            if verdict.wrong.any():
                verdict = _by_single_operations(case, form, args, k, a, verdict)
            elements += verdict.elements
            undecided += verdict.undecided
            if verdict.wrong.any():
                at = tuple(int(i) for i in np.argwhere(verdict.wrong)[0])
                failure = _difference(a, e[0], verdict, k, form, at, chosen)
                return Outcome(elements, undecided, failure)
    return Outcome(elements, undecided)


def _fails_in_jax(function: Callable[..., Any], case: Case, kind: type[Exception]) -> bool:
    """Return whether JAX has no such derivative either."""
    try:
        jax.eval_shape(batch_of(function, case), *case.arguments)
    except NOT_IN_JAX as error:
        return type(error) is kind
    return False


def _results(program: Callable[..., Any], args) -> list[np.ndarray]:
    return jax.tree.leaves(jax.tree.map(np.asarray, jax.jit(program)(*args)))


_calls = itertools.count()


@contextlib.contextmanager
def _products_with_zero() -> Iterator[None]:
    """Emit products with a constant that is zero: kernels take them for zero (docs/native.md)."""
    product = Lanes.mul

    def mul(self, dtype, a, b):
        if np.dtype(dtype).kind == "f" and is_constant(a) != is_constant(b):
            a, b = self.value(a, dtype), self.value(b, dtype)
        return product(self, dtype, a, b)

    Lanes.mul = mul
    try:
        yield
    finally:
        Lanes.mul = product


def _without_symbolic_zeros(case: Case, form: str, args, k: int, drawn) -> rounding.Verdict:
    """Compare a result again where XLA has NaN and the kernel a number: undecided if that is due to
    a product of a constant zero with something that is not finite."""
    function, mark = as_function(case.block), float(next(_calls)) + 0.5
    # The mark makes it another function, so that no kernel is reused.
    program = in_form(
        form, lambda *xs: (*function(*xs), jnp.full((), mark)), case.mode, case.batched
    )
    with _products_with_zero():
        actual = _results(program, args)
    variables = case.block.variables()
    kinds = [np.dtype(variables[k].dtype).kind for k in case.block.outputs]
    if case.mode != "hessian":
        # Drop the mark: it follows the function's results and precedes its derivatives.
        del actual[kinds.count("f") if case.mode else len(kinds)]
    verdict = rounding.compare(actual[k], drawn)
    if verdict.wrong.any():
        return verdict
    return verdict._replace(undecided=verdict.elements)


def _by_single_operations(
    case: Case, form: str, args, k: int, actual: np.ndarray, verdict: rounding.Verdict
) -> rounding.Verdict:
    """Compare a result again with XLA one operation at a time: undecided where the kernel agrees.

    XLA then computes another value when it compiles the whole: it takes a product with a converted
    Boolean for a choice, and has been seen to confuse rows of concatenated slices.
    """
    program = in_form("xla", as_function(case.block), case.mode, case.batched)
    if form == "member":
        program = derivative(as_function(case.block), case.mode)
    with jax.disable_jit():
        plain = np.asarray(jax.tree.leaves(program(*args))[k])
    if plain.shape != actual.shape or plain.dtype != actual.dtype:
        return verdict
    with np.errstate(all="ignore"):
        near = np.abs(actual.astype(complex) - plain) <= np.nan_to_num(verdict.allowed)
    agrees = (actual == plain) | near | (np.isnan(actual) & np.isnan(plain))
    if (verdict.wrong & ~agrees).any():
        return verdict
    undecided = verdict.undecided + int(verdict.wrong.sum())
    return verdict._replace(undecided=undecided, wrong=np.zeros_like(verdict.wrong))


def _difference(actual, expected, verdict, output, form, at, chosen) -> Failure:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        message = (
            f"result {output} of the kernel: {actual.dtype}{actual.shape}, "
            f"of XLA: {expected.dtype}{expected.shape}"
        )
        return Failure("value", form, message, output, chosen)
    message = (
        f"result {output}{list(at)} of the kernel ({form}): {actual[at]!r}, of XLA: "
        f"{expected[at]!r}; rounding allows {verdict.allowed[at]:.3g}"
    )
    where = chosen if form == "member" or chosen < 0 else at[0]
    return Failure("value", form, message, output, where)
