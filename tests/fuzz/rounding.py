"""Effect of rounding errors on a function, as the measure of a difference between two backends.

A reference is computed several times with random errors of a few units in the last place in every
operation that rounds (Monte Carlo arithmetic: Parker, Pierce, Eggert, Computing in Science and
Engineering 2, 2000). Its spread is the difference that rounding explains, whatever the conditioning
of the function. Where signs of zero, subnormal values, or decisions between equal values change an
integer or a NaN, the spread shows it, and the element is undecided.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

DRAWS, MANY_DRAWS = 6, 192
# Errors put into an operation, in units in the last place; correct roundings have half a unit.
UNITS = 4.0
# The spread of the draws underestimates the largest possible error.
FACTOR = 8.0

_state = threading.local()


def _size_and_phase() -> tuple[Any, Any]:
    return _state.size, _state.phase


def _pattern(x: Any, salt: float, phase: Any) -> Any:
    """Return numbers between -1 and 1, of the shape of `x`."""
    index = jnp.arange(x.size, dtype=jnp.float64).reshape(x.shape)
    return jnp.cos(phase + 12.9898 * salt + 78.233 * index)


def _scale(x: Any, salt: float, size: Any, phase: Any) -> Any:
    eps = jnp.finfo(x.dtype).eps
    u = eps * size * _pattern(x, salt, phase)
    if jnp.iscomplexobj(x):
        u = u + 1j * eps * size * _pattern(x, salt + 0.3, phase)
    return u.astype(x.dtype)


def _perturbed_zero(x: Any, y: Any, size: Any, positive: Any, least: Any = 0.0) -> Any:
    """Choose signs of zeros, and zero for numbers that some processors flush, at random.

    Also for those up to `least`.
    """
    zero = jnp.where(positive, 0.0, -0.0).astype(x.dtype)
    flushed = ((jnp.abs(x) < jnp.finfo(x.dtype).tiny) | (jnp.abs(x) <= least)) & positive
    return jnp.where((size > 0) & ((x == 0) | flushed), zero, y)


@jax.custom_jvp
def _near(x, salt, size, phase):
    y = x + x * _scale(x, salt, size, phase)
    y = jnp.where(jnp.isfinite(y), y, x)
    positive = _pattern(x, salt + 0.7, phase) > 0
    if jnp.iscomplexobj(x):
        # A part that is as small as the errors of the other one may vanish, as in x / x.
        least = size * jnp.finfo(x.dtype).eps * jnp.maximum(jnp.abs(x.real), jnp.abs(x.imag))
        least = jnp.where(jnp.isfinite(least), least, 0.0)
        parts = ((x.real, y.real), (x.imag, y.imag))
        return jax.lax.complex(*(_perturbed_zero(*p, size, positive, least) for p in parts))
    return _perturbed_zero(x, y, size, positive)


@jax.custom_jvp
def _near_norm(x, salt, size, phase):
    largest = jnp.max(jnp.abs(x), initial=0.0).astype(x.dtype)
    y = x + largest * _scale(x, salt, size, phase)
    return jnp.where(jnp.isfinite(y), y, x)


def _scaled_tangent(function: Callable) -> None:
    @function.defjvp
    def _(primals, tangents):
        x, salt, size, phase = primals
        # Infinite tangents stay so.
        change = tangents[0] * (1 + _scale(x, salt + 0.5, size, phase))
        return function(x, salt, size, phase), change


_scaled_tangent(_near)
_scaled_tangent(_near_norm)


def near(x: Any, salt: float, units: float = UNITS) -> Any:
    """Change each element by a few units in the last place."""
    size, phase = _size_and_phase()
    return _near(x, float(salt), units * size, phase)


def near_norm(x: Any, salt: float, units: float = UNITS) -> Any:
    """Change each element by a few units in the last place of the largest one."""
    size, phase = _size_and_phase()
    return _near_norm(x, float(salt), units * size, phase)


def doubtful(x: Any, is_wrong: Any, salt: float) -> Any:
    """Leave elements open: in one half of the draws they are NaN, or 1 if XLA has NaN."""
    size, phase = _size_and_phase()
    hidden = is_wrong & (size > 0) & (_pattern(x, float(salt), phase) > 0)
    return jnp.where(hidden, jnp.where(jnp.isnan(x), 1.0, jnp.nan).astype(x.dtype), x)


def with_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of `size` and `phase` of the errors in front of its arguments."""

    def call_with_errors(size, phase, *args):
        _state.size, _state.phase = size, phase
        try:
            return function(*args)
        finally:
            del _state.size, _state.phase

    return call_with_errors


def draws(function: Callable[..., Any], args: Sequence[Any], count: int, seed: int) -> list:
    """Return results of a compiled `with_errors` function: without errors, then `count` draws."""
    phases = np.random.default_rng(seed).uniform(0.0, 1_000.0, count + 1)
    sizes = np.minimum(np.arange(count + 1), 1.0)
    results = [
        jax.tree.map(np.asarray, function(size, phase, *args))
        for size, phase in zip(sizes, phases, strict=True)
    ]
    return [np.stack(leaves) for leaves in zip(*map(jax.tree.leaves, results), strict=True)]


class Verdict(NamedTuple):
    """Elements compared: how many, how many of these rounding leaves undecided, those that fail."""

    elements: int
    undecided: int
    wrong: np.ndarray
    allowed: np.ndarray


def compare(actual: Any, drawn: np.ndarray) -> Verdict:
    """Compare an array with draws of its reference, in which the first has no errors."""
    actual, reference = np.asarray(actual), drawn[0]
    if actual.shape != reference.shape or actual.dtype != reference.dtype:
        everywhere = np.ones(reference.shape or (1,), bool)
        return Verdict(reference.size, 0, everywhere, np.zeros(reference.shape))
    if reference.dtype.kind == "c":
        # Errors are relative to the absolute value: the parts have one allowance.
        parts = [compare(part(actual), part(drawn)) for part in (np.real, np.imag)]
        allowed = np.maximum(parts[0].allowed, parts[1].allowed)
        open_ = np.isnan(parts[0].allowed) | np.isnan(parts[1].allowed)
        wrong = np.zeros(reference.shape, bool)
        for part, verdict in zip((np.real, np.imag), parts, strict=True):
            with np.errstate(all="ignore"):
                distance = np.abs(part(actual) - part(reference))
                far = ~(distance <= allowed) & np.isfinite(part(reference))
            wrong |= verdict.wrong & (far | ~np.isfinite(part(reference)))
        return Verdict(reference.size, int(open_.sum()), wrong & ~open_, allowed)
    if reference.dtype.kind != "f":
        open_ = np.any(drawn != reference, axis=0)
        allowed = np.where(open_, np.nan, 0.0)
        return Verdict(reference.size, int(open_.sum()), (actual != reference) & ~open_, allowed)
    with np.errstate(all="ignore"):
        info = np.finfo(reference.dtype)
        finite = np.isfinite(reference)
        kind = np.where(np.isnan(drawn), 2.0, np.where(np.isinf(drawn), np.sign(drawn), 0.0))
        spread = np.max(np.abs(drawn - reference), axis=0, where=finite, initial=0.0)
        allowed = FACTOR * spread.astype(float) + 4.0 * info.eps * np.abs(reference) + info.tiny
        open_ = np.any(kind != kind[0], axis=0) | (finite & ~np.isfinite(allowed))
        # A value without a correct digit may be zero, and what divides by it not finite.
        open_ |= finite & ~np.isfinite(actual) & (spread > 0) & (allowed >= np.abs(reference))
        equal = np.where(
            finite,
            np.abs(actual.astype(float) - reference) <= allowed,
            (actual == reference) | (np.isnan(actual) & np.isnan(reference)),
        )
    allowed = np.where(open_, np.nan, allowed)
    return Verdict(reference.size, int(open_.sum()), ~equal & ~open_, allowed)
