"""Evaluate laws so that their switching functions can be recovered from a jaxpr.

If a force jumps where a law compares two values, derivatives of a run contain the derivative of the
switching time. `evaluate_law` wraps each comparison in a `jax.jit` call with a reserved name. The
wrapped comparison is still a single operation; a run that is differentiated searches the jaxpr of
its vector field for these calls.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    jaxprs_in_params,
    primitives as P,
)
from jaxtyping import Array, Float

from ..annotations import Scalar

_NAME = "rigidjax_switch"
# Prefix of the name that marks the value of a law with a comparison that cannot be wrapped.
_HIDDEN = "rigidjax_hidden_switch"
# Name of calls whose comparisons do not make a law jump.
_SMOOTH = "rigidjax_smooth"
_COMPARISONS = (P.lt_p, P.le_p, P.gt_p, P.ge_p, P.sign_p)
# Primitives whose derivative at zero may be infinite.
_STEEP = (P.sqrt_p, P.cbrt_p, P.pow_p)


class Switch(eqx.Module):
    r"""A law with a declared switching function.

    Derivatives of runs contain the derivative of the switching time. A comparison in the body of a
    law, such as `x > 0` or `jnp.sign(x)`, does not need this class. Use it if a law would compare
    values inside a loop, in a branch of `jax.lax.cond` or in a function with a custom derivative.

    **Arguments:** `when(*args)`, the switching function, a scalar; `then`, the law for positive
    values of `when`, a function of the same arguments or a scalar; `otherwise`, the law for the
    others, likewise. The force defines the arguments: `Motor(torque=Switch(...))` passes
    `(t, coordinate, rate)`.
    """

    when: Callable[..., Scalar]
    then: Any
    otherwise: Any = 0.0

    @property
    def __signature__(self) -> inspect.Signature:
        """Signature of `when`; `Motor` counts the parameters of a law."""
        return inspect.signature(self.when)

    def __call__(self, t: Array, *args: Array) -> Array:
        """Evaluate the law that applies at these arguments."""
        when = jnp.asarray(self.when(t, *args))
        is_on, _ = _wrapped_comparison(P.gt_p)(when, jnp.zeros_like(when))
        laws: tuple[Any, ...] = self.then, self.otherwise
        on, off = (jnp.asarray(law(t, *args) if callable(law) else law) for law in laws)
        return jnp.where(is_on, on, off)


def evaluate_law(law: Callable[..., Any], *args: Any) -> Any:
    """Evaluate a law of a model; every function that a user gives as a force comes through here.

    Comparisons of real values are wrapped for `find_switches`. Roots and powers get the derivative
    zero where it is infinite.
    """
    closed, shape = jax.make_jaxpr(law, return_shape=True)(*args)

    def matches(equation):
        return _is_comparison(equation) or equation.primitive in _STEEP

    def replace(equation, values):
        if _is_comparison(equation):
            return _wrapped_comparison(equation.primitive)(*values)[:1]
        bind = functools.partial(equation.primitive.bind, **equation.params)
        return [_with_finite_derivative(bind, *values)]

    if _contains(closed.jaxpr, matches, _plain_call):
        rewriting = _Rewriting(matches, _plain_call, replace)
        leaves = rewriting(closed.jaxpr, closed.consts, jax.tree.leaves(args))
        value = jax.tree.unflatten(jax.tree.structure(shape), leaves)
    else:
        value = law(*args)
    if _contains(closed.jaxpr, _hides_comparison, _plain_call):
        value = _marked_as_hidden(_law_name(law))(value)
    return value


def jit_without_switches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled function, whose comparisons do not count as jumps of a law."""

    def smooth(*args):
        return function(*args)

    smooth.__name__ = _SMOOTH
    return jax.jit(smooth)


class Switches(eqx.Module):
    """Value of a function, and the K scalar comparisons that laws make in it.

    **Attributes:** `value`, of the function; `functions` (K,), the switching functions, left side
    of each comparison minus right side; `sides` (K,), the results of the comparisons: 1 or 0, and
    1/2 for `sign(0)`.
    """

    value: Any
    functions: Float[Array, " K"]
    sides: Float[Array, " K"]


def find_switches(function: Callable[..., Any], *args: Any) -> tuple[bool, list[str]]:
    """Search the jaxpr of `function(*args)` for comparisons in laws.

    **Returns:** whether there are any, and the names of laws with comparisons that `evaluate_law`
    could not wrap.
    """
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    names: set[str] = set()

    def add_hidden(equation):
        name = str(equation.params.get("name"))
        if name.startswith(_HIDDEN):
            names.add(name.removeprefix(_HIDDEN).strip())
        return False

    _contains(jaxpr, add_hidden, _any_call)
    return _contains(jaxpr, _is_switch, _any_call), sorted(names)


def evaluate_switches(
    function: Callable[..., Any], *args: Any, sides: Float[Array, " K"] | None = None
) -> Switches:
    """Evaluate `function(*args)` and the switching functions of its laws.

    With `sides`, (K,), `function` is evaluated with these results of the comparisons instead of
    the actual ones: the vector field on the other side of a jump.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    functions, actual = [], []
    start = 0

    def replace(equation, values):
        nonlocal start
        side, difference = equation.primitive.bind(*values, **equation.params)
        is_sign = side.dtype != bool
        functions.append(jnp.ravel(difference))
        actual.append(jnp.ravel(0.5 * (side + 1.0) if is_sign else side))
        if sides is not None:
            forced = sides[start : start + side.size].reshape(side.shape)
            start += side.size
            side = (2.0 * forced - 1.0).astype(side.dtype) if is_sign else forced > 0.5
        return [side, difference]

    leaves = jax.tree.leaves(args)
    out = _Rewriting(_is_switch, _any_call, replace)(closed.jaxpr, closed.consts, leaves)
    value = jax.tree.unflatten(jax.tree.structure(shape), out)
    dtype = jnp.result_type(*functions, *map(jnp.asarray, leaves))

    def concatenate(arrays):
        return jnp.concatenate([jnp.zeros(0, dtype), *(x.astype(dtype) for x in arrays)])

    return Switches(value, concatenate(functions), concatenate(actual))


@functools.cache
def _wrapped_comparison(primitive: Primitive) -> Callable[..., tuple[Array, Array]]:
    """Return a jitted comparison that returns its result and the difference of its operands."""

    def switch(*values):
        values = jnp.broadcast_arrays(*values)
        difference = values[0] - values[1] if len(values) == 2 else values[0]
        return primitive.bind(*values), difference

    switch.__name__ = _NAME
    return jax.jit(switch)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _with_finite_derivative(bind: Callable[..., Array], x: Array, *exponent: Array) -> Array:
    """Evaluate a root or a power; its derivative at zero is zero if it would be infinite.

    A run passes through such a point, rest for example, in no time. Its derivatives depend on the
    neighbourhood, where the slope is large and finite.
    """
    return bind(x, *exponent)


@_with_finite_derivative.defjvp
def _with_finite_derivative_jvp(
    bind: Callable[..., Array], primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[Array, Array]:
    x, *exponent = primals
    is_infinite = x == 0
    if exponent:
        is_infinite &= exponent[0] < 1
    # Differentiate at a harmless argument, since zero times infinity is NaN.
    harmless = jnp.where(is_infinite, jnp.ones_like(x), x)
    tangent = jax.jvp(bind, (harmless, *exponent), tangents)[1]
    tangent = jnp.where(is_infinite, jnp.zeros_like(tangent), tangent)
    return _with_finite_derivative(bind, *primals), tangent


def _is_comparison(equation: Any) -> bool:
    return equation.primitive in _COMPARISONS and jnp.issubdtype(
        equation.invars[0].aval.dtype, jnp.floating
    )


def _is_switch(equation: JaxprEqn) -> bool:
    return equation.params.get("name") == _NAME


def _hides_comparison(equation: Any) -> bool:
    """Return whether a sub-jaxpr of an equation other than `jit` compares real values.

    Sub-jaxprs with integer results are left out: a binary search in a table does not jump.
    """
    has_real_result = any(jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in equation.outvars)
    if equation.primitive is P.jit_p or not has_real_result:
        return False
    inner = [e for jaxpr in jaxprs_in_params(equation.params) for e in jaxpr.eqns]
    return any(_is_comparison(e) or _hides_comparison(e) for e in inner)


@functools.cache
def _marked_as_hidden(law_name: str) -> Callable[[Any], Any]:
    """Return a jitted identity whose name tells which law has comparisons that are not wrapped."""

    def identity(value):
        return value

    identity.__name__ = f"{_HIDDEN} {law_name}"
    return jax.jit(identity)


def _law_name(law: Callable[..., Any]) -> str:
    function = getattr(law, "function", law)
    return getattr(function, "__qualname__", type(function).__name__)


def _plain_call(equation: JaxprEqn) -> Any:
    """Return the jaxpr that a `jit` equation calls, `None` for other equations."""
    is_call = equation.primitive is P.jit_p and equation.params["name"] not in (_NAME, _SMOOTH)
    return equation.params["jaxpr"] if is_call else None


def _any_call(equation: JaxprEqn) -> Any:
    """Return the jaxpr that an equation calls, `None` if it is no call.

    Besides `jit` these are functions with a custom derivative, `jax.checkpoint`, and the default
    branch of `jax.lax.platform_dependent`.
    """
    if equation.primitive is P.cond_p:
        platforms = equation.params.get("branches_platforms")
        return platforms and equation.params["branches"][platforms.index(None)]
    if _is_switch(equation) or equation.primitive not in (P.jit_p, P.custom_jvp_call_p, P.remat_p):
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))


def _jaxpr_and_constants(jaxpr: Jaxpr | ClosedJaxpr) -> tuple[Jaxpr, Sequence[Any]]:
    return (jaxpr.jaxpr, jaxpr.consts) if isinstance(jaxpr, ClosedJaxpr) else (jaxpr, ())


def _contains(
    jaxpr: Jaxpr, matches: Callable[[JaxprEqn], bool], call: Callable[[JaxprEqn], Any]
) -> bool:
    """Return whether an equation of the jaxpr matches, or one of the jaxprs that it calls."""
    calls = [inner for inner in map(call, jaxpr.eqns) if inner is not None]
    return any(map(matches, jaxpr.eqns)) or any(
        _contains(_jaxpr_and_constants(inner)[0], matches, call) for inner in calls
    )


class _Rewriting(NamedTuple):
    """Evaluation of jaxprs with other results for equations that match, also within calls.

    **Attributes:** `matches(equation)`; `call(equation)`, the jaxpr that an equation calls, or
    `None`; `replace(equation, values)`, the results for an equation and its operands.
    """

    matches: Callable[..., bool]
    call: Callable[..., Any]
    replace: Callable[..., Sequence[Array]]

    def __call__(self, jaxpr: Jaxpr, consts: Sequence[Array], args: Sequence[Array]):
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

        def value(var):
            return var.val if isinstance(var, Literal) else values[var]

        for equation in jaxpr.eqns:
            operands = [value(var) for var in equation.invars]
            inner = self.call(equation)
            if self.matches(equation):
                results = self.replace(equation, operands)
            elif inner is not None and self._matches_within(inner):
                # The first operand of `platform_dependent` is the number of the platform.
                skipped = 1 if equation.primitive is P.cond_p else 0
                results = self(*_jaxpr_and_constants(inner), operands[skipped:])
            else:
                params = equation.primitive.get_bind_params(equation.params)
                results = equation.primitive.bind(*operands, **params)
                results = results if equation.primitive.multiple_results else [results]
            values.update(zip(equation.outvars, results, strict=True))
        return [value(var) for var in jaxpr.outvars]

    def _matches_within(self, inner: Jaxpr | ClosedJaxpr) -> bool:
        return _contains(_jaxpr_and_constants(inner)[0], self.matches, self.call)
