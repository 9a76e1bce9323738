r"""Elimination of the equations $\dot y_i = y_j$ from Newton matrices.

A second-order system written as one of first order, or with the accelerations among the unknowns,
has many such equations, each a row with two entries in the Newton matrix. Eliminating these rows
leaves a half or a third of the rows, and inverting the smaller matrix costs an eighth or less.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num

from ...checks import ArrayInput
from ...small_arrays import inverse

Pairs = tuple[tuple[int, int], ...]


class EliminationPlan(NamedTuple):
    """The order of elimination of the unknowns i of pairs (i, j).

    **Attributes:** `levels`, arrays of i and of j, where each j belongs to an earlier level or to
    `rest`; `rest`, the unknowns that are not eliminated.
    """

    levels: tuple[tuple[np.ndarray, np.ndarray], ...]
    rest: np.ndarray


def checked_rates(rates: ArrayInput | None) -> Pairs:
    r"""Return the pairs (i, j) of the equations $\dot y_i = y_j$ as tuples of integers.

    **Raises:** `ValueError` if they are not pairs of integers from 0, if an unknown i occurs twice,
    or if the pairs contain a cycle.
    """
    if rates is None:
        return ()
    pairs = np.asarray(rates)
    if pairs.size == 0:
        return ()
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or pairs.min() < 0:
        raise ValueError(
            "`rates=` takes pairs (i, j) of the equations y_i' = y_j, numbers of unknowns from 0; "
            f"got {rates}."
        )
    result = tuple((int(i), int(j)) for i, j in pairs)
    if len({i for i, _ in result}) < len(result):
        raise ValueError(f"`rates=` gives an unknown two rates; got {rates}.")
    plan_elimination(result, int(pairs.max()) + 1)
    return result


def plan_elimination(pairs: Pairs, n: int) -> EliminationPlan:
    """Return the order in which unknowns are eliminated, of n.

    **Raises:** `ValueError` if the pairs contain a cycle.
    """
    pending, determined, levels = dict(pairs), set(range(n)) - {i for i, _ in pairs}, []
    rest = np.array(sorted(determined), dtype=int)
    while pending:
        level = {i: j for i, j in pending.items() if j in determined}
        if not level:
            raise ValueError(f"`rates=` must not contain a cycle; got {tuple(pending.items())}.")
        levels.append((np.array(list(level)), np.array(list(level.values()))))
        determined |= set(level)
        pending = {i: j for i, j in pending.items() if i not in level}
    return EliminationPlan(tuple(levels), rest)


class CondensedInverse(eqx.Module):
    r"""Inverse of a matrix where row i of each pair (i, j) has no entries but (i, i) and (i, j).

    From row i, $x_i = (r_i - A_{ij} x_j) / A_{ii}$.

    **Attributes:** `inverse`, of the condensed matrix, (m, m); `folds`, (m, n - m), coefficients by
    which right-hand sides of eliminated rows enter the remaining rows; `slopes`, $A_{ij} / A_{ii}$,
    and `scales`, $1 / A_{ii}$, level by level; `pairs`. `inverse` and `folds` of a complex matrix
    are stored in real form with twice the size, because real products are faster.
    """

    inverse: Num[Array, "m m"]
    folds: Num[Array, "m k"]
    slopes: list[Num[Array, " k"]]
    scales: list[Num[Array, " k"]]
    pairs: Pairs = eqx.field(static=True)

    def __init__(self, A: Num[Array, "n n"], pairs: Pairs):
        levels, rest = plan_elimination(pairs, len(A))
        groups = [rest, *(i for i, _ in levels)]
        # The remaining rows, one block of columns per group of unknowns. Columns of eliminated
        # unknowns are added to the columns that these unknowns depend on.
        rows = take_indices(A, rest, 0)
        blocks = [take_indices(rows, group, 1) for group in groups]
        self.scales = [1.0 / A[i, i] for i, _ in levels]
        self.slopes = [A[i, j] * s for (i, j), s in zip(levels, self.scales, strict=True)]
        for k, (_, j) in reversed(list(enumerate(levels, 1))):
            addends = -blocks[k] * self.slopes[k - 1][None]
            blocks[k] = blocks[k] * self.scales[k - 1][None]
            for g in range(k):
                blocks[g] = _add_columns(
                    blocks[g], addends, [np.flatnonzero(j == u) for u in groups[g]]
                )
        self.inverse = real_form(inverse(blocks[0]))
        self.folds = real_form(jnp.concatenate(blocks[1:], axis=1))
        self.pairs = pairs

    def solve(self, b: Num[Array, " n"]) -> Num[Array, " n"]:
        """Return the solution for a right-hand side."""
        levels, rest = plan_elimination(self.pairs, len(b))
        order = np.concatenate([rest, *(i for i, _ in levels)])
        position = np.argsort(order)
        b = take_indices(b, order, 0)
        first = b[: len(rest)] - _multiply(self.folds, b[len(rest) :])
        x, start = _multiply(self.inverse, first), len(rest)
        for (i, j), slope, scale in zip(levels, self.slopes, self.scales, strict=True):
            stop = start + len(i)
            x = jnp.concatenate(
                [x, b[start:stop] * scale - slope * take_indices(x, position[j], 0)]
            )
            start = stop
        return take_indices(x, position, 0)


def solve_stages(J: Num[Array, "s n s n"], b: Num[Array, "s n"], pairs: Pairs) -> Num[Array, "s n"]:
    r"""Solve the linear equations of s stages, with equations $\dot y_i = y_j$ eliminated.

    Row i of stage a contains unknown i of all stages and unknown j of stage a, which the row
    determines: $z^j_a = (b^i_a - \sum_c D_{ac} z^i_c) / J^{ij}_a$. The remaining system has
    s (n - k) unknowns. If several pairs have the same j, the first one is used.

    **Arguments:** `J`, Jacobian of the stages; `b`, right-hand side; `pairs`, (i, j).
    """
    s, n = b.shape
    seen: set[int] = set()
    is_first = [j not in seen and not seen.add(j) for _, j in pairs]
    levels, _ = plan_elimination(pairs, n)
    eliminated = {i for (i, _), keep in zip(pairs, is_first, strict=True) if keep}
    records, used, right = [], [], b
    for i, j in levels:
        keep = np.isin(i, list(eliminated))
        i, j = i[keep], j[keep]
        D = jnp.stack([J[:, k, :, k] for k in i], axis=-1)
        pivots = jnp.stack(
            [jnp.diagonal(J[:, k, :, m]) for k, m in zip(i, j, strict=True)], axis=-1
        )
        # Pivots are zero if the step has no solution: its matrix is replaced by the identity.
        pivots = jnp.where(pivots == 0, 1.0, pivots)
        weights = take_indices(J, j, 3) / pivots[:, None, None]
        right = right - jnp.einsum("anck,ck->an", weights, take_indices(b, i, 1))
        J = J.at[:, :, :, i].add(-jnp.einsum("anck,cdk->andk", weights, D))
        records.append((i, j, D, pivots))
        used += list(j)
    rows = np.setdiff1d(np.arange(n), sorted(eliminated))
    columns = np.setdiff1d(np.arange(n), used)
    condensed = take_indices(take_indices(J, rows, 1), columns, 3)
    size = s * len(columns)
    solution = inverse(condensed.reshape(size, size)) @ take_indices(right, rows, 1).ravel()
    z, order = solution.reshape(s, -1), list(columns)
    for i, j, D, pivots in reversed(records):
        known = take_indices(z, np.array([order.index(k) for k in i], int), 1)
        new = (take_indices(b, i, 1) - jnp.einsum("adk,dk->ak", D, known)) / pivots
        z, order = jnp.concatenate([z, new], axis=1), order + list(j)
    return take_indices(z, np.argsort(order), 1)


def real_form(X: Num[Array, "m n"]) -> Num[Array, "..."]:
    """Return the real matrix by which a complex one acts on real and imaginary parts."""
    return jnp.block([[X.real, -X.imag], [X.imag, X.real]]) if jnp.iscomplexobj(X) else X


def _multiply(X: Num[Array, "m n"], v: Num[Array, " k"]):
    """Multiply a vector, real or complex, by a matrix in its real form."""
    if not jnp.iscomplexobj(v):
        return X @ v
    parts = X @ jnp.concatenate([v.real, v.imag])
    half = len(parts) // 2
    return jax.lax.complex(parts[:half], parts[half:])


def take_indices(A: Num[Array, "..."], index: np.ndarray, axis: int) -> Num[Array, "..."]:
    """Return entries of an array along an axis; by a slice if the indices are consecutive."""
    if len(index) and np.array_equal(index, np.arange(index[0], index[0] + len(index))):
        if len(index) == A.shape[axis]:
            return A
        return jax.lax.slice_in_dim(A, int(index[0]), int(index[-1]) + 1, axis=axis)
    return jnp.take(A, index, axis=axis, mode="clip")


def _add_columns(block: Num[Array, "m k"], addends: Num[Array, "m j"], sources: list[np.ndarray]):
    """Add to each column of `block` the columns of `addends` with the indices in `sources`."""
    while any(len(source) for source in sources):
        first = np.array([source[0] if len(source) else addends.shape[1] for source in sources])
        used = first < addends.shape[1]
        start, stop = np.argmax(used), len(used) - np.argmax(used[::-1])
        if used[start:stop].all():
            selected = take_indices(addends, first[start:stop], 1)
            selected = jnp.pad(selected, ((0, 0), (int(start), int(len(used) - stop))))
        else:
            selected = jnp.where(used[None], jnp.take(addends, first, axis=1, mode="clip"), 0.0)
        block = block + selected
        sources = [source[1:] for source in sources]
    return block
