"""Measured functions of time: tables of samples with interpolation."""

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..annotations import Count, Flag, Jump, Scalar, T, Time
from ..checks import ArrayInput, as_leaf, check_sample_times, finite_leaf, is_traced
from .switches import jit_without_switches

Interpolation = Literal["linear", "hold", "cubic"]
Extrapolation = Literal["error", "constant", "zero"]
CallTimes = Literal["run", "clocks", "any", "none"]

# A run may exceed a table by this multiple of machine precision.
_ROUND_OFF = 100


class TablePosition(NamedTuple):
    """Position of a time among the samples of a table.

    **Attributes:** `passed`, number of samples at or before the time; `before`, whether it precedes
    the first sample; `after`, whether it follows the last one; `knot`, time of the last sample at
    or before it, s (of the first sample if there is none).
    """

    passed: Count
    before: Flag
    after: Flag
    knot: Scalar


class SignalClock(eqx.Module):
    """The time at which a law calls a signal, `rate * t + shift` at the time `t` of the run.

    **Arguments:** `rate`, a scalar, `None` for 1; `shift`, s.
    """

    rate: Scalar | None
    shift: Scalar

    def __call__(self, t: Time) -> Time:
        return (t if self.rate is None else self.rate * t) + self.shift


class Signal(eqx.Module):
    r"""The function of time $g\,x(t - \tau) + b$ of a table $x$ of samples.

    A signal can be the law of a force, torque, motor or moment (`rj.PointForce`, `rj.Torque`,
    `rj.Motor`, `moment` of `rj.FixedPointBody`) or, if it is `"cubic"`, of a prescribed motion, by
    itself or as a field of an Equinox module. `rj.simulate` ends its steps at the samples, where
    the function is not smooth. It does not find a signal in the closure of a plain function.
    A module may call its signal at another time than that of the run, such as `signal(t - 0.1)` or
    `signal(2 * t)`. Steps end at its samples if this time is `a * t + b`, with `a` and `b`
    independent of time and state; for other times the step-size control alone bounds the error.

    Each entry of a table with n columns is a law of its own, `signal[k]`. The entries share the
    times of the table, which a run searches once for all of them:

    ```python
    torques = rj.Signal(ts, values)  # values of shape (K, 12)
    motors = [rj.Motor(hinge, torques[k]) for k, hinge in enumerate(hinges)]
    ```

    **Arguments:**

    - `ts`: times of the samples, (K,) with K > 1, s, strictly increasing. Derivatives with respect
      to them are zero.
    - `values`: (K,) for a number, (K, n) for n numbers, such as the 3 components of a vector.
    - `interpolation`: `"linear"`; `"hold"`, each value until the next sample; `"cubic"`, the
      twice continuously differentiable spline whose third derivative is continuous at the second
      and the last but one sample.
    - `gain`, $g$, a number.
    - `bias`, $b$, a number or (n,), in the unit of the values.
    - `delay`, $\tau$, s; a leaf that can be fitted if it is given, `None` for no delay.
    - `extrapolation`: value of $x$ before the first and after the last sample: `"error"` (a run
      that leaves the table raises an error, or ends with a named result, and a call of the signal
      beyond the table returns NaN), `"constant"`, the nearest sample, or `"zero"`.
    - `name`: the name under which `rj.Measurements(inputs=...)` gives every run its own table.

    **Returns**, when called with a time (further arguments are ignored): a number, or (n,).
    **Raises:** `ValueError` for wrong shapes, times out of order and values that are not finite.
    **Source:** spline: de Boor, A Practical Guide to Splines, 1978, ch. IV ("not-a-knot").
    """

    ts: Float[Array, " K"]
    values: Float[Array, "K *shape"]
    slopes: Float[Array, "K *shape"] | None
    gain: Scalar
    delay: Scalar | None
    bias: Float[Array, " *shape"]
    interpolation: Interpolation = eqx.field(static=True)
    extrapolation: Extrapolation = eqx.field(static=True)
    name: str = eqx.field(static=True)
    entry: tuple[int, int] | None = eqx.field(static=True)
    """Index of the entry of a table, and the number of its columns; `None` for a whole table."""
    table: int | None = eqx.field(static=True)
    """Number of the table whose times are shared; see `shared_tables.number_tables`."""
    is_law: bool = eqx.field(static=True)
    """Whether it is a law by itself, which is evaluated at the time of the system alone."""
    clocks: tuple[SignalClock, ...]
    """Times of its calls within a run, set by `call_times.find_call_times`; empty for the time of
    the run alone."""
    call_times: CallTimes = eqx.field(static=True)
    """Times of its calls within a run: that of the `"run"`, those of its `"clocks"`, `"any"` times,
    or `"none"` in the equations."""

    def __init__(
        self,
        ts: ArrayInput,
        values: ArrayInput,
        interpolation: Interpolation = "linear",
        *,
        gain: ArrayLike = 1.0,
        delay: ArrayLike | None = None,
        bias: ArrayInput = 0.0,
        extrapolation: Extrapolation = "error",
        name: str = "",
    ):
        for argument, value, known in (
            ("interpolation", interpolation, get_args(Interpolation)),
            ("extrapolation", extrapolation, get_args(Extrapolation)),
        ):
            if value not in known:
                raise ValueError(
                    f"`Signal({argument}=...)` must be one of {', '.join(map(repr, known))}; got "
                    f"{value!r}."
                )
        if not isinstance(name, str):
            raise TypeError(f"`Signal(name=...)` must be a text; got {name!r}.")
        self.ts = as_leaf(check_sample_times(ts, "Signal(ts=...)"))
        self.values = _checked_values(values, len(self.ts))
        self.slopes = _spline_slopes(self.ts, self.values) if interpolation == "cubic" else None
        self.gain, shape = _number(gain, "gain"), self.values.shape[1:]
        self.delay = None if delay is None else _number(delay, "delay")
        self.bias = _number(bias, "bias", (), shape)
        self.interpolation, self.extrapolation, self.name = interpolation, extrapolation, name
        self.entry = self.table = None
        self.is_law, self.clocks, self.call_times = False, (), "run"

    def __getitem__(self, index: int) -> "Signal":
        """Return the function of one entry of a table of shape (K, n), which shares its times.

        **Errors:** `TypeError` for a table of shape (K,), or an index that is not an integer;
        `IndexError` for an index out of range.
        """
        if self.values.ndim != 2:
            raise TypeError(
                "Only a Signal with values of shape (K, n) has entries; got values of shape "
                f"{self.values.shape}."
            )
        count = self.values.shape[1]
        try:
            k = range(count)[operator.index(index)]
        except TypeError as error:
            raise TypeError(
                f"The entry of a Signal is an integer, as in `signal[2]`; got {index!r}."
            ) from error
        except IndexError as error:
            raise IndexError(
                f"`signal[{index}]`: the Signal has {count} entries, numbered from 0."
            ) from error
        bias = self.bias[k] if self.bias.ndim else self.bias
        slopes = None if self.slopes is None else self.slopes[:, k]
        return self.replace(values=self.values[:, k], slopes=slopes, bias=bias, entry=(k, count))

    def replace(self, **fields: Any) -> "Signal":
        """Return a copy with other values of these fields, static ones too, unchecked."""
        copy = object.__new__(Signal)
        for field in dataclasses.fields(self):
            value = fields.get(field.name, getattr(self, field.name))
            object.__setattr__(copy, field.name, value)
        return copy

    @property
    def shape_of_table(self) -> tuple[int, ...]:
        """Shape of a sample of the table, `()` or `(n,)`; for an entry that of the whole table."""
        return self.values.shape[1:] if self.entry is None else (self.entry[1],)

    @property
    def label(self) -> str:
        """Name for messages."""
        return f"the Signal {self.name!r}" if self.name else "a Signal without a name"

    @property
    def jumps(self) -> bool:
        """Whether the function is discontinuous at samples."""
        return self.interpolation == "hold" or self.extrapolation == "zero"

    def freeze(self, t0: Time, t1: Time) -> "Signal | Piece | Pieces":
        """Return the polynomials of its calls in a step without samples from `t0` to `t1`.

        The signal itself if it is called at any time.
        """
        if self.call_times in ("any", "none"):
            return self
        if self.call_times == "run":
            return self.piece(t0)
        # At the ends of a step, the time of a call differs from that of a sample by round-off in
        # either direction.
        pieces = tuple(self.piece(clock(0.5 * (t0 + t1))) for clock in self.clocks)
        if len(pieces) == 1:
            return pieces[0]
        low, high = zip(*self.call_intervals(t0, t1), strict=True)
        return Pieces(pieces, *(jax.lax.stop_gradient(jnp.stack(ends)) for ends in (low, high)))

    def call_intervals(self, t0: Time, t1: Time) -> list[tuple[Time, Time]]:
        """Return the first and the last time of its calls between two times of the run, a pair for
        each clock."""
        if self.call_times == "run":
            return [(t0, t1)]
        ends = [(clock(t0), clock(t1)) for clock in self.clocks]
        return [(jnp.minimum(a, b), jnp.maximum(a, b)) for a, b in ends]

    def knot(self, index: Count) -> Scalar:
        """Return the time of a sample with the delay, s; infinite for indices after the last."""
        last = len(self.ts) - 1
        ts = jax.lax.stop_gradient(self.ts)
        t = jnp.where(index > last, jnp.inf, ts[jnp.clip(index, 0, last)])
        return t if self.delay is None else t + self.delay

    def span(self) -> tuple[Time, Time]:
        """Return the first and the last time of the table with the delay, s."""
        xp = jnp if is_traced(self) else np
        ts, delay = xp.asarray(self.ts), 0.0 if self.delay is None else xp.asarray(self.delay)
        return ts[0] + delay, xp.max(xp.where(xp.isfinite(ts), ts, ts[0])) + delay

    def run_exceeds_table(self, t0: Time, t1: Time) -> Jump | np.bool_:
        """Return whether a run from `t0` to `t1` leaves a table with `extrapolation="error"`."""
        (first, last), allowed = self.span(), _ROUND_OFF * jnp.finfo(self.ts.dtype).eps
        exceeds: Jump | np.bool_ = np.bool_(False)
        for low, high in self.call_intervals(t0, t1):
            early = first - low > allowed * (abs(first) + abs(low))
            exceeds = exceeds | early | (high - last > allowed * (abs(last) + abs(high)))
        return (self.extrapolation == "error") & exceeds

    def check_reach(self, run: str, t0: float, t1: float) -> None:
        """Raise `ValueError` if a run leaves a table with `extrapolation="error"`.

        **Arguments:** `run`, the name of the run in the message; `t0`, `t1`, its times, s.
        """
        if self.run_exceeds_table(t0, t1):
            first, last = (float(t) for t in self.span())
            raise ValueError(
                f"{run} from {t0:g} to {t1:g} s goes beyond the table of {self.label}, which "
                f"covers {first:g} to {last:g} s with its delay. Give it more samples, or "
                'set `extrapolation="constant"` or `"zero"`.'
            )

    def locate(self, t: ArrayLike) -> TablePosition:
        """Locate a time in the table by bisection."""
        low = jnp.zeros(jnp.shape(t), int)
        high = low + len(self.ts)
        for _ in range(len(self.ts).bit_length()):
            middle = (low + high) // 2
            passed = (low < high) & (self.knot(middle) <= t)
            low, high = jnp.where(passed, middle + 1, low), jnp.where(passed, high, middle)
        # Tables of several runs are padded with infinite times to a common length.
        after = ~jnp.isfinite(self.knot(low))
        return TablePosition(low, low == 0, after, self.knot(jnp.maximum(low - 1, 0)))

    def step_exceeds_table(self, t0: Time, t1: Time, ends_at_samples: bool) -> Flag:
        """Return whether a step from `t0` to `t1` leaves a table with `extrapolation="error"`.

        With `ends_at_samples` no sample lies inside a step, and one search of the table is enough.
        """
        exceeds = jnp.array(False)
        if self.extrapolation == "error":
            for interval in self.call_intervals(t0, t1):
                exceeds |= self.exceeds(*interval, ends_at_samples and self.call_times == "run")
        return exceeds

    def exceeds(self, t0: Time, t1: Time, ends_at_samples: bool = False) -> Flag:
        """Return whether `t0` precedes the table or `t1` follows it, by more than round-off."""
        start = self.locate(t0)
        end = start if ends_at_samples else self.locate(t1)
        allowed = _ROUND_OFF * jnp.finfo(self.ts.dtype).eps
        early = start.knot - t0 > allowed * (jnp.abs(start.knot) + jnp.abs(t0))
        late = t1 - end.knot > allowed * (jnp.abs(end.knot) + jnp.abs(t1))
        return (start.before & early) | (end.after & late)

    def jumps_between(self, t0: Time, t1: Time) -> Flag:
        """Return whether a sample lies between two times of the run."""
        jumps = jnp.array(False)
        for low, high in self.call_intervals(t0, t1):
            jumps |= self.locate(low).passed != self.locate(high).passed
        return jumps

    def piece(self, t: ArrayLike, position: TablePosition | None = None) -> "Piece":
        """Return the polynomial of the function from `t` to the next sample.

        **Arguments:** `t`, time, s; `position`, that of `t` in the table if it has been located.
        """
        last, position = len(self.ts) - 1, self.locate(t) if position is None else position
        if self.interpolation == "hold":
            k = jnp.clip(position.passed - 1, 0, last)
            coefficients = [self.values[k]]
        else:
            # Round-off may take `t` past the table: the last piece continues there.
            k = jnp.clip(
                position.passed - 1 - position.after.astype(position.passed.dtype), 0, last - 1
            )
            coefficients = self._polynomial(k)
        if self.extrapolation != "error":
            outside = position.before | position.after
            edge = jnp.where(
                position.before, self.values[0], self.values[jnp.clip(position.passed, 1) - 1]
            )
            edge = edge if self.extrapolation == "constant" else jnp.zeros_like(edge)
            constant = [edge, *[jnp.zeros_like(edge)] * (len(coefficients) - 1)]
            coefficients = [
                jnp.where(outside, a, b) for a, b in zip(constant, coefficients, strict=True)
            ]
        first, *higher = coefficients
        scaled = [self.gain * first + self.bias, *(self.gain * c for c in higher)]
        return Piece(self.knot(k), tuple(scaled))

    def _polynomial(self, k: Count) -> list[Array]:
        ts = jax.lax.stop_gradient(self.ts)
        h, v0, v1 = ts[k + 1] - ts[k], self.values[k], self.values[k + 1]
        h = jnp.where(jnp.isfinite(h), h, 1.0)
        mean = (v1 - v0) / h
        if self.slopes is None:
            return [v0, mean]
        m0, m1 = self.slopes[k], self.slopes[k + 1]
        return [v0, m0, (3 * mean - 2 * m0 - m1) / h, (m0 + m1 - 2 * mean) / (h * h)]

    def __call__(self, t: Scalar, *state: Array) -> Float[Array, " *shape"]:
        return _evaluate(self, t)


def _look_up(signal: Signal, t: Scalar) -> Float[Array, " *shape"]:
    """Return the value of a signal by a search of its table, NaN beyond a table without values."""
    value = signal.piece(t)(t)
    if signal.is_law or signal.extrapolation != "error":
        return value  # A run does not leave the table of a law: it ends with a named result.
    return jnp.where(signal.exceeds(t, t), jnp.nan, value)


# The comparisons of the search are no jumps.
_evaluate = jit_without_switches(_look_up)


class Piece(eqx.Module):
    """A polynomial in the time since `start`, s; `coefficients` in ascending powers."""

    start: Scalar
    coefficients: tuple[Array, ...]

    def __call__(self, t: Scalar, *state: Array) -> Array:
        s = t - self.start
        *lower, total = self.coefficients
        for c in reversed(lower):
            total = c + s * total
        return total


class Pieces(eqx.Module):
    """The polynomials of a signal that is called at several times.

    **Arguments:** `pieces`, one for each clock; `low`, `high`, s, the interval of the times of its
    calls within a step. A call is served by the nearest interval: those that overlap belong to one
    polynomial, because the step contains no samples.
    """

    pieces: tuple[Piece, ...]
    low: Float[Array, " C"]
    high: Float[Array, " C"]

    def __call__(self, t: Scalar, *state: Array) -> Array:
        return _evaluate_nearest(self, t)


def _nearest_piece(of: Pieces, t: Scalar) -> Array:
    """Return the value of the polynomial whose interval is the nearest to a time."""
    distance = jnp.maximum(jnp.maximum(of.low - t, t - of.high), 0.0)
    value, nearest = of.pieces[0](t), distance[0]
    for piece, other in zip(of.pieces[1:], distance[1:], strict=True):
        value, nearest = jnp.where(other < nearest, piece(t), value), jnp.minimum(other, nearest)
    return value


_evaluate_nearest = jit_without_switches(_nearest_piece)


def signals_of(tree: PyTree) -> list[Signal]:
    """Return all signals in a pytree, in its order."""
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=_is_signal) if _is_signal(leaf)]


def with_signals(tree: T, replace: Callable[[Signal], PyTree]) -> T:
    """Return the pytree with each signal replaced."""
    return jax.tree.map(
        lambda leaf: replace(leaf) if _is_signal(leaf) else leaf, tree, is_leaf=_is_signal
    )


def check_motion_signals(kind: str, motion: PyTree) -> None:
    """Raise `ValueError` if a prescribed motion is a signal without rates at all times."""
    for signal in signals_of(motion):
        if signal.interpolation != "cubic" or signal.extrapolation != "error":
            raise ValueError(
                f"`{kind}(motion=...)` needs a motion with velocities and accelerations: a Signal "
                'of interpolation="cubic" and extrapolation="error"; got '
                f'"{signal.interpolation}" and "{signal.extrapolation}".'
            )


def _is_signal(leaf: object) -> bool:
    return isinstance(leaf, Signal)


def _number(value: ArrayInput, argument: str, *shapes: tuple[int, ...]) -> Array:
    return finite_leaf(value, f"Signal({argument}=...)", *(shapes or ((),)))


def _checked_values(values: ArrayInput, count: int) -> Array:
    shape = np.shape(values)
    if len(shape) not in (1, 2) or shape[0] != count or 0 in shape:
        raise ValueError(
            f"`Signal(values=...)` must have shape ({count},) or ({count}, n), a row for each "
            f"sample; got {shape}."
        )
    return finite_leaf(values, "Signal(values=...)", shape)


def _spline_slopes(ts: Array, values: Array) -> Array:
    """Return the slopes of the cubic spline at the samples, "not-a-knot" at both ends."""
    h = jnp.diff(ts)
    wide = h.reshape(-1, *(1,) * (values.ndim - 1))
    d = jnp.diff(values, axis=0) / wide
    if len(ts) == 2:
        return jnp.stack([d[0], d[0]])
    if len(ts) == 3:
        # Both end conditions coincide: the spline is one parabola.
        bend = (d[1] - d[0]) / (h[0] + h[1])
        return jnp.stack([d[0] - h[0] * bend, d[0] + h[0] * bend, d[1] + h[1] * bend])

    def end(a, b, da, db):
        both = a + b
        return ((a + 2 * both) * b * da + a * a * db) / both

    inner = 3 * (wide[1:] * d[:-1] + wide[:-1] * d[1:])
    first, final = end(h[0], h[1], d[0], d[1]), end(h[-1], h[-2], d[-1], d[-2])
    right = jnp.concatenate([first[None], inner, final[None]])
    zero = jnp.zeros(1, h.dtype)
    lower = jnp.concatenate([zero, h[1:], h[-1:] + h[-2:-1]])
    diagonal = jnp.concatenate([h[1:2], 2 * (h[:-1] + h[1:]), h[-2:-1]])
    upper = jnp.concatenate([h[:1] + h[1:2], h[:-1], zero])
    columns = right.reshape(len(ts), -1)
    slopes = jax.lax.linalg.tridiagonal_solve(lower, diagonal, upper, columns)
    return slopes.reshape(values.shape)
