r"""Constraints of trees joint by joint: $G M^{-1} G^T\lambda = c$ at linear cost."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...small_arrays import short_sum, take
from ..stacked.joints import JointFrames
from ..stacked.system import PreparedSystem
from .block_elimination import Factors, factor


class JointGradients(eqx.Module):
    """Gradients of the constraints of every joint on its two bodies.

    Joints follow the order of the groups, with rows of zeros up to a common number m of constraints
    (3 or 6).
    """

    on_parent: Float[Array, "J m 6"]
    on_child: Float[Array, "J m 6"]
    parents: tuple[int, ...] = eqx.field(static=True)
    children: tuple[int, ...] = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    num_bodies: int = eqx.field(static=True)

    def apply(self, w: Float[Array, "L 6"]) -> Float[Array, "J m"]:
        r"""Return $G\,w$."""
        w = jnp.concatenate([w, jnp.zeros((1, 6), w.dtype)])

        def apply_block(block, rows):
            return short_sum(block, take(w, rows)[:, None], axis=2)

        return apply_block(self.on_parent, self.parents) + apply_block(self.on_child, self.children)

    def transpose(self, lam: Float[Array, "J m"]) -> Float[Array, "L 6"]:
        r"""Return $G^T\lambda$."""
        parts = [short_sum(b, lam[:, :, None], axis=1) for b in (self.on_parent, self.on_child)]
        wrenches = jnp.concatenate([*parts, jnp.zeros((1, 6), lam.dtype)])
        rows_of: list[list[int]] = [[] for _ in range(self.num_bodies + 1)]
        for k, body in enumerate((*self.parents, *self.children)):
            rows_of[body].append(k)
        width = max(len(rows) for rows in rows_of[:-1])
        empty = 2 * len(self.parents)
        rows = np.array([row[::-1] + [empty] * (width - len(row)) for row in rows_of[:-1]])
        return sum((take(wrenches, column) for column in rows.T), jnp.zeros((1, 6), lam.dtype))

    def pad(self, values: Float[Array, " M"]) -> Float[Array, "J m"]:
        """Return values in the order of `constraint_values` as one row for each joint."""
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

    def unpad(self, rows: Float[Array, "J m"]) -> Float[Array, " M"]:
        """Return rows of joints as values: the inverse of `pad`."""
        k = np.repeat(np.arange(len(self.counts)), self.counts)
        i = np.concatenate([np.arange(n) for n in self.counts])
        return rows[k, i]

    def factor(self, masses: Float[Array, " L"], inverses: Float[Array, "L 3 3"]) -> Factors:
        """Factor $G M^{-1} G^T$ of masses and inverse inertias."""
        inverse_masses = jnp.concatenate([1.0 / masses, jnp.zeros(1, masses.dtype)])
        inverses = jnp.concatenate([inverses, jnp.zeros((1, 3, 3), inverses.dtype)])

        def apply_inverse_mass(block, bodies):
            turn = short_sum(take(inverses, bodies)[:, None], block[:, :, None, 3:], axis=3)
            return jnp.concatenate(
                [block[:, :, :3] * take(inverse_masses, bodies)[:, None, None], turn], axis=2
            )

        parent, child = (
            apply_inverse_mass(self.on_parent, self.parents),
            apply_inverse_mass(self.on_child, self.children),
        )
        m = parent.shape[1]
        missing = np.array([[float(i >= n) for i in range(m)] for n in self.counts])
        ends = jnp.asarray(missing[:, :, None] * np.eye(m), parent.dtype)
        diagonal = _outer(self.on_parent, parent) + _outer(self.on_child, child)
        diagonal = diagonal + ends
        pairs = self.neighbours()
        sides = jnp.concatenate([self.on_parent, self.on_child])
        light_sides = jnp.concatenate([parent, child])
        first, second = ([pair[k] for pair in pairs] for k in (2, 3))
        blocks = _outer(take(sides, first), take(light_sides, second))
        return factor(diagonal, blocks, tuple(pair[:2] for pair in pairs))

    def neighbours(self) -> list[tuple[int, int, int, int]]:
        """Return pairs of joints that share a body, and the rows of their sides at it."""
        count = len(self.parents)
        joints_at: dict[int, list[tuple[int, int]]] = {}
        for k, body in enumerate((*self.parents, *self.children)):
            if body != self.num_bodies:
                joints_at.setdefault(body, []).append((k % count, k))
        pairs = set()
        for joints in joints_at.values():
            joints = sorted(joints)
            for a, (i, row_i) in enumerate(joints):
                pairs |= {(i, j, row_i, row_j) for j, row_j in joints[a + 1 :]}
        return sorted(pairs)


def _outer(A: Float[Array, "n m k"], B: Float[Array, "n m k"]) -> Float[Array, "n m m"]:
    return short_sum(A[:, :, None, :], B[:, None, :, :], axis=3)


def joint_gradients(
    prepared: PreparedSystem, t: Scalar, joint_frames: JointFrames
) -> JointGradients:
    """Return the gradients of all tree joints in a given pose."""
    # Groups that close loops follow the others.
    groups = [group for group in prepared.groups if not group.closes_loops]
    counts = [group.joint.num_constraints for group in groups]
    m = 3 if max(counts) <= 3 else 6
    parts = []
    for group, frames in zip(groups, joint_frames.groups[: len(groups)], strict=True):
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
