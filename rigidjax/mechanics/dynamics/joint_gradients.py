r"""Constraints of trees joint by joint; $G M^{-1} G^T\lambda = c$ at linear cost."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...native.ops import short_sum, take
from ..stacked.system import PreparedSystem
from .block_elimination import Factors, factor


class JointGradients(eqx.Module):
    """Gradients of the constraints of every joint on its two bodies.

    Joints stand in the order of the groups, with rows of zeros up to a common number m of
    constraints (3 or 6).
    """

    on_parent: Float[Array, "J m 6"]
    on_child: Float[Array, "J m 6"]
    parents: tuple[int, ...] = eqx.field(static=True)
    children: tuple[int, ...] = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    num_bodies: int = eqx.field(static=True)

    def apply(self, w: Float[Array, "L 6"]) -> Float[Array, "J m"]:
        r"""$G\,w$."""
        w = jnp.concatenate([w, jnp.zeros((1, 6), w.dtype)])

        def on(block, rows):
            return short_sum(block, take(w, rows)[:, None], axis=2)

        return on(self.on_parent, self.parents) + on(self.on_child, self.children)

    def transpose(self, lam: Float[Array, "J m"]) -> Float[Array, "L 6"]:
        r"""$G^T\lambda$."""
        parts = [short_sum(b, lam[:, :, None], axis=1) for b in (self.on_parent, self.on_child)]
        wrenches = jnp.concatenate([*parts, jnp.zeros((1, 6), lam.dtype)])
        of: list[list[int]] = [[] for _ in range(self.num_bodies + 1)]
        for k, body in enumerate((*self.parents, *self.children)):
            of[body].append(k)
        width = max(len(rows) for rows in of[:-1])
        behind = 2 * len(self.parents)
        rows = np.array([row[::-1] + [behind] * (width - len(row)) for row in of[:-1]])
        return sum((take(wrenches, column) for column in rows.T), jnp.zeros((1, 6), lam.dtype))

    def padded(self, values: Float[Array, " M"]) -> Float[Array, "J m"]:
        """Values in the order of `SystemMechanics.constraint`, one row for each joint."""
        start = np.concatenate([[0], np.cumsum(self.counts)])
        if len(values) != start[-1]:
            raise ValueError(f"Expected {start[-1]} constraints of tree joints, got {len(values)}.")
        m = self.on_child.shape[1]
        rows = np.array(
            [
                [start[k] + i if i < n else start[-1] for i in range(m)]
                for k, n in enumerate(self.counts)
            ]
        )
        return jnp.concatenate([values, jnp.zeros(1, values.dtype)])[np.array(rows)]

    def flat(self, rows: Float[Array, "J m"]) -> Float[Array, " M"]:
        """The inverse of `padded`."""
        k = np.repeat(np.arange(len(self.counts)), self.counts)
        i = np.concatenate([np.arange(n) for n in self.counts])
        return rows[k, i]

    def factor(self, masses: Float[Array, " L"], inverses: Float[Array, "L 3 3"]) -> Factors:
        r"""Factors of $G M^{-1} G^T$, of masses and inverse inertias."""
        light = jnp.concatenate([1.0 / masses, jnp.zeros(1, masses.dtype)])
        inverses = jnp.concatenate([inverses, jnp.zeros((1, 3, 3), inverses.dtype)])

        def moved(block, bodies):
            turn = short_sum(take(inverses, bodies)[:, None], block[:, :, None, 3:], axis=3)
            return jnp.concatenate(
                [block[:, :, :3] * take(light, bodies)[:, None, None], turn], axis=2
            )

        parent, child = moved(self.on_parent, self.parents), moved(self.on_child, self.children)
        m = parent.shape[1]
        gap = np.array([[float(i >= n) for i in range(m)] for n in self.counts])
        ends = jnp.asarray(gap[:, :, None] * np.eye(m), parent.dtype)
        diagonal = _outer(self.on_parent, parent) + _outer(self.on_child, child)
        diagonal = diagonal + ends
        pairs = self.neighbours()
        sides = jnp.concatenate([self.on_parent, self.on_child])
        moved_sides = jnp.concatenate([parent, child])
        first, second = ([pair[k] for pair in pairs] for k in (2, 3))
        blocks = _outer(take(sides, first), take(moved_sides, second))
        return factor(diagonal, blocks, tuple(pair[:2] for pair in pairs))

    def neighbours(self) -> list[tuple[int, int, int, int]]:
        """Pairs of joints that share a body, and the rows of their sides at it."""
        count = len(self.parents)
        at: dict[int, list[tuple[int, int]]] = {}
        for k, body in enumerate((*self.parents, *self.children)):
            if body != self.num_bodies:
                at.setdefault(body, []).append((k % count, k))
        pairs = set()
        for joints in at.values():
            joints = sorted(joints)
            for a, (i, row_i) in enumerate(joints):
                pairs |= {(i, j, row_i, row_j) for j, row_j in joints[a + 1 :]}
        return sorted(pairs)


def _outer(A, B):
    return short_sum(A[:, :, None, :], B[:, None, :, :], axis=3)


def joint_gradients(prepared: PreparedSystem, t, joint_frames) -> JointGradients:
    """The gradients of all tree joints in a pose."""
    # Groups that close loops stand behind the others.
    groups = [group for group in prepared.groups if not group.closes_loops]
    counts = [group.joint.num_constraints for group in groups]
    m = 3 if max(counts) <= 3 else 6
    parts = []
    for group, frames in zip(groups, joint_frames[: len(groups)], strict=True):
        pad = ((0, 0), (0, m - group.joint.num_constraints), (0, 0))
        parts.append([jnp.pad(block, pad) for block in group.jacobians(frames, t)])
    on_parent, on_child = (jnp.concatenate(blocks) for blocks in zip(*parts, strict=True))
    return JointGradients(
        on_parent,
        on_child,
        tuple(i for group in groups for i in group.parents),
        tuple(i for group in groups for i in group.children),
        tuple(n for n, group in zip(counts, groups, strict=True) for _ in group.indices),
        prepared.num_bodies,
    )
