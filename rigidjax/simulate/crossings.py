"""Search for the first zero crossing of functions along a run.

Each step is examined on its dense output. Between points at a quarter of the step the functions are
taken for cubic polynomials of their values and rates, whose extrema are evaluated too. Crossings
are therefore also found in pairs within a step, as where a ball touches the ceiling in one long
step of free flight.
"""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from ..adjoints.record import Attempts
from ..annotations import Count, Flag, Scalar, Y
from ..solvers.explicit.unrolled import set_stage_loop

# Intervals of a step, and iterations of the root finder, which are Newton steps or bisections.
_INTERVALS = 4
_ITERATIONS = 80
# Length of the shortest step that is examined, in units of the last place of its time.
_SHORTEST = 1024

# Function of time and unknowns.
Function = Callable[[Scalar, Y], Scalar]


class FallingValues(eqx.Module):
    """Values of K functions at one time, and whether they are positive.

    **Attributes:** `values` and `rates` (K,); `positive` (K,), which decides at a zero, where the
    sign of the value is round-off; `bands` (K,), up to which values are not positive either.
    """

    values: Float[Array, " K"]
    rates: Float[Array, " K"]
    positive: Bool[Array, " K"]
    bands: Float[Array, " K"]


class CrossingSearch(diffrax.AbstractAdjoint):
    """The main loop of diffrax that ends with the step in which a function falls through zero.

    `stats["crossings"]` are the times at which each of K functions falls through zero for the
    first time in this step, (K,) s; infinite for none. `stats["jumps"]` (K,) tells which of them
    jump there. Not differentiable.

    **Attributes:** `functions`, of time and unknowns; `start`, their values at the start; `short`,
    a duration that counts as none, s.
    """

    functions: tuple[Function, ...]
    start: FallingValues
    short: Scalar

    def loop(self, **kwargs: PyTree) -> tuple[PyTree, dict[str, PyTree]]:
        """Run the main loop of `diffrax.diffeqsolve`."""
        kwargs = {**kwargs, "solver": set_stage_loop(kwargs["solver"])}
        attempts = Attempts(kwargs, lambda length, y, dense: dense)
        solver = kwargs["solver"]

        def interpolate(run, dense):
            ends = dict(t0=run["t"], t1=run["t_next"])
            return solver.interpolation_cls(**ends, **dense)

        def is_running(carry):
            run, _, _, brackets, _ = carry
            return attempts.is_running(run) & ~jnp.any(jnp.isfinite(brackets))

        def advance(carry):
            run, values, _, _, _ = carry
            new, dense = attempts.attempt(run)
            brackets, end = self._examine(run["t"], run["t_next"], interpolate(run, dense), values)
            # In a step as short as round-off, the sign of a function that starts at zero is noise.
            shortest = _SHORTEST * jnp.finfo(run["t"].dtype).eps * jnp.abs(run["t"])
            keep = new["t"] > run["t"] + shortest
            brackets = jnp.where(keep, brackets, jnp.inf)
            values = jax.tree.map(lambda a, b: jnp.where(keep, a, b), end, values)
            return new, values, dense, brackets, (run["t"], run["t_next"])

        first = attempts.first()
        dense = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype),
            eqx.filter_eval_shape(lambda run: attempts.attempt(run)[1], first),
        )
        none = jnp.full((2, len(self.functions)), jnp.inf, first["t"].dtype)
        carry = first, self.start, dense, none, (first["t"], first["t_next"])
        run, _, dense, brackets, ends = jax.lax.while_loop(is_running, advance, carry)
        interpolation = solver.interpolation_cls(t0=ends[0], t1=ends[1], **dense)
        roots = [
            self._find_root(lambda t, f=f: f(t, interpolation.evaluate(t)), brackets[:, k])
            for k, f in enumerate(self.functions)
        ]
        times, jumps = (jnp.stack(part) for part in zip(*roots, strict=True))
        stats = {"crossings": times, "jumps": jumps, "num_search_steps": run["tries"]}
        return kwargs["init_state"], stats

    def _find_root(
        self, function: Callable[[Scalar], Scalar], bracket: Float[Array, "2"]
    ) -> tuple[Scalar, Flag]:
        """Return the zero of a function, and whether the function jumps there."""
        t = find_root(function, *bracket)
        exists = jnp.isfinite(t)
        at, end = jnp.where(exists, t, 0.0), jnp.where(exists, bracket[1], 0.0)
        value, rate = jax.jvp(function, (at,), (jnp.ones_like(t),))
        noise = jnp.finfo(t.dtype).eps ** 0.5 * jnp.abs(function(end))
        return t, exists & (jnp.abs(value) > jnp.maximum(jnp.abs(rate) * self.short, noise))

    def _examine(
        self, ta: Scalar, tb: Scalar, interpolation: Any, start: FallingValues
    ) -> tuple[Float[Array, "2 K"], FallingValues]:
        """Return the first interval of a step in which each function falls through zero.

        **Returns:** both ends of the intervals, infinite for none, and the values at the end.
        """
        columns = [
            self._examine_function(function, ta, tb, interpolation, start, k)
            for k, function in enumerate(self.functions)
        ]
        brackets, values, rates = (
            jnp.stack(parts, axis=-1) for parts in zip(*columns, strict=True)
        )
        return brackets, FallingValues(values, rates, values > start.bands, start.bands)

    def _examine_function(
        self,
        function: Function,
        ta: Scalar,
        tb: Scalar,
        interpolation: Any,
        start: FallingValues,
        k: int,
    ) -> tuple[Float[Array, "2"], Scalar, Scalar]:
        """Return the interval of one function, and its value and rate at the end of the step."""

        def value(t):
            return function(t, interpolation.evaluate(t))

        def value_and_rate(t):
            return jax.jvp(value, (t,), (jnp.ones_like(t),))

        width = (tb - ta) / _INTERVALS
        ts = ta + width * jnp.arange(1, _INTERVALS + 1).astype(ta.dtype)
        values, rates = jax.vmap(value_and_rate)(ts)
        ends = jnp.concatenate([start.values[k][None], values])
        slopes = jnp.concatenate([start.rates[k][None], rates]) * width
        inner = jax.vmap(_extremum)(ends[:-1], ends[1:], slopes[:-1], slopes[1:])
        ts = jnp.concatenate([ta[None], ts])
        between = ts[:-1] + width * inner
        points = jnp.concatenate([ts[:1], jnp.stack([between, ts[1:]], axis=1).ravel()])
        signs = jnp.stack([jax.vmap(value)(between), values], axis=1).ravel() > start.bands[k]
        signs = jnp.concatenate([start.positive[k][None], signs])
        falls = signs[:-1] & ~signs[1:]
        first = jnp.argmax(falls)
        bracket = jnp.stack([points[first], points[first + 1]])
        return jnp.where(jnp.any(falls), bracket, jnp.inf), values[-1], rates[-1]


def _extremum(a: Scalar, b: Scalar, slope_a: Scalar, slope_b: Scalar) -> Scalar:
    """Return where the cubic polynomial with these values and slopes at 0 and 1 is extremal.

    The result is one half if the slopes have the same sign.
    """
    c = 3.0 * (b - a) - 2.0 * slope_a - slope_b
    d = slope_a + slope_b - 2.0 * (b - a)
    turns = slope_a * slope_b < 0
    root = jnp.sqrt(jnp.maximum(c * c - 3.0 * d * slope_a, 0.0))
    denominator = c - jnp.sign(slope_a) * root
    # The slopes have opposite signs, so that this root lies between 0 and 1.
    at = -slope_a / jnp.where(turns & (denominator != 0), denominator, 1.0)
    return jnp.where(turns & (denominator != 0), jnp.clip(at, 0.0, 1.0), 0.5)


def find_root(function: Callable[[Scalar], Scalar], low: Scalar, high: Scalar) -> Scalar:
    """Return the zero between `low`, where a function is positive, and `high`, where it is not.

    By Newton steps, and bisections where those would leave the interval. Infinite if `low` is.
    """
    exists = jnp.isfinite(low)
    low, high = jnp.where(exists, low, 0.0), jnp.where(exists, high, 0.0)
    resolution = 2.0 * jnp.finfo(low.dtype).eps * jnp.maximum(jnp.abs(low), jnp.abs(high))

    def is_running(carry):
        _, low, high, move, count = carry
        wide = (high - low > resolution) & (jnp.abs(move) > resolution)
        return wide & (count < _ITERATIONS)

    def improve(carry):
        t, low, high, _, count = carry
        value, rate = jax.jvp(function, (t,), (jnp.ones_like(t),))
        # A function may be zero for a while before it falls.
        above = (value > 0) | ((value == 0) & (rate == 0))
        low, high = jnp.where(above, t, low), jnp.where(above, high, t)
        newton = t - value / jnp.where(rate == 0, 1.0, rate)
        inside = (newton > low) & (newton < high) & (rate != 0)
        new = jnp.where(inside, newton, 0.5 * (low + high))
        return new, low, high, new - t, count + 1

    carry = 0.5 * (low + high), low, high, high - low, jnp.array(0)
    t, *_ = jax.lax.while_loop(is_running, improve, carry)
    return jnp.where(exists, t, jnp.inf)


class _Falling(eqx.Module):
    """A function times the sign for which a transition is a fall through zero."""

    function: Callable[..., Scalar]
    side: Scalar

    def __call__(self, t: Scalar, y: Y) -> Scalar:
        return self.side * self.function(t, y)


def search_crossings(
    solve: Callable[..., Any],
    run: Any,
    y: Y,
    term: diffrax.AbstractTerm | None,
    functions: list[Callable[..., Scalar]],
    values: FallingValues,
    side: Float[Array, " K"],
    short: Scalar,
) -> tuple[Float[Array, " K"], Bool[Array, " K"], Count]:
    """Return the times of the first crossings of functions (K,), which of them jump there, and the
    number of steps.

    **Arguments:** `solve`, which integrates the run, `run`, from `y`; `values` of the functions at
    the start, and `side` (K,), the sign for which a crossing is a fall; `short`, a duration that
    counts as none, s.
    """
    falling = tuple(_Falling(function, side[k]) for k, function in enumerate(functions))
    method = run.method._replace(adjoint=CrossingSearch(falling, values, short))
    solution, _ = solve(run._replace(method=method), y, term)
    stats = solution.stats
    return stats["crossings"], stats["jumps"], stats["num_search_steps"]
