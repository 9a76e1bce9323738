"""Generalised forces of chosen joints that cause given accelerations."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import check, checked_with_derivatives, did_you_mean, is_traced
from ..mechanics import System
from ..mechanics.dynamics.loops import LoopGradient
from ..mechanics.dynamics.pseudo_inverse import pseudo_inverse


def actuated_rates(
    system: System,
    labels: Sequence[str],
    actuated: str | Sequence[str],
    argument: str = "inverse_dynamics(actuated=...)",
) -> frozenset[int]:
    """Return the rows of the generalised velocities of actuated joints.

    **Arguments:** `labels`, as `rate_labels`; `actuated`, names of joints of the trees or single
    labels; `argument`, its name in messages.
    **Errors:** `ValueError` for an unknown name, a joint that closes a loop, or one without rates.
    """
    names = (actuated,) if isinstance(actuated, str) else tuple(actuated)
    topology, first = system.topology, np.cumsum([0, *system.rates_of_bodies])
    rows = {
        system.joints[j].name: range(first[body], first[body + 1])
        for body, j in enumerate(topology.joints)
        if j is not None
    }
    rows |= {label: range(k, k + 1) for k, label in enumerate(labels)}
    what = f"`{argument}`"
    for name in names:
        joints = [joint for joint in system.joints if joint.name == name]
        if joints and joints[0].is_driven:
            raise ValueError(
                f"{what}: the motion of the joint {name!r} is prescribed; what drives it is part "
                "of its reaction (`Reaction.drive`)."
            )
        if joints and name not in rows:
            raise ValueError(
                f"{what}: the joint {name!r} closes a loop, so that its rate is no generalised "
                "velocity. Trees grow breadth first from the ground, in the order of the joints: "
                "name it before another joint of the loop, or leave a joint nearer to the ground "
                "to the end."
            )
        if not len(rows.get(name, ())):
            hint = did_you_mean(name, rows, f" There are {list(labels)}.")
            raise ValueError(f"{what} takes joints with free rates; got {name!r}.{hint}")
    return frozenset(int(k) for name in names for k in rows[name])


def forces_of_actuated(
    M: Float[Array, "f f"],
    tau: Float[Array, " f"],
    rows: frozenset[int],
    loops: LoopGradient | None,
) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
    """Return forces at the actuated rates alone, and the remainder that they cannot produce.

    Together they are equivalent to `tau` up to constraint forces of the loops; forces that are not
    unique have the least norm.

    **Arguments:** `M`, mass matrix; `tau`, generalised forces at all rates, N and N m; `rows`,
    actuated rates; `loops`, `None` for a tree.
    **Returns:** forces (f,), zero at other rates; and the remainder (f,), relative to the forces.
    """
    chosen = np.array(sorted(rows), int)
    scale = jnp.ones_like(tau) if loops is None else loops.scale
    scaled = scale * tau
    if loops is None:
        u, rest = scaled[chosen], scaled.at[chosen].set(0.0)
    else:
        free = jnp.eye(len(tau), dtype=tau.dtype) - loops.inverse() @ loops.matrix
        wanted, columns = free @ scaled, free[:, chosen]
        u = pseudo_inverse(columns) @ wanted
        rest = wanted - columns @ u
    forces = jnp.zeros_like(tau).at[chosen].set(u) / scale
    # Without forces, an acceleration of 1 rad/s^2 sets the scale.
    size = jnp.max(jnp.abs(scaled), initial=0.0) + jnp.trace(scale[:, None] * M * scale)
    return forces, jnp.abs(rest) / jnp.where(size > 0, size, 1.0)


def check_forces(
    forces: Float[Array, " f"],
    rest: Float[Array, " f"],
    labels: Sequence[str],
    names: str | Sequence[str],
) -> Float[Array, " f"]:
    """Return the forces, or raise if the remainder of `forces_of_actuated` is not zero.

    **Errors:** `ValueError`, at run time if traced.
    """
    names = [names] if isinstance(names, str) else list(names)
    small = float(jnp.finfo(forces.dtype).eps) ** 0.5
    message = (
        f"The joints that are actuated, {names}, cannot cause these accelerations: forces are "
        "missing elsewhere. Actuate more joints, or ask `forward_dynamics` for accelerations."
    )
    if is_traced(rest):

        def check_rest(value):
            # No product with zero, which compiled code drops: NaN of a bad batch element stays NaN.
            worst = jnp.max(check(rest, lambda x: x <= small, message), initial=0.0)
            return jnp.where(worst <= small, value, jnp.nan)

        return checked_with_derivatives(forces, check_rest)
    if rest.size and not np.max(rest) <= small:
        where = labels[int(np.argmax(rest))]
        raise ValueError(f"{message} The largest missing force is at {where!r}.")
    return forces
