r"""Linear-cost solution of the constraint equations of trees, parallel over bodies.

$S = G M^{-1} G^T$ couples two joints only if they share a body. Joints that share none are
eliminated together, level by level: in a chain every second one, so that it takes $\log_2 N$ levels
(block cyclic reduction). The order and the fill-in are planned once from the topology, on the host;
a level consists of a few operations on stacked blocks.
"""

import dataclasses
import functools
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...small_arrays import short_sum, take


@dataclasses.dataclass(frozen=True)
class Level:
    """One level of the elimination; indices refer to the nodes and blocks that remain.

    A leg joins an eliminated node to a neighbour that stays. `out` and `stay`, nodes; `blocks` and
    `flipped`, of the legs (n_legs,); `slots`, the position in `out` of their node; `on_node`
    (len(stay), k), legs that change each node that stays; `legs_of` (len(out), k), legs of each
    eliminated node; `ends`, position in `stay` of the neighbour of each leg; `kept` and `left`,
    `right` (n_blocks, k): the blocks of the next level, an old block or none, minus products of
    legs. Unused indices point past the end, to zero.
    """

    out: np.ndarray
    stay: np.ndarray
    blocks: np.ndarray
    flipped: np.ndarray
    slots: np.ndarray
    on_node: np.ndarray
    legs_of: np.ndarray
    ends: np.ndarray
    kept: np.ndarray
    left: np.ndarray
    right: np.ndarray


@functools.lru_cache(maxsize=64)
def plan(num_nodes: int, edges: tuple[tuple[int, int], ...]) -> tuple[Level, ...]:
    """Plan the levels of the elimination of a graph.

    Each level eliminates an independent set, lowest degree first.

    **Arguments:** `edges`, (i, j) with i < j, in the order of the blocks.
    """
    nodes, blocks = list(range(num_nodes)), list(edges)
    levels = []
    while nodes:
        neighbours: dict[int, set[int]] = {i: set() for i in nodes}
        for i, j in blocks:
            neighbours[i].add(j)
            neighbours[j].add(i)
        out = _independent(nodes, neighbours)
        levels.append(_level(nodes, blocks, neighbours, out))
        removed = set(out)
        nodes = [i for i in nodes if i not in removed]
        fill = {pair for e in out for pair in _pairs(neighbours[e])}
        kept = [pair for pair in blocks if not removed & set(pair)]
        blocks = kept + sorted(fill - set(kept))
    return tuple(levels)


def _independent(nodes: list[int], neighbours: dict[int, set[int]]):
    """Return an independent set of the nodes of lowest degree."""
    fewest = min(len(neighbours[i]) for i in nodes)
    chosen: set[int] = set()
    blocked: set[int] = set()
    for i in sorted(nodes, key=lambda i: (len(neighbours[i]), i)):
        if len(neighbours[i]) > max(2, fewest):
            break
        if i not in blocked:
            chosen.add(i)
            blocked |= neighbours[i]
    return sorted(chosen)


def _pairs(neighbours: set[int]):
    ordered = sorted(neighbours)
    return [(a, b) for k, a in enumerate(ordered) for b in ordered[k + 1 :]]


def _level(
    nodes: list[int], blocks: list[tuple[int, int]], neighbours: dict[int, set[int]], out: list[int]
) -> Level:
    removed = set(out)
    stay = [i for i in nodes if i not in removed]
    position = {i: k for k, i in enumerate(stay)}
    block_index = {pair: k for k, pair in enumerate(blocks)}
    legs = [(e, n) for e in out for n in sorted(neighbours[e])]
    number = {leg: k for k, leg in enumerate(legs)}
    fill: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for e in out:
        for a, b in _pairs(neighbours[e]):
            fill.setdefault((a, b), []).append((number[e, a], number[e, b]))
    kept = [pair for pair in blocks if not removed & set(pair)]
    next_blocks = kept + sorted(set(fill) - set(kept))
    products = [fill.get(pair, []) for pair in next_blocks]
    past_end = len(legs)
    return Level(
        out=_array([nodes.index(i) for i in out]),
        stay=_array([nodes.index(i) for i in stay]),
        blocks=_array([block_index[min(leg), max(leg)] for leg in legs]),
        # A block (i, j), i < j, is A_ij; the leg (e, n) is A_ne, the transpose of a block if e < n.
        flipped=np.array([leg[1] > leg[0] for leg in legs], bool),
        slots=_array([out.index(e) for e, _ in legs]),
        on_node=_pad_rows(
            [[number[e, i] for e in out if i in neighbours[e]] for i in stay], past_end
        ),
        legs_of=_pad_rows([[number[e, n] for n in sorted(neighbours[e])] for e in out], past_end),
        ends=_array([position[n] for _, n in legs]),
        kept=_array([block_index.get(pair, len(blocks)) for pair in next_blocks]),
        left=_pad_rows([[a for a, _ in row] for row in products], past_end),
        right=_pad_rows([[b for _, b in row] for row in products], past_end),
    )


def _array(values: Sequence[int]):
    return np.array(values, int)


def _pad_rows(rows: list[list[int]], past_end: int):
    """Return rows of indices as an array, padded by an index past the end."""
    width = max((len(row) for row in rows), default=0)
    return np.array([row + [past_end] * (width - len(row)) for row in rows], int).reshape(
        len(rows), width
    )


class Factors(eqx.Module):
    """Inverted diagonal blocks and legs of every level, for several right-hand sides."""

    inverses: list[Float[Array, "n m m"]]
    legs: list[Float[Array, "l m m"]]
    levels: tuple[Level, ...] = eqx.field(static=True)

    def solve(self, right: Float[Array, "J m"]) -> Float[Array, "J m"]:
        """Return the solution of `S x = right`, one row for each node."""
        stack = []
        for level, inverse, L in zip(self.levels, self.inverses, self.legs, strict=True):
            eliminated = take(right, level.out)
            stack.append(_multiply_vectors(inverse, eliminated))
            right = take(right, level.stay)
            if len(level.slots):
                change = _append_zero_row(_multiply_vectors(L, take(eliminated, level.slots)))
                right = right - short_sum(take(change, level.on_node), axis=1)
        x = jnp.zeros((0, right.shape[1]), right.dtype)
        for level, L, eliminated in zip(
            reversed(self.levels), reversed(self.legs), reversed(stack), strict=True
        ):
            if len(level.slots):
                from_neighbours = _append_zero_row(
                    short_sum(L, take(x, level.ends)[:, :, None], axis=1)
                )
                eliminated = eliminated - short_sum(take(from_neighbours, level.legs_of), axis=1)
            order = np.argsort(np.concatenate([level.out, level.stay]))
            x = take(jnp.concatenate([eliminated, x]), order)
        return x


def factor(
    diagonal: Float[Array, "J m m"],
    blocks: Float[Array, "E m m"],
    edges: tuple[tuple[int, int], ...],
) -> Factors:
    """Factor a symmetric positive definite matrix of blocks of 3x3 or 6x6.

    **Arguments:** `diagonal`; `blocks`, $S_{ij}$ of `edges` (i, j), i < j; `edges`, static.
    """
    levels = plan(diagonal.shape[0], edges)
    inverses, legs = [], []
    for level in levels:
        inverse = invert(take(diagonal, level.out))
        diagonal = take(diagonal, level.stay)
        inverses.append(inverse)
        if not len(level.slots):
            legs.append(jnp.zeros((0, *diagonal.shape[1:]), diagonal.dtype))
            continue
        leg = take(blocks, level.blocks)
        flipped = jnp.asarray(level.flipped)[:, None, None]
        leg = jnp.where(flipped, jnp.swapaxes(leg, 1, 2), leg)
        L = _multiply_blocks(leg, take(inverse, level.slots))
        legs.append(L)
        change = _append_zero_row(_multiply_blocks(L, jnp.swapaxes(leg, 1, 2)))
        diagonal = diagonal - short_sum(take(change, level.on_node), axis=1)
        blocks = take(_append_zero_row(blocks), level.kept)
        if level.left.shape[1]:
            L, leg = _append_zero_row(L), _append_zero_row(leg)
            for left, right in zip(level.left.T, level.right.T, strict=True):
                blocks = blocks - _multiply_blocks(
                    take(L, left), jnp.swapaxes(take(leg, right), 1, 2)
                )
    return Factors(inverses, legs, levels)


def _append_zero_row(values: Float[Array, "n *s"]) -> Float[Array, "n+1 *s"]:
    return jnp.concatenate([values, jnp.zeros((1, *values.shape[1:]), values.dtype)])


def _multiply_blocks(A: Float[Array, "n m m"], B: Float[Array, "n m m"]):
    return short_sum(A[:, :, :, None], B[:, None, :, :], axis=2)


def _multiply_vectors(A: Float[Array, "n m m"], v: Float[Array, "n m"]):
    return short_sum(A, v[:, None, :], axis=2)


def invert(D: Float[Array, "n m m"]) -> Float[Array, "n m m"]:
    """Invert symmetric positive definite blocks, 1x1, 3x3 or 6x6."""
    if D.shape[1] == 1:
        return 1 / D
    if D.shape[1] == 3:
        return _inverse_3(D)
    A, B, C = D[:, :3, :3], D[:, :3, 3:], D[:, 3:, 3:]
    A_inverse = _inverse_3(A)
    across = _multiply_blocks(A_inverse, B)
    below = _inverse_3(C - _multiply_blocks(jnp.swapaxes(B, 1, 2), across))
    corner = _multiply_blocks(across, below)
    first = A_inverse + _multiply_blocks(corner, jnp.swapaxes(across, 1, 2))
    top = jnp.concatenate([first, -corner], axis=2)
    return jnp.concatenate(
        [top, jnp.concatenate([-jnp.swapaxes(corner, 1, 2), below], axis=2)], axis=1
    )


def _inverse_3(D: Float[Array, "n 3 3"]):
    """Return the adjugate over the determinant.

    Rows of the adjugate of a symmetric matrix are cross products.
    """
    u, v = jnp.roll(D, -1, axis=1), jnp.roll(D, -2, axis=1)
    adjugate = jnp.roll(u, -1, axis=2) * jnp.roll(v, -2, axis=2)
    adjugate = adjugate - jnp.roll(u, -2, axis=2) * jnp.roll(v, -1, axis=2)
    determinant = short_sum(D[:, 0], adjugate[:, 0], axis=1)
    return adjugate / determinant[:, None, None]
