"""Extrapolation tables, and the choice of the number of columns and of the step."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ....annotations import Count, Flag, Norm, Scalar, Time, Vector


class StepSequence(NamedTuple):
    r"""The step-number sequence of an extrapolation method.

    **Attributes:** `numbers`, numbers of substeps $n_j$ of the columns, (K,); `power`, 1 or 2, of
    the step in the asymptotic expansion of the error; `costs`, $A_j$, evaluations of a step of j
    columns, (K,).
    """

    numbers: tuple[int, ...]
    power: int
    costs: tuple[float, ...]


# A substep: the new carry of a column from the carry, the number of the substep in the column, the
# number of substeps of the column, and whether it is the first one.
Substep = Callable[[PyTree[Array], Count, Count, Flag], PyTree[Array]]


class Extrapolation(NamedTuple):
    """Result of an extrapolated step.

    **Attributes:** `value`, the extrapolated quantities; `columns`, number of columns, from 1;
    `error`, norm of the error of the last column; `factors`, step factors that the error of each
    column allows, 0 for columns that were not computed, (K,); `accepted`; `count`, number of
    evaluations.
    """

    value: Float[Array, "q n"]
    columns: Count
    error: Scalar
    factors: Float[Array, " K"]
    accepted: Flag
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride]


def extrapolate(
    sequence: StepSequence, target: Count, start: PyTree[Array], substep: Substep,
    quantities: Callable[[PyTree[Array]], Float[Array, "q n"]], norm: Norm,
) -> Extrapolation:  # fmt: skip
    r"""Compute columns of the extrapolation table until convergence, or until it is not expected.

    All substeps of all columns form one loop of fixed length, in which substeps that are not needed
    are skipped. The loop can therefore be differentiated in both modes, and the right-hand side is
    compiled once.

    **Arguments:**

    - `sequence`: numbers of substeps.
    - `target`: the column, from 1, at which convergence is expected.
    - `start`: initial carry of every column.
    - `substep(carry, i, n, first)`: function of the i-th of n substeps.
    - `quantities(carry)`: quantities to extrapolate, (q, n), the unknowns first.
    - `norm`: of an error, (n,).

    **Source:** Hairer-Norsett-Wanner I, II.9 (9.10), (9.22) ff.; the codes ODEX and SEULEX.
    """
    numbers, plan = np.asarray(sequence.numbers), _substep_schedule(sequence)
    K = len(numbers)
    shape = jax.eval_shape(quantities, start)
    dtype = shape.dtype
    steps = jnp.asarray(numbers, dtype)

    def finish_column(val):
        carry, rows, errors, _, count, x = val
        j = x["j"]
        value = quantities(carry)
        new = [value]
        # T_(j,k+1) = T_(j,k) + (T_(j,k) - T_(j-1,k)) / ((n_j / n_(j-k))^p - 1).
        for k in range(K - 1):
            ratio = (steps[j] / steps[jnp.maximum(j - k - 1, 0)]) ** sequence.power
            divisor = jnp.where(j > k, ratio - 1.0, 1.0)
            step = jnp.where(j > k, (new[-1] - rows[k]) / divisor, 0.0)
            new.append(new[-1] + step)
        table = jnp.stack(new)
        change = jax.lax.stop_gradient(table[j] - table[jnp.maximum(j - 1, 0)])[0]
        error = jnp.where(j > 0, norm(change), jnp.inf)
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        # Number of the column from 1, as in the target.
        c = j + 1
        following = steps[jnp.minimum(j + 1, K - 1)] / steps[0]
        after = steps[jnp.minimum(j + 2, K - 1)] / steps[0]
        hope = jnp.where(c == target - 1, (following * after) ** sequence.power, 0.0)
        hope = jnp.where(c == target, following**sequence.power, hope)
        checked = (c >= target - 1) & (c >= 2)
        hopeless = checked & (error > hope)
        diverges = (c > 2) & (c < target - 1) & jnp.isinf(error)
        done = (checked & (error <= 1)) | hopeless | diverges | (c >= jnp.minimum(target + 1, K))
        return carry, table, errors.at[j].set(error), done, count, x

    def run(val, x):
        carry, rows, errors, done, count = val
        carry = substep(carry, x["i"], x["n"], x["i"] == 0)
        val = carry, rows, errors, done, count + 1, x
        return jax.lax.cond(x["last"], finish_column, lambda val: val, val)[:-1]

    def body(val, x):
        return jax.lax.cond(val[3], lambda val, x: val, run, val, x), None

    rows = jnp.zeros((K, *shape.shape), dtype)
    val = start, rows, jnp.full(K, jnp.inf, dtype), jnp.array(False), jnp.array(0)
    (_, rows, errors, _, count), _ = jax.lax.scan(body, val, plan)
    used = jnp.max(jnp.where(jnp.isfinite(errors), jnp.arange(K), 1))
    order = sequence.power * jnp.arange(1, K + 1, dtype=dtype) - (sequence.power - 1)
    factors = 0.94 * (0.65 / jnp.maximum(errors, 1e-12)) ** (1.0 / order)
    least = 0.02 ** (1.0 / order)
    factors = jnp.where(jnp.isfinite(errors), jnp.clip(factors, least / 4.0, 1.0 / least), 0.0)
    error = errors[used]
    return Extrapolation(rows[used], used + 1, error, factors, error <= 1, count)


def substep_time(t0: Time, t1: Time, i: Count, n: Count) -> Scalar:
    """Return the time at the end of the i-th of n equal parts of a step, with i from 0."""
    span = jnp.asarray(t1 - t0)
    i, n = i.astype(span.dtype), n.astype(span.dtype)
    return jnp.add(t0, ((i + 1) * span) / n)


def _substep_schedule(sequence: StepSequence):
    """Return the loop inputs of all substeps.

    `j` is the column, `i` the number in the column, `n` the number of substeps of the column, and
    `last` whether the substep ends the column.
    """
    numbers = np.asarray(sequence.numbers)
    column = np.repeat(np.arange(len(numbers)), numbers)
    inside = np.concatenate([np.arange(n) for n in numbers])
    plan = dict(j=column, i=inside, n=numbers[column], last=inside == numbers[column] - 1)
    return jax.tree.map(jnp.asarray, plan)


def lagrange_at_zero(numbers: tuple[int, ...] | np.ndarray, power: int) -> np.ndarray:
    r"""Return the weights of the values of the columns in the extrapolated value.

    The weights are the values at zero of the Lagrange polynomials for the nodes $n_j^{-p}$.

    **Arguments:** `numbers`, $n_j$; `power`, p.
    """
    weights = np.ones(len(numbers))
    for j, n in enumerate(numbers):
        others = np.delete(np.asarray(numbers, float), j)
        weights[j] = np.prod(1.0 / (1.0 - (others / n) ** power))
    return weights


def substep_offsets(sequence: StepSequence) -> np.ndarray:
    """Return the offset of each column in the list of all substeps, and the length, (K + 1,)."""
    return np.concatenate([[0], np.cumsum(sequence.numbers)])


@functools.lru_cache
def end_weights(sequence: StepSequence) -> np.ndarray:
    """Return the weights of all substeps at the end, for each number of columns, (K, 1, N)."""
    points = substep_offsets(sequence)
    weights = np.zeros((len(sequence.numbers), 1, points[-1]))
    for c in range(1, len(weights) + 1):
        factors = lagrange_at_zero(sequence.numbers[:c], sequence.power)
        weights[c - 1, 0, points[1 : c + 1] - 1] = factors
    return weights


def sum_substeps(
    sequence: StepSequence, weights: np.ndarray, columns: Count, start: PyTree[Array],
    substep: Substep, quantity: Callable[[PyTree[Array]], Vector],
) -> Float[Array, "q n"]:  # fmt: skip
    """Return weighted sums over all substeps of a known number of columns, (q, n).

    With `end_weights` and the unknowns as quantity, the result is that of `extrapolate` at half of
    the operations, or less for derivatives. With other weights it gives dense output.

    **Arguments:** `sequence`, `start` and `substep` as in `extrapolate`; `weights`, for each number
    of columns, (K, q, N); `columns`, from 1; `quantity(carry)`, the summands, (n,).
    """
    shape = jax.eval_shape(quantity, start)
    rows = jnp.asarray(np.swapaxes(weights, 1, 2), shape.dtype)[columns - 1]
    plan = {**_substep_schedule(sequence), "weights": rows}

    # In reverse mode, evaluating a substep again is faster than storing its intermediate values.
    @functools.partial(jax.checkpoint, prevent_cse=False)
    def run(val, x):
        carry, total = val
        carry = substep(carry, x["i"], x["n"], x["i"] == 0)
        return carry, total + x["weights"][:, None] * quantity(carry)[None]

    def body(val, x):
        return jax.lax.cond(x["j"] < columns, run, lambda val, x: val, val, x), None

    total = jnp.zeros((weights.shape[1], *shape.shape), shape.dtype)
    return jax.lax.scan(body, (start, total), plan)[0][1]


def choose_columns(sequence: StepSequence, e: Extrapolation, target: Count) -> tuple[Count, Scalar]:
    """Choose the next target column and the factor of the step.

    **Source:** Hairer-Norsett-Wanner I, II.9 (9.26) to (9.29); the code ODEX.
    """
    A = jnp.asarray(sequence.costs)
    K = len(sequence.costs)
    work = jnp.where(e.factors > 0, A / jnp.where(e.factors > 0, e.factors, 1.0), jnp.inf)
    c = e.columns

    def W(k):
        return work[jnp.clip(k - 1, 0, K - 1)]

    # After an accepted step, with convergence up to the target column or one column later.
    best = jnp.where(W(c - 1) < 0.8 * W(c), c - 1, c)
    best = jnp.where(W(c) < 0.9 * W(c - 1), jnp.minimum(c + 1, K - 1), best)
    late = jnp.where((c > 3) & (W(c - 2) < 0.8 * W(c - 1)), c - 2, c - 1)
    late = jnp.where(W(c) < 0.9 * W(late), jnp.minimum(c, K - 1), late)
    best = jnp.where(c <= target, best, late)
    best = jnp.where(c == 2, 3, best)
    best = jnp.clip(best, 2, K - 1)
    factor = e.factors[jnp.minimum(best, c) - 1]
    factor = jnp.where(best > c, e.factors[c - 1] * A[best - 1] / A[c - 1], factor)
    # After a rejected step.
    retry = jnp.minimum(target, c)
    retry = jnp.where((retry > 2) & (W(retry - 1) < 0.8 * W(retry)), retry - 1, retry)
    shorter = jnp.minimum(e.factors[retry - 1], 0.8)
    return best, jnp.where(e.accepted, factor, shorter)
