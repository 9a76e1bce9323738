"""Times at which the equations of a model evaluate its signals, found in their jaxpr.

A step evaluates a signal by one polynomial, which is correct if all of its calls are at the time
of the run. A module may call its signal at another time, such as `signal(t - 0.1)`. To find these
times, the equations are traced with marked calls instead of signals, and the operands of the marked
calls are expressed by the time of the run.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_context
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params, primitives as P
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..annotations import Scalar, T
from .inputs import Input
from .signal import Signal, SignalClock

_NAME = "rigidjax_call_time"
# Linear functions of one operand.
_LINEAR = (
    P.neg_p,
    P.copy_p,
    P.convert_element_type_p,
    P.broadcast_in_dim_p,
    P.reshape_p,
    P.squeeze_p,
)
_CALLS = (P.jit_p, P.custom_jvp_call_p, P.custom_vjp_call_p, P.remat_p)


def find_call_times(
    model: T,
    equations: Callable[[T, Scalar, PyTree], PyTree],
    t: ArrayLike,
    unknowns: Callable[[], PyTree],
    controlled: Collection[str] = (),
) -> T:
    """Return the model, whose signals have the times of their calls in its equations.

    Signals that are laws by themselves are called at the time of the run, and are left as they are.

    **Arguments:** `equations(model, t, y)`; `t`, any time; `unknowns`, a function that returns any
    unknowns or their shapes; `controlled`, names of inputs whose values are given during the run.
    **Errors:** `ValueError` for a signal with `extrapolation="error"` whose times are not known
    before the run, and for an input of `controlled` that is called at another time.
    """
    leaves, structure = jax.tree.flatten(model, is_leaf=lambda x: isinstance(x, Signal | Input))
    marked = list(leaves)
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Signal) and not leaf.is_law:
            shape, dtype = leaf.values.shape[1:], leaf.values.dtype
            marked[k] = _MarkedSignal(k, shape, dtype)
        elif isinstance(leaf, Input) and not leaf.is_law and leaf.name in controlled:
            marked[k] = _MarkedInput(leaf, k)
    if all(a is b for a, b in zip(marked, leaves, strict=True)):
        return model
    marked_model = jax.tree.unflatten(structure, marked)
    y = unknowns()
    jaxpr = jax.make_jaxpr(lambda t, y: equations(marked_model, t, y))(t, y)
    search = _Search(jaxpr.in_avals[0].dtype)
    arguments = [search.time, *[None] * len(jax.tree.leaves(y))]
    search.visit(jaxpr, arguments)
    for k, mark in enumerate(marked):
        times = search.calls.get(k, [])
        if isinstance(mark, _MarkedSignal):
            leaves[k] = _with_call_times(leaves[k], times)
        elif isinstance(mark, _MarkedInput) and any(_clock(time) != "run" for time in times):
            raise ValueError(
                f"A law evaluates the input {leaves[k].name!r} at another time than that of the "
                "run, but its value is known at that time only: it comes from a policy, a sampled "
                "controller, a transition, a `Stepper` or an exported model. Bind it to a number "
                "or a Signal, or delay it in the controller."
            )
    return jax.tree.unflatten(structure, leaves)


def _with_call_times(signal: Signal, times: Sequence["_Line | None"]) -> Signal:
    """Return the signal with the times of its calls."""
    if not times:
        return signal.replace(call_times="none")
    clocks: dict[Hashable, Any] = {}
    for time in times:
        clock = _clock(time)
        key = (
            clock if time is None or isinstance(clock, str) else (_key(time.rate), _key(time.shift))
        )
        clocks.setdefault(key, clock)
    if list(clocks) == ["run"]:
        return signal
    if None in clocks and signal.extrapolation == "error":
        raise ValueError(
            f"A law calls {signal.label} at times that depend on the state, or not linearly on "
            "time, so that a run could leave its table unnoticed. Give it "
            '`extrapolation="constant"` or `"zero"`.'
        )
    dtype = signal.ts.dtype
    known = tuple(
        SignalClock(None, jnp.zeros((), dtype)) if isinstance(clock, str) else clock
        for clock in clocks.values()
        if clock is not None
    )
    return signal.replace(clocks=known, call_times="any" if None in clocks else "clocks")


class _Value(NamedTuple):
    """An array that does not depend on time and state, computed when it is needed.

    **Attributes:** `number`, equal for equal values; `compute`, without arguments.
    """

    number: int
    compute: Callable[[], Any]


class _Line(NamedTuple):
    """The function `rate * t + shift` of time; `rate` is `None` for a constant."""

    rate: _Value | None
    shift: _Value


def _key(value: _Value | None) -> Hashable:
    """Return a key that is equal for equal values, a number if the value is known."""
    if value is None:
        return 0.0
    array = value.compute()
    return f"value {value.number}" if isinstance(array, Tracer) else float(array)


def _clock(time: _Line | None) -> Any:
    """Return the clock of a call, `"run"` for the time of the run, `None` if there is no clock."""
    if time is None or np.shape(time.shift.compute()) != ():
        return None
    shift = jnp.asarray(time.shift.compute())
    if time.rate is None:
        return SignalClock(jnp.zeros_like(shift), shift)
    if _key(time.rate) != 1.0:
        return SignalClock(jnp.asarray(time.rate.compute()), shift)
    return "run" if _key(time.shift) == 0.0 else SignalClock(None, shift)


@functools.cache
def _marker(k: int) -> Callable[[Array], Array]:
    def mark(t):
        return -t

    mark.__name__ = f"{_NAME} {k}"
    return jax.jit(mark)


class _MarkedSignal(eqx.Module):
    """A signal whose calls are found in a jaxpr; its value does not matter."""

    index: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    def __call__(self, t: Scalar, *state: Array) -> Float[Array, " *shape"]:
        mark = _marker(self.index)(jnp.asarray(t, self.dtype))
        return jnp.broadcast_to(mark[(..., *(None,) * len(self.shape))], mark.shape + self.shape)


class _MarkedInput(eqx.Module):
    """An input whose calls are found in a jaxpr, before and after it is bound to a value."""

    law: Any
    index: int = eqx.field(static=True)

    def __call__(self, t: Scalar, *state: Array) -> Array:
        value = self.law(t, *state)
        return value + 0 * _marker(self.index)(jnp.asarray(t, value.dtype))


CallTime: TypeAlias = _Line | None


class _Search:
    """Search of a jaxpr for marked calls, with the values of its variables as functions of time.

    **Attributes:** `calls`, the times of the calls of each mark, `None` for times that are not
    linear functions of the time of the run; `time`, the time of the run itself.
    """

    def __init__(self, dtype: Any):
        self.calls: dict[int, list[CallTime]] = {}
        self.numbers: dict[Hashable, int] = {}
        self.time = _Line(*(self._literal(np.asarray(x, dtype)) for x in (1.0, 0.0)))

    def visit(self, jaxpr: Jaxpr | ClosedJaxpr, arguments: Sequence[CallTime]) -> list[CallTime]:
        """Return the results of a jaxpr as functions of time, and record the calls in it."""
        constants: Sequence[Any] = ()
        if isinstance(jaxpr, ClosedJaxpr):
            jaxpr, constants = jaxpr.jaxpr, jaxpr.consts
        values: dict[Any, CallTime] = dict(zip(jaxpr.invars, arguments, strict=True))
        for var, constant in zip(jaxpr.constvars, constants, strict=False):
            value = self._value(("constant", id(constant)), lambda constant=constant: constant)
            values[var] = _Line(None, value)

        def read(var):
            if isinstance(var, Literal):
                return _Line(None, self._literal(np.asarray(var.val, var.aval.dtype)))  # pyright: ignore
            return values.get(var)

        for equation in jaxpr.eqns:
            results = self._results(equation, list(map(read, equation.invars)))
            values.update(zip(equation.outvars, results, strict=True))
        return list(map(read, jaxpr.outvars))

    def _results(self, equation: Any, operands: Sequence[CallTime]) -> Sequence[CallTime]:
        unknown = [None] * len(equation.outvars)
        primitive, params = equation.primitive, equation.params
        if primitive is P.jit_p and params["name"].startswith(_NAME):
            index = int(params["name"].removeprefix(_NAME))
            self.calls.setdefault(index, []).append(operands[0])
            return unknown
        if primitive in _CALLS:
            return self.visit(params.get("jaxpr", params.get("call_jaxpr")), operands)
        for jaxpr, known in _inner_jaxprs(equation, operands):
            self.visit(jaxpr, known)
        if all(x is not None and x.rate is None for x in operands):
            shifts = [x.shift for x in operands if x is not None]
            return [_Line(None, value) for value in self._bind(equation, shifts)]
        return [self._line(equation, operands)] if len(unknown) == 1 else unknown

    def _line(self, equation: Any, operands: Sequence[CallTime]) -> CallTime:
        """Return a linear function of operands of which one at least depends on time."""
        if any(x is None for x in operands):
            return None
        lines = [x for x in operands if x is not None]
        (a, *rest), primitive = lines, equation.primitive

        def bind(*values: _Value) -> _Value:
            return self._bind(equation, values)[0]

        if primitive in _LINEAR and not rest:
            if not jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.floating):
                return None
            assert a.rate is not None
            return _Line(bind(a.rate), bind(a.shift))
        if primitive in (P.mul_p, P.div_p) and None in (a.rate, rest[0].rate):
            b = rest[0]
            if a.rate is None:
                if primitive is P.div_p:
                    return None
                assert b.rate is not None
                return _Line(bind(a.shift, b.rate), bind(a.shift, b.shift))
            return _Line(bind(a.rate, b.shift), bind(a.shift, b.shift))
        if primitive in (P.add_p, P.sub_p):
            b = rest[0]
            shift = bind(a.shift, b.shift)
            if b.rate is None:
                return _Line(a.rate, shift)
            zero = self._literal(np.zeros((), equation.outvars[0].aval.dtype))
            if a.rate is None and primitive is P.add_p:
                return _Line(b.rate, shift)
            return _Line(bind(zero if a.rate is None else a.rate, b.rate), shift)
        return None

    def _bind(self, equation: Any, operands: Sequence[_Value]) -> list[_Value]:
        """Return the results of an equation of constants."""

        @functools.cache
        def results():
            values = [operand.compute() for operand in operands]
            is_traced = any(isinstance(value, Tracer) for value in values)
            with contextlib.nullcontext() if is_traced else eval_context():
                params = equation.primitive.get_bind_params(equation.params)
                found = equation.primitive.bind(*map(jnp.asarray, values), **params)
            return found if equation.primitive.multiple_results else [found]

        key = (equation.primitive, str(equation.params), *(x.number for x in operands))
        return [
            self._value((*key, k), lambda k=k: results()[k]) for k in range(len(equation.outvars))
        ]

    def _literal(self, value: np.ndarray) -> _Value:
        return self._value(("literal", str(value.dtype), str(value)), lambda: value)

    def _value(self, key: Hashable, compute: Callable[[], Any]) -> _Value:
        return _Value(self.numbers.setdefault(key, len(self.numbers)), compute)


def _inner_jaxprs(equation: Any, operands: Sequence[CallTime]) -> list[tuple[Any, list[CallTime]]]:
    """Return the jaxprs in an equation other than a call, with their arguments."""
    params, primitive = equation.params, equation.primitive
    if primitive is P.cond_p:
        return [(branch, list(operands[1:])) for branch in params["branches"]]
    if primitive is P.scan_p:
        jaxpr, count = params["jaxpr"], params["num_consts"]
        return [(jaxpr, [*operands[:count], *[None] * (len(jaxpr.jaxpr.invars) - count)])]
    if primitive is P.while_p:
        jaxpr, first, count = params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
        known = operands[first : first + count]
        return [(jaxpr, [*known, *[None] * (len(jaxpr.jaxpr.invars) - count)])]
    return [(jaxpr, [None] * len(jaxpr.invars)) for jaxpr in jaxprs_in_params(params)]
