r"""Inverses of matrices of which many rows say $\dot y_i = y_j$.

In the Newton matrix of a second-order system as one of first order, or with accelerations among the
unknowns, such a row has two entries. Elimination of these rows leaves a matrix of a half or a third
of the rows, whose inverse costs an eighth or less.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num

from ..checks import ArrayInput
from ..native.ops import inverse

Pairs = tuple[tuple[int, int], ...]


class EliminationPlan(NamedTuple):
    """What is eliminated: rows `i` in `levels` of pairs (i, j), each j in an earlier level or in
    `rest`, the unknowns that stay."""

    levels: tuple[tuple[np.ndarray, np.ndarray], ...]
    rest: np.ndarray


def checked_rates(rates: ArrayInput | None) -> Pairs:
    r"""Pairs (i, j) of the equations $\dot y_i = y_j$ as tuples of integers.

    **Raises:** `ValueError` if they are no pairs, name an i twice or go round in a circle.
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
    found = tuple((int(i), int(j)) for i, j in pairs)
    if len({i for i, _ in found}) < len(found):
        raise ValueError(f"`rates=` gives an unknown two rates; got {rates}.")
    plan_elimination(found, int(pairs.max()) + 1)
    return found


def plan_elimination(pairs: Pairs, n: int) -> EliminationPlan:
    """The order in which unknowns are eliminated.

    **Raises:** `ValueError` for pairs that go round in a circle.
    """
    left, known, levels = dict(pairs), set(range(n)) - {i for i, _ in pairs}, []
    rest = np.array(sorted(known), dtype=int)
    while left:
        level = {i: j for i, j in left.items() if j in known}
        if not level:
            raise ValueError(f"`rates=` goes round in a circle: {tuple(left.items())}.")
        levels.append((np.array(list(level)), np.array(list(level.values()))))
        known |= set(level)
        left = {i: j for i, j in left.items() if i not in level}
    return EliminationPlan(tuple(levels), rest)


class CondensedInverse(eqx.Module):
    r"""The inverse of a matrix whose rows i of `pairs` have the entries (i, i) and (i, j) alone.

    From row i, $x_i = (r_i - A_{ij} x_j) / A_{ii}$.

    **Attributes:** `inverse`, of the matrix that is left, (m, m); `folds`, (m, n - m), by which the
    rows that stay depend on the right-hand sides of the others; `slopes`, $A_{ij} / A_{ii}$ and
    `scales`, $1 / A_{ii}$, level by level; `pairs`. The first two of a complex matrix are real
    ones of twice the size, with which XLA is five times as fast.
    """

    inverse: Num[Array, "m m"]
    folds: Num[Array, "m k"]
    slopes: list[Num[Array, " k"]]
    scales: list[Num[Array, " k"]]
    pairs: Pairs = eqx.field(static=True)

    def __init__(self, A: Num[Array, "n n"], pairs: Pairs):
        levels, rest = plan_elimination(pairs, len(A))
        groups = [rest, *(i for i, _ in levels)]
        # Columns of the other rows, group by group; those of what is eliminated go to the others.
        rows = take_indices(A, rest, 0)
        blocks = [take_indices(rows, group, 1) for group in groups]
        self.scales = [1.0 / A[i, i] for i, _ in levels]
        self.slopes = [A[i, j] * s for (i, j), s in zip(levels, self.scales, strict=True)]
        for k, (_, j) in reversed(list(enumerate(levels, 1))):
            passed = -blocks[k] * self.slopes[k - 1][None]
            blocks[k] = blocks[k] * self.scales[k - 1][None]
            for g in range(k):
                blocks[g] = _add_columns(
                    blocks[g], passed, [np.flatnonzero(j == u) for u in groups[g]]
                )
        self.inverse = real_form(inverse(blocks[0]))
        self.folds = real_form(jnp.concatenate(blocks[1:], axis=1))
        self.pairs = pairs

    def solve(self, b: Num[Array, " n"]) -> Num[Array, " n"]:
        """The solution for a right-hand side."""
        levels, rest = plan_elimination(self.pairs, len(b))
        order = np.concatenate([rest, *(i for i, _ in levels)])
        place = np.argsort(order)
        b = take_indices(b, order, 0)
        first = b[: len(rest)] - _multiply(self.folds, b[len(rest) :])
        x, start = _multiply(self.inverse, first), len(rest)
        for (i, j), slope, scale in zip(levels, self.slopes, self.scales, strict=True):
            stop = start + len(i)
            x = jnp.concatenate([x, b[start:stop] * scale - slope * take_indices(x, place[j], 0)])
            start = stop
        return take_indices(x, place, 0)


def solve_stages(J: Num[Array, "s n s n"], b: Num[Array, "s n"], pairs: Pairs) -> Num[Array, "s n"]:
    r"""The solution of the equations of s stages whose rows i of `pairs` say $\dot y_i = y_j$.

    In such a row stand unknown i of all stages and unknown j of its own, which it gives:
    $z^j_a = (b^i_a - \sum_c D_{ac} z^i_c) / J^{ij}_a$. What is left has s (n - k) unknowns. Of
    several rows with the same j the first one is used.
    """
    s, n = b.shape
    seen: set[int] = set()
    first = [j not in seen and not seen.add(j) for _, j in pairs]
    levels, _ = plan_elimination(pairs, n)
    chosen = {i for (i, _), keep in zip(pairs, first, strict=True) if keep}
    gone, used, right = [], [], b
    for i, j in levels:
        keep = np.isin(i, list(chosen))
        i, j = i[keep], j[keep]
        D = jnp.stack([J[:, k, :, k] for k in i], axis=-1)
        own = jnp.stack([jnp.diagonal(J[:, k, :, m]) for k, m in zip(i, j, strict=True)], axis=-1)
        # Zero where the matrix of a step without solution was replaced by another one.
        own = jnp.where(own == 0, 1.0, own)
        weights = take_indices(J, j, 3) / own[:, None, None]
        right = right - jnp.einsum("anck,ck->an", weights, take_indices(b, i, 1))
        J = J.at[:, :, :, i].add(-jnp.einsum("anck,cdk->andk", weights, D))
        gone.append((i, j, D, own))
        used += list(j)
    rows = np.setdiff1d(np.arange(n), sorted(chosen))
    columns = np.setdiff1d(np.arange(n), used)
    left = take_indices(take_indices(J, rows, 1), columns, 3)
    size = s * len(columns)
    found = inverse(left.reshape(size, size)) @ take_indices(right, rows, 1).ravel()
    z, order = found.reshape(s, -1), list(columns)
    for i, j, D, own in reversed(gone):
        given = take_indices(z, np.array([order.index(k) for k in i], int), 1)
        new = (take_indices(b, i, 1) - jnp.einsum("adk,dk->ak", D, given)) / own
        z, order = jnp.concatenate([z, new], axis=1), order + list(j)
    return take_indices(z, np.argsort(order), 1)


def real_form(X: Num[Array, "m n"]) -> Num[Array, "..."]:
    """For a complex matrix what it does to real and imaginary parts as one real matrix."""
    return jnp.block([[X.real, -X.imag], [X.imag, X.real]]) if jnp.iscomplexobj(X) else X


def _multiply(X, v):
    """The product with a matrix in its real form."""
    if not jnp.iscomplexobj(v):
        return X @ v
    parts = X @ jnp.concatenate([v.real, v.imag])
    half = len(parts) // 2
    return jax.lax.complex(parts[:half], parts[half:])


def take_indices(A: Num[Array, "..."], index: np.ndarray, axis: int) -> Num[Array, "..."]:
    """Rows or columns of a matrix by number; a slice if they follow each other."""
    if len(index) and np.array_equal(index, np.arange(index[0], index[0] + len(index))):
        if len(index) == A.shape[axis]:
            return A
        return jax.lax.slice_in_dim(A, int(index[0]), int(index[-1]) + 1, axis=axis)
    return jnp.take(A, index, axis=axis, mode="clip")


def _add_columns(block, passed, sources):
    """Columns of `passed` added to those of a block, by their numbers for each column."""
    while any(len(source) for source in sources):
        first = np.array([source[0] if len(source) else passed.shape[1] for source in sources])
        used = first < passed.shape[1]
        start, stop = np.argmax(used), len(used) - np.argmax(used[::-1])
        if used[start:stop].all():
            moved = take_indices(passed, first[start:stop], 1)
            moved = jnp.pad(moved, ((0, 0), (int(start), int(len(used) - stop))))
        else:
            moved = jnp.where(used[None], jnp.take(passed, first, axis=1, mode="clip"), 0.0)
        block = block + moved
        sources = [source[1:] for source in sources]
    return block
