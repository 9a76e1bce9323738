r"""Linear-cost solution of the constraint equations of trees, parallel over bodies.

$S = G M^{-1} G^T$ couples two joints only if they share a body. Joints that share none are
eliminated together, level by level: in a chain every other one, so that it takes
$\log_2 N$ levels (block cyclic reduction). Which joints, and what that fills in, is planned once
from the topology, on the host; a level is a few operations on stacked blocks. (A sweep along the
chain costs 0.9 us a body and pass in a `lax.scan`, whatever it does there.)
"""

import dataclasses
import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...native.ops import short_sum, take


@dataclasses.dataclass(frozen=True)
class Level:
    """One level of the elimination; indices into the nodes and blocks that are still there.

    A leg joins an eliminated node to a neighbour that stays. `out` and `stay`, nodes; `blocks` and
    `flipped`, of the legs (n_legs,); `slots`, the position in `out` of their node; `on_node`
    (len(stay), k), legs that change each node that stays; `legs_of` (len(out), k), legs of each
    eliminated one; `ends`, position in `stay` of their neighbour; `kept` and `left`, `right`
    (n_blocks, k): the blocks of the next level, an old one or none, less products of legs.
    Places that are not used point behind the end, to zero.
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
    """Levels of the elimination of a graph; `edges` (i, j) with i < j, in the order of the blocks.

    Nodes with the fewest neighbours go first, none next to another.
    """
    nodes, blocks = list(range(num_nodes)), list(edges)
    levels = []
    while nodes:
        near: dict[int, set[int]] = {i: set() for i in nodes}
        for i, j in blocks:
            near[i].add(j)
            near[j].add(i)
        out = _independent(nodes, near)
        levels.append(_level(nodes, blocks, near, out))
        gone = set(out)
        nodes = [i for i in nodes if i not in gone]
        fill = {pair for e in out for pair in _pairs(near[e])}
        kept = [pair for pair in blocks if not gone & set(pair)]
        blocks = kept + sorted(fill - set(kept))
    return tuple(levels)


def _independent(nodes, near):
    """Nodes without common edges, fewest neighbours first; at most one more than the fewest."""
    fewest = min(len(near[i]) for i in nodes)
    chosen: set[int] = set()
    blocked: set[int] = set()
    for i in sorted(nodes, key=lambda i: (len(near[i]), i)):
        if len(near[i]) > max(2, fewest):
            break
        if i not in blocked:
            chosen.add(i)
            blocked |= near[i]
    return sorted(chosen)


def _pairs(neighbours):
    ordered = sorted(neighbours)
    return [(a, b) for k, a in enumerate(ordered) for b in ordered[k + 1 :]]


def _level(nodes, blocks, near, out) -> Level:
    gone = set(out)
    stay = [i for i in nodes if i not in gone]
    place = {i: k for k, i in enumerate(stay)}
    at_block = {pair: k for k, pair in enumerate(blocks)}
    legs = [(e, n) for e in out for n in sorted(near[e])]
    number = {leg: k for k, leg in enumerate(legs)}
    fill: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for e in out:
        for a, b in _pairs(near[e]):
            fill.setdefault((a, b), []).append((number[e, a], number[e, b]))
    kept = [pair for pair in blocks if not gone & set(pair)]
    following = kept + sorted(set(fill) - set(kept))
    products = [fill.get(pair, []) for pair in following]
    behind = len(legs)
    return Level(
        out=_array([nodes.index(i) for i in out]),
        stay=_array([nodes.index(i) for i in stay]),
        blocks=_array([at_block[min(leg), max(leg)] for leg in legs]),
        # A block (i, j), i < j, is A_ij; a leg is A of its neighbour and its node.
        flipped=np.array([leg[1] > leg[0] for leg in legs], bool),
        slots=_array([out.index(e) for e, _ in legs]),
        on_node=_padded([[number[e, i] for e in out if i in near[e]] for i in stay], behind),
        legs_of=_padded([[number[e, n] for n in sorted(near[e])] for e in out], behind),
        ends=_array([place[n] for _, n in legs]),
        kept=_array([at_block.get(pair, len(blocks)) for pair in following]),
        left=_padded([[a for a, _ in row] for row in products], behind),
        right=_padded([[b for _, b in row] for row in products], behind),
    )


def _array(values):
    return np.array(values, int)


def _padded(rows, behind):
    width = max((len(row) for row in rows), default=0)
    return np.array([row + [behind] * (width - len(row)) for row in rows], int).reshape(
        len(rows), width
    )


class Factors(eqx.Module):
    """Inverted diagonal blocks and legs of every level, for one right-hand side after another."""

    inverses: list[Float[Array, "n m m"]]
    legs: list[Float[Array, "l m m"]]
    levels: tuple[Level, ...] = eqx.field(static=True)

    def solve(self, right: Float[Array, "J m"]) -> Float[Array, "J m"]:
        """The solution of `S x = right`, one row for each node."""
        stack = []
        for level, inverse, L in zip(self.levels, self.inverses, self.legs, strict=True):
            own = take(right, level.out)
            stack.append(_apply(inverse, own))
            right = take(right, level.stay)
            if len(level.slots):
                change = _behind(_apply(L, take(own, level.slots)))
                right = right - short_sum(take(change, level.on_node), axis=1)
        x = jnp.zeros((0, right.shape[1]), right.dtype)
        for level, L, own in zip(
            reversed(self.levels), reversed(self.legs), reversed(stack), strict=True
        ):
            if len(level.slots):
                back = _behind(short_sum(L, take(x, level.ends)[:, :, None], axis=1))
                own = own - short_sum(take(back, level.legs_of), axis=1)
            order = np.argsort(np.concatenate([level.out, level.stay]))
            x = take(jnp.concatenate([own, x]), order)
        return x


def factor(
    diagonal: Float[Array, "J m m"],
    blocks: Float[Array, "E m m"],
    edges: tuple[tuple[int, int], ...],
) -> Factors:
    r"""Factors of a symmetric positive definite matrix of blocks of 3x3 or 6x6.

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
        L = _product(leg, take(inverse, level.slots))
        legs.append(L)
        change = _behind(_product(L, jnp.swapaxes(leg, 1, 2)))
        diagonal = diagonal - short_sum(take(change, level.on_node), axis=1)
        blocks = take(_behind(blocks), level.kept)
        if level.left.shape[1]:
            L, leg = _behind(L), _behind(leg)
            for left, right in zip(level.left.T, level.right.T, strict=True):
                blocks = blocks - _product(take(L, left), jnp.swapaxes(take(leg, right), 1, 2))
    return Factors(inverses, legs, levels)


def _behind(values):
    """The values with a row of zeros behind them."""
    return jnp.concatenate([values, jnp.zeros((1, *values.shape[1:]), values.dtype)])


def _product(A, B):
    return short_sum(A[:, :, :, None], B[:, None, :, :], axis=2)


def _apply(A, v):
    return short_sum(A, v[:, None, :], axis=2)


def invert(D: Float[Array, "n m m"]) -> Float[Array, "n m m"]:
    """Inverses of symmetric positive definite blocks, 1x1, 3x3 or 6x6."""
    if D.shape[1] == 1:
        return 1 / D
    if D.shape[1] == 3:
        return _inverse_3(D)
    A, B, C = D[:, :3, :3], D[:, :3, 3:], D[:, 3:, 3:]
    A_inverse = _inverse_3(A)
    across = _product(A_inverse, B)
    below = _inverse_3(C - _product(jnp.swapaxes(B, 1, 2), across))
    corner = _product(across, below)
    first = A_inverse + _product(corner, jnp.swapaxes(across, 1, 2))
    top = jnp.concatenate([first, -corner], axis=2)
    return jnp.concatenate(
        [top, jnp.concatenate([-jnp.swapaxes(corner, 1, 2), below], axis=2)], axis=1
    )


def _inverse_3(D):
    """Adjugate over determinant; rows of the adjugate of a symmetric matrix are cross products."""
    u, v = jnp.roll(D, -1, axis=1), jnp.roll(D, -2, axis=1)
    adjugate = jnp.roll(u, -1, axis=2) * jnp.roll(v, -2, axis=2)
    adjugate = adjugate - jnp.roll(u, -2, axis=2) * jnp.roll(v, -1, axis=2)
    determinant = short_sum(D[:, 0], adjugate[:, 0], axis=1)
    return adjugate / determinant[:, None, None]
