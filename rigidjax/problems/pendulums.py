"""A point mass on a massless link, benchmark A01, and chains of rods under gravity."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies import Body, FixedPointBody
from ..forces import Gravity
from ..joints import Revolute, Spherical
from ..mechanics import System
from ..state import State
from .exact.elliptic import complete_first, jacobi
from .linkages import link
from .problem import Problem, states_along

_GRAVITY = 9.81


def simple_pendulum(duration: float = 10.0) -> Problem:
    """Build a point mass of 1 kg on a massless link of 1 m, released at rest from the horizontal.

    The body has no moment of inertia. Null-space coordinates can represent it because the hinge
    determines its rotation; absolute coordinates cannot. The period is 2.3678419476 s.

    **Arguments:** `duration`, s; 2000 in the benchmark.
    **Source:** IFToMM library of computational benchmark problems, A01.
    """
    bob = Body("bob", 1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    hinge = Revolute("ground", "bob", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    system = System(bob, [hinge], Gravity((0.0, -_GRAVITY, 0.0)))
    return Problem(
        "simple_pendulum",
        "Simple pendulum",
        system,
        system.reference_state(),
        float(duration),
        "IFToMM benchmark A01",
        _motion,
    )


def _motion(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    r"""Compute the motion from $\sin(\varphi/2) = k\,\mathrm{sn}(\omega t + K)$, $k^2 = 1/2$.

    The angle $\varphi$ is measured from the lowest position.
    """
    half = jnp.asarray(0.5, ts.dtype)
    omega = math.sqrt(_GRAVITY)
    f = jacobi(omega * ts + complete_first(half), half)
    sign = jnp.where(jnp.mod(f.half_turns, 2) == 0, 1.0, -1.0)
    k = math.sqrt(0.5)
    sn, cn, dn = sign * f.sn, sign * f.cn, f.dn
    sine, cosine, rate = 2 * k * sn * dn, cn * cn, 2 * k * omega * cn
    zero = jnp.zeros_like(ts)
    # The body turns by phi - pi/2 about the third axis; half of it by half-angle formulas.
    c, s = (dn + k * sn) * k, (k * sn - dn) * k
    rows = lambda *parts: jnp.stack(parts, axis=-1)[:, None]  # noqa: E731
    return states_along(
        rows(sine, -cosine, zero),
        rows(c, zero, zero, s),
        rows(cosine * rate, sine * rate, zero),
        rows(zero, zero, rate),
    )


def chain(n: int = 8, joint: str = "spherical") -> Problem:
    """Build a pendulum of `n` rods of 1 m and 1 kg, released at rest from the horizontal; 2 s.

    **Arguments:** `n`, the number of rods; `joint`, `"spherical"` (rods of 4 cm square section) or
    `"revolute"` (thin rods that move in the x-z plane).
    """
    n = int(n)
    if n < 1:
        raise ValueError(f"`chain(n=...)` must be 1 or more; got {n}.")
    if joint not in ("spherical", "revolute"):
        raise ValueError(f'`chain(joint=...)` must be "spherical" or "revolute"; got {joint!r}.')
    points = [(float(i), 0.0, 0.0) for i in range(n + 1)]
    names = ["ground", *(f"rod {i + 1}" for i in range(n))]
    thickness = 0.04 if joint == "spherical" else 0.0
    bodies = [link(names[i + 1], points[i], points[i + 1], thickness=thickness) for i in range(n)]
    joints = [
        Spherical(names[i], names[i + 1], points[i])
        if joint == "spherical"
        else Revolute(names[i], names[i + 1], points[i], (0.0, 1.0, 0.0))
        for i in range(n)
    ]
    system = System(bodies, joints, Gravity((0.0, 0.0, -9.81)))
    return Problem(
        "chain",
        f"Chain of {n} rods, {joint} joints",
        system,
        system.reference_state(),
        2.0,
        "made for this package",
    )
