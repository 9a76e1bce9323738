"""Comparisons in laws: where a force jumps, and what it would be on the other side.

A run's derivatives have a part that comes from the times at which laws jump (a stop that is hit, a
dry friction that turns round). To find it one has to know what is compared. So the comparisons of
laws are functions of a name of their own in the program of a model's equations: what they cost is
one operation as before, and a run that is differentiated finds them again.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params, primitives as P
from jaxtyping import Array, Float

_NAME = "rigidjax_switch"
# The name of a law that compares where it cannot be seen; its kind follows.
_HIDDEN = "rigidjax_hidden_switch"
_COMPARISONS = (P.lt_p, P.le_p, P.gt_p, P.ge_p, P.sign_p)
# Their slope at zero may be infinite.
_STEEP = (P.sqrt_p, P.cbrt_p, P.pow_p)


class Switch(eqx.Module):
    r"""A law that switches: one law where a function is positive, another where it is not.

    Derivatives of runs contain those of the switching time, exactly as for a comparison
    (`x > 0`, `jnp.sign(x)`) that a law makes itself. Where a law compares inside of a loop, a
    `jax.lax.cond` or a function with derivatives of its own, this says what is compared.

    **Arguments:** `when(*args)`, a scalar that is positive where `then` holds; `then`, `otherwise`,
    laws of the same arguments, or numbers. The arguments are those of the force that it is given
    to: `Motor(torque=Switch(...))` calls with `(t, coordinate, rate)`.
    """

    when: Callable[..., Float[Array, ""]]
    then: Any
    otherwise: Any = 0.0

    @property
    def __signature__(self) -> inspect.Signature:
        """That of `when`: `Motor` counts the arguments of a law."""
        return inspect.signature(self.when)

    def __call__(self, t: Array, *args: Array) -> Array:
        """The law that holds at these arguments."""
        when = jnp.asarray(self.when(t, *args))
        is_on, _ = _switch_of(P.gt_p)(when, jnp.zeros_like(when))
        laws: tuple[Any, ...] = self.then, self.otherwise
        on, off = (jnp.asarray(law(t, *args) if callable(law) else law) for law in laws)
        return jnp.where(is_on, on, off)


def with_switches(law: Callable[..., Any], *args: Any) -> Array:
    """Return `law(*args)`, its comparisons of real numbers made known to `switches_of`."""
    closed, shape = jax.make_jaxpr(law, return_shape=True)(*args)

    hides = _has(closed.jaxpr, _hides_comparison, _call_of)
    noted = _noted(_kind(law)) if hides else (lambda out: out)

    def concerns(equation):
        return _is_comparison(equation) or equation.primitive in _STEEP

    if not _has(closed.jaxpr, concerns, _call_of):
        return noted(law(*args))

    def replace(equation, values):
        if _is_comparison(equation):
            return _switch_of(equation.primitive)(*values)[:1]
        return [_steep(functools.partial(equation.primitive.bind, **equation.params), *values)]

    program = _Program(concerns, _call_of, replace)
    out = program(closed.jaxpr, closed.consts, jax.tree.leaves(args))
    return noted(jax.tree.unflatten(jax.tree.structure(shape), out))


class Switches(eqx.Module):
    """Results of a function and of the comparisons in it.

    **Attributes:** `out`, its results; `differences` (K,), of what is compared, zero where the
    result of a comparison changes; `sides` (K,), results of the comparisons: 1, 0, or
    1/2 for a `sign` of zero.
    """

    out: Any
    differences: Float[Array, " K"]
    sides: Float[Array, " K"]


def has_switches(function: Callable[..., Any], *args: Any) -> bool:
    """Whether laws compare numbers in `function(*args)`."""
    return _has(jax.make_jaxpr(function)(*args).jaxpr, _is_switch, _any_call_of)


def hidden_switches(function: Callable[..., Any], *args: Any) -> frozenset[str]:
    """Names of laws in `function(*args)` that compare numbers inside of a loop, say."""
    names: list[str] = []

    def note(equation):
        name = str(equation.params.get("name"))
        if name.startswith(_HIDDEN):
            names.append(name.removeprefix(_HIDDEN).strip())
        return False

    _has(jax.make_jaxpr(function)(*args).jaxpr, note, _any_call_of)
    return frozenset(names)


def switches_of(
    function: Callable[..., Any], *args: Any, sides: Float[Array, " K"] | None = None
) -> Switches:
    """Return `function(*args)` and the comparisons of laws in it.

    `sides`, (K,): results that comparisons shall have, whatever is compared.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    differences, found = [], []
    start = 0

    def replace(equation, values):
        nonlocal start
        side, difference = equation.primitive.bind(*values, **equation.params)
        is_sign = side.dtype != bool
        differences.append(jnp.ravel(difference))
        found.append(jnp.ravel(0.5 * (side + 1.0) if is_sign else side))
        if sides is not None:
            forced = sides[start : start + side.size].reshape(side.shape)
            start += side.size
            side = (2.0 * forced - 1.0).astype(side.dtype) if is_sign else forced > 0.5
        return [side, difference]

    program = _Program(_is_switch, _any_call_of, replace)
    leaves = jax.tree.leaves(args)
    out = program(closed.jaxpr, closed.consts, leaves)
    dtype = jnp.result_type(*differences, *map(jnp.asarray, leaves))
    none = jnp.zeros(0, dtype)
    join = lambda xs: jnp.concatenate([none, *(x.astype(dtype) for x in xs)])  # noqa: E731
    return Switches(
        jax.tree.unflatten(jax.tree.structure(shape), out), join(differences), join(found)
    )


@functools.cache
def _switch_of(primitive):
    """A comparison that has a name: its result, and the difference of what it compares."""

    def switch(*values):
        values = jnp.broadcast_arrays(*values)
        difference = values[0] - values[1] if len(values) == 2 else values[0]
        return primitive.bind(*values), difference

    switch.__name__ = _NAME
    return jax.jit(switch)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _steep(bind, x, *exponent):
    """A root or a power whose derivative at zero is zero where it is infinite.

    A run that starts there, at rest for example, stays for no time: what its derivatives are is
    decided behind it, where slopes are steep but finite.
    """
    return bind(x, *exponent)


@_steep.defjvp
def _steep_jvp(bind, primals, tangents):
    x, *exponent = primals
    is_infinite = x == 0
    if exponent:
        is_infinite &= exponent[0] < 1
    beside = jnp.where(is_infinite, jnp.ones_like(x), x)
    rate = jax.jvp(bind, (beside, *exponent), tangents)[1]
    return _steep(bind, *primals), jnp.where(is_infinite, jnp.zeros_like(rate), rate)


def _is_comparison(equation):
    return equation.primitive in _COMPARISONS and jnp.issubdtype(
        equation.invars[0].aval.dtype, jnp.floating
    )


def _is_switch(equation):
    return equation.params.get("name") == _NAME


def _hides_comparison(equation):
    """Whether numbers are compared inside of a loop, say, that gives more than places in tables."""
    inner = jaxprs_in_params(equation.params)
    gives_numbers = any(jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in equation.outvars)
    if equation.primitive is P.jit_p or not gives_numbers:
        return False
    return any(
        _is_comparison(one) or _hides_comparison(one) for jaxpr in inner for one in jaxpr.eqns
    )


@functools.cache
def _noted(kind):
    """What a law of this kind gives, marked as that of one whose comparisons are hidden."""

    def same(out):
        return out

    same.__name__ = f"{_HIDDEN} {kind}"
    return jax.jit(same)


def _kind(law):
    function = getattr(law, "function", law)
    return getattr(function, "__qualname__", type(function).__name__)


def _call_of(equation):
    """The program of a plain call, `None` for any other equation."""
    is_call = equation.primitive is P.jit_p and not _is_switch(equation)
    return equation.params["jaxpr"] if is_call else None


def _any_call_of(equation):
    """The program of a call, with derivatives of its own or for several platforms too."""
    if equation.primitive is P.cond_p:
        platforms = equation.params.get("branches_platforms")
        return platforms and equation.params["branches"][platforms.index(None)]
    if _is_switch(equation) or equation.primitive not in (P.jit_p, P.custom_jvp_call_p, P.remat_p):
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))


def _open(program) -> tuple[Jaxpr, Sequence[Any]]:
    return (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, ())


def _has(jaxpr, wanted, call_of):
    calls = (call_of(equation) for equation in jaxpr.eqns)
    return any(map(wanted, jaxpr.eqns)) or any(
        _has(_open(call)[0], wanted, call_of) for call in calls if call is not None
    )


class _Program(NamedTuple):
    """A way to evaluate programs: what `concerns` it is replaced, also inside of calls."""

    concerns: Callable[..., bool]
    call_of: Callable[..., Any]
    replace: Callable[..., Sequence[Array]]

    def __call__(self, jaxpr, consts, args):
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

        def value(var):
            return var.val if isinstance(var, Literal) else values[var]

        for equation in jaxpr.eqns:
            given = [value(var) for var in equation.invars]
            call = self.call_of(equation)
            if self.concerns(equation):
                out = self.replace(equation, given)
            elif call is not None and _has(_open(call)[0], self.concerns, self.call_of):
                # For several platforms, the number of the own one is the first argument.
                out = self(*_open(call), given[1:] if equation.primitive is P.cond_p else given)
            else:
                params = equation.primitive.get_bind_params(equation.params)
                out = equation.primitive.bind(*given, **params)
                out = out if equation.primitive.multiple_results else [out]
            values.update(zip(equation.outvars, out, strict=True))
        return [value(var) for var in jaxpr.outvars]
