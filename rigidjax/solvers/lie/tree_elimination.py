r"""Newton matrices of trees in absolute coordinates, and their solution at linear cost.

The balance of a body depends on the bodies that joints or forces connect with it, and a constraint
on two bodies. Columns of bodies that no row has in common are differentiated together, so that the
number of tangents does not grow with the number of bodies. Elimination from the leaves to the roots
causes no fill-in.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...forces import Gravity
from ...forces.base import AbstractForce
from ...mechanics.declared.system import AbstractSystem
from ...mechanics.dynamics.articulated_body import find_segments
from ...mechanics.dynamics.joint_gradients import JointGradients
from ...mechanics.kinematics.trees import in_order
from ...mechanics.stacked.system import PreparedSystem
from ...small_arrays import inverse, take

_K = 6  # components of a twist


@dataclasses.dataclass(frozen=True)
class TreePlan:
    """Structure of the Newton matrix of a tree, static.

    One entry for each body: `parents`, the number of bodies for the ground; `joints`, rows of the
    joints in `JointGradients`, their number for a free body; `flipped`, whether the joint has the
    body as its parent; `colours`, different for bodies that a row has in common.
    """

    system: AbstractSystem
    parents: np.ndarray
    joints: np.ndarray
    flipped: np.ndarray
    colours: np.ndarray


def plan_tree(prepared: PreparedSystem) -> TreePlan | None:
    """Return the structure of the Newton matrix; `None` if it is not that of a tree.

    That is a system with loops or constraints, without joints, or with forces that connect bodies
    that no joint connects.
    """
    system, topology = prepared.system, prepared.system.topology
    if system.has_loops or not system.joints or not system.translates:
        return None
    count = topology.num_bodies
    parents = np.array([count if p < 0 else p for p in topology.parents])
    if not all(_is_local(prepared, parents, force) for force in system.all_forces):
        return None
    order = [j for group in prepared.groups for j in group.indices]
    rows = [len(order) if j is None else order.index(j) for j in topology.joints]
    colours = _colour(topology.order, parents)
    return TreePlan(system, parents, np.array(rows), np.array(topology.reversed), colours)


def _is_local(prepared: PreparedSystem, parents: np.ndarray, force: AbstractForce) -> bool:
    """Return whether a force acts on single bodies, or between bodies that a joint connects."""
    system = prepared.system
    if isinstance(force, Gravity) or force.joint_names():
        return True
    rows = [system.locate(name)[0] for name in force.body_names() if name != "ground"]
    if not force.body_names() or len(rows) > 2:
        return False
    return len(rows) < 2 or parents[rows[0]] == rows[1] or parents[rows[1]] == rows[0]


def _colour(order: tuple[int, ...], parents: np.ndarray) -> np.ndarray:
    """Return colours such that a body, its parent and its children have different ones."""
    count = len(parents)
    colours = [-1] * (count + 1)
    children: dict[int, list[int]] = {}
    for body in order:
        parent = int(parents[body])
        near = {colours[sibling] for sibling in children.get(parent, [])}
        if parent < count:
            near |= {colours[parent]}
            above = int(parents[parent])
            near |= {colours[above]} if above < count else set()
            children.setdefault(parent, []).append(body)
        colours[body] = next(colour for colour in range(count + 1) if colour not in near)
    return np.array(colours[:-1])


def newton_blocks(
    plan: TreePlan,
    along: Callable[[Float[Array, "L 6"]], tuple[Float[Array, "L 6"], Float[Array, "J m"]]],
    gradients: JointGradients,
) -> tuple[Float[Array, "L n n"], Float[Array, "L n 6"], Float[Array, "L 6 n"]]:
    r"""Return the blocks of the Newton matrix, body by body, with n = 6 + m.

    The unknowns of a body are its increment and the multipliers of the joint that attaches it, the
    equations its balance and the constraints of this joint.

    **Arguments:** `along`, derivative of the balances and of the constraints, one row for each
    joint, along increments; `gradients` $G$ of the joints.
    **Returns:** blocks on the diagonal; those of the equations of a body and the increment of its
    parent; those of the balance of the parent and the unknowns of the body.
    """
    count, m = len(plan.parents), gradients.on_child.shape[1]
    num_colours = int(plan.colours.max()) + 1
    seeds = np.zeros((num_colours, _K, count, _K))
    seeds[plan.colours, :, np.arange(count)] = np.eye(_K)
    seeds = jnp.asarray(seeds.reshape(-1, count, _K), gradients.on_child.dtype)
    balances, gaps = jax.vmap(along)(seeds)
    # A zero row for the ground, and for the joints of free bodies.
    balances = jnp.pad(balances, ((0, 0), (0, 1), (0, 0))).reshape(num_colours, _K, count + 1, _K)
    gaps = jnp.pad(gaps, ((0, 0), (0, 1), (0, 0))).reshape(num_colours, _K, -1, m)
    bodies = np.arange(count)
    own, above = plan.colours, np.append(plan.colours, 0)[plan.parents]
    has_parent = jnp.asarray((plan.parents < count)[:, None, None], seeds.dtype)

    def columns(values, colours, rows):
        return jnp.swapaxes(values[colours, :, rows], 1, 2)

    sides = [
        jnp.pad(side, ((0, 1), (0, 0), (0, 0)))
        for side in (gradients.on_child, gradients.on_parent)
    ]
    flipped = plan.flipped[:, None, None]
    on_body, on_parent = (
        jnp.where(flipped, take(b, plan.joints), take(a, plan.joints))
        for a, b in (sides, sides[::-1])
    )
    is_missing = np.append(
        np.array([[k >= n for k in range(m)] for n in gradients.counts]), np.ones((1, m), bool), 0
    )
    unit = jnp.asarray(is_missing[plan.joints][:, :, None] * np.eye(m), seeds.dtype)
    diagonal = _blocks(
        columns(balances, own, bodies), jnp.swapaxes(on_body, 1, 2),
        columns(gaps, own, plan.joints), unit,
    )  # fmt: skip
    up = jnp.concatenate(
        [columns(balances, above, bodies), columns(gaps, above, plan.joints)], axis=1
    )
    down = jnp.concatenate(
        [columns(balances, own, plan.parents), jnp.swapaxes(on_parent, 1, 2)], axis=2
    )
    return diagonal, has_parent * up, has_parent * down


def _blocks(A: Array, B: Array, C: Array, D: Array) -> Array:
    return jnp.concatenate(
        [jnp.concatenate([A, B], axis=2), jnp.concatenate([C, D], axis=2)], axis=1
    )


Factors = tuple[Float[Array, "L n n"], Float[Array, "L n 6"], Float[Array, "L 6 n"]]


def factor_tree(
    plan: TreePlan,
    diagonal: Float[Array, "L n n"],
    up: Float[Array, "L n 6"],
    down: Float[Array, "L 6 n"],
) -> Factors:
    r"""Eliminate the bodies from the leaves to the roots.

    **Returns:** inverses of the diagonal blocks $D$; blocks `up`; `down` times $D^{-1}$.
    """

    def inwards(carried, row):
        D, up, down = row
        D_inverse = inverse(D.at[:_K, :_K].add(carried))
        multiplier = down @ D_inverse
        return -multiplier @ up, (D_inverse, multiplier)

    start = jnp.zeros((_K, _K), diagonal.dtype)
    inverses, multipliers = _inwards(plan, inwards, start, (diagonal, up, down))
    return inverses, up, multipliers


def solve_tree(plan: TreePlan, factors: Factors, right: Float[Array, "L n"]) -> Float[Array, "L n"]:
    """Return the solution of the factored equations."""
    inverses, up, multipliers = factors

    def inwards(carried, row):
        right, multiplier = row
        right = right.at[:_K].add(carried)
        return -multiplier @ right, right

    right = _inwards(plan, inwards, jnp.zeros(_K, right.dtype), (right, multipliers))

    def outwards(above, row):
        D_inverse, up, right = row
        solution = D_inverse @ (right - up @ above)
        return solution[:_K], solution

    segments, parts = find_segments(plan.system), []
    for segment in segments:
        above = jnp.zeros(_K, right.dtype)
        if segment.parent is not None:
            above = parts[segment.parent][-1, :_K]
        rows = jax.tree.map(lambda leaf, s=segment: take(leaf, s.bodies), (inverses, up, right))
        parts.append(jax.lax.scan(outwards, above, rows)[1])
    return in_order(parts, [segment.bodies for segment in segments], right)


def _inwards(plan: TreePlan, function: Callable, start: Array, rows: tuple) -> Any:
    """Apply a function to the rows of all bodies, children first; carry sums to the parents."""
    segments = find_segments(plan.system)
    carried, parts = [start] * len(segments), [None] * len(segments)
    for k in reversed(range(len(segments))):
        of_segment = jax.tree.map(lambda leaf, s=segments[k]: take(leaf, s.bodies), rows)
        total, parts[k] = jax.lax.scan(function, carried[k], of_segment, reverse=True)
        parent = segments[k].parent
        if parent is not None:
            carried[parent] = carried[parent] + total
    rows_of_parts = [segment.bodies for segment in segments]
    return jax.tree.map(lambda *leaves: in_order(list(leaves), rows_of_parts, leaves[0]), *parts)
