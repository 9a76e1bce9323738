"""A ladder of four-bar linkages: benchmark A02."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies import FixedPointBody
from ..forces import Gravity
from ..joints import Revolute
from ..mechanics import System
from ..rotations.so3 import multiply
from ..state import State
from .exact.elliptic import complete_first, jacobi
from .links import link
from .problem import Problem, states_along

_GRAVITY = 9.81
_AXIS = (0.0, 0.0, 1.0)


def n_four_bar(n: int = 40, duration: float = 20.0) -> Problem:
    r"""Build `n` four-bar linkages side by side: 2 n + 1 links of 1 m and 1 kg.

    The mechanism has one degree of freedom. It starts upright, its top moving with 1 m/s, and
    passes through the singular position in which all links are in line. Horizontal links only
    translate, so that $\vartheta'' = g\,\frac{(n+1)/2 + n}{(n+1)/3 + n} \sin\vartheta$. This is
    the equation of a rotating pendulum, which has a closed solution.

    **Arguments:** `n`, 40 in the benchmark; `duration`, s, 20 in the benchmark.
    **Source:** IFToMM library of computational benchmark problems, A02.
    """
    n = int(n)
    if n < 1:
        raise ValueError(f"`n_four_bar(n=...)` must be 1 or more; got {n}.")
    foot, top = (lambda i: (float(i), 0.0, 0.0)), (lambda i: (float(i), 1.0, 0.0))
    uprights = [link(f"upright {i}", foot(i), top(i)) for i in range(n + 1)]
    bars = [link(f"bar {i}", top(i - 1), top(i)) for i in range(1, n + 1)]
    joints = [Revolute("ground", f"upright {i}", foot(i), _AXIS) for i in range(n + 1)]
    for i in range(1, n + 1):
        joints += [
            Revolute(f"upright {i - 1}", f"bar {i}", top(i - 1), _AXIS),
            Revolute(f"bar {i}", f"upright {i}", top(i), _AXIS),
        ]
    system = System([*uprights, *bars], joints, Gravity((0.0, -_GRAVITY, 0.0)))
    reference = system.reference_state()
    velocity, rates = np.zeros((2 * n + 1, 3)), np.zeros((2 * n + 1, 3))
    velocity[: n + 1, 0], velocity[n + 1 :, 0] = 0.5, 1.0
    rates[: n + 1, 2] = -1.0
    state0 = State(reference.position, reference.orientation, velocity, rates)
    return Problem(
        "n_four_bar",
        f"{n} four-bar linkages side by side",
        system,
        state0,
        float(duration),
        "IFToMM benchmark A02",
        _motion,
    )


def _motion(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    r"""Compute $\vartheta = \pi + 2\,\mathrm{am}(\omega t - K)$, $\omega^2 = 1/4 + c$.

    The modulus is given by $k^2 = c/\omega^2$.
    """
    n = (state0.num_bodies - 1) // 2
    c = _GRAVITY * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    omega = math.sqrt(0.25 + c)
    m1 = jnp.asarray(0.25 / omega**2, ts.dtype)
    f = jacobi(omega * ts - complete_first(m1), m1)
    # Half the angle beyond pi/2, up to half revolutions, which only change the quaternion's sign.
    sine, cosine = f.cn, -f.sn
    x, y = 2 * sine * cosine, (cosine - sine) * (cosine + sine)
    rate = 2 * omega * f.dn
    zero = jnp.zeros_like(ts)
    turn = jnp.stack([cosine, zero, zero, -sine], axis=-1)
    shift = jnp.stack([x, y - 1, zero], axis=-1)
    speed = rate[:, None] * jnp.stack([y, -x, zero], axis=-1)
    share = jnp.concatenate([jnp.full(n + 1, 0.5), jnp.ones(n)])[:, None].astype(ts.dtype)
    upright = (jnp.arange(2 * n + 1) <= n)[:, None]
    turned = jax.vmap(lambda q: jax.vmap(lambda p: multiply(q, p))(state0.orientation))(turn)
    spin = jnp.stack([zero, zero, -rate], axis=-1)[:, None]
    return states_along(
        state0.position[None] + share[None] * shift[:, None],
        jnp.where(upright[None], turned, state0.orientation[None]),
        share[None] * speed[:, None],
        jnp.where(upright[None], spin, 0.0),
    )
