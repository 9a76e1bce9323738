r"""Impacts with Coulomb friction, followed along the normal impulse $p$.

The velocities $u = (u_n, u_t)$ of the contact point change by
$\mathrm{d}u/\mathrm{d}p = W (1, f)$. Friction is $f = -\mu\,u_t/|u_t|$ while the point slides.
Where it stops, it sticks if the friction that holds it lies in the cone, and slides on otherwise.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Flag, Matrix3, Scalar, Vector3

# Numbers of steps; in a step the direction of friction is constant and the normal velocity changes
# by `_PART` of its initial value, unless its rate is below `_LEAST_RATE`.
_STEPS, _EQUAL_STEPS = 192, 144
_PART = 1 / 64
_LEAST_RATE = 1e-2
_GROWTH = 1.5
# Cosine of the angle between friction and the opposite of the slip that counts as one.
_STRAIGHT = 1.0 - 1e-9
# Newton steps for the direction of sliding.
_ITERATIONS = 12
# Diagonal shift, in units of the trace times the square root of machine precision, of a matrix that
# is singular where joints block a direction.
_SHIFT = 1e-2
# Mobility of a sticking point along the normal that counts as zero, relative to that of a free
# point, in units of the square root of machine precision.
_WEDGED = 1e-1


class _Impact(NamedTuple):
    """Progress of an impact.

    **Attributes:** `normal` and `slip`, velocities of the contact point; `impulse`, so far; `work`
    of the normal impulse, and its `lowest` value, at the end of compression.
    """

    normal: Scalar
    slip: Float[Array, "2"]
    impulse: Vector3
    work: Scalar
    lowest: Scalar
    is_done: Flag


def frictional_impulse(
    W: Matrix3, velocity: Vector3, restitution: Scalar, friction: Scalar
) -> Vector3:
    r"""Return the impulse of an impact by Stronge's law of restitution.

    The normal impulse returns $e^2$ times the work that compression took, and friction takes
    energy in every step, so that the impact never adds any. Without friction, and where the slip
    keeps its direction, this is Newton's law $\dot g^+ = -e\,\dot g^-$. Where it turns, the
    direction is constant in each of 64 parts of compression.

    **Arguments:** `W`, the velocities that unit impulses cause, positive semidefinite, 1/kg;
    `velocity` before, m/s; normal components first, then two tangential ones.
    **Returns:** shape (3,), N s; zero if the bodies do not approach.
    **Source:** Stronge, Impact Mechanics, chapters 3 and 4 (energetic coefficient of restitution);
    Routh, Dynamics of a System of Rigid Bodies (impulses with friction in a plane).
    """
    a, B = W[1:, 0], W[1:, 1:]
    tiny = float(jnp.finfo(W.dtype).tiny) ** 0.5
    held, mu = -_solve_singular(B, a), friction
    step = -_PART * velocity[0]
    root_of_eps = float(jnp.finfo(W.dtype).eps) ** 0.5

    can_stick = held @ held <= mu * mu

    def follow(impact, growth):
        slip = impact.slip
        rests = slip @ slip == 0
        guess = jnp.where(rests, held, -mu * _direction(slip))
        rate = jnp.maximum(jnp.abs(W[0, 0] + a @ guess), _LEAST_RATE * W[0, 0])
        length = growth * step / rate
        # Friction is opposite to the slip in the middle of a step, unless it stops the slip there.
        middle = slip + 0.5 * length * a
        slides = -mu * _direction_with(0.5 * length * mu * B, middle, tiny)
        against = -_solve_singular(B, middle) / (0.5 * length)
        stops = against @ against <= mu * mu
        until, stopping = _stop(slip, held, B, mu)
        # Without `stopping`, friction that does no work would reverse the slip.
        # Where the point cannot stick, a slip ends only if it has not changed direction before.
        opposes = slip @ stopping <= jnp.where(can_stick, 0.0, -_STRAIGHT * mu * _norm(slip))
        settles = opposes & ~rests & (until <= length)
        force = jnp.where(settles, stopping, jnp.where(stops, against, slides))
        force = jnp.where((slip @ force > 0) & ~stops, 0.0, force)
        new = _advance(impact, W, restitution, force, jnp.where(settles, until, length))
        ends_at_rest = (settles | (stops & rests)) & ~new.is_done
        # Joints may allow no motion but this one, so that a point that sticks cannot move apart.
        is_wedged = rests & stops & (W[0, 0] + a @ held <= _WEDGED * root_of_eps * W[0, 0])
        return new._replace(
            slip=jnp.where(ends_at_rest, 0.0, new.slip),
            impulse=jnp.where(is_wedged, impact.impulse, new.impulse),
            is_done=new.is_done | is_wedged,
        ), None

    zero = jnp.zeros_like(velocity[0])
    start = _Impact(
        velocity[0], velocity[1:], jnp.zeros_like(velocity), zero, zero, velocity[0] >= 0
    )
    growth = np.maximum(1.0, _GROWTH ** (np.arange(_STEPS) - _EQUAL_STEPS))
    impact, _ = jax.lax.scan(follow, start, jnp.asarray(growth, W.dtype))
    return impact.impulse


def _stop(
    slip: Float[Array, "2"], held: Float[Array, "2"], B: Float[Array, "2 2"], mu: Scalar
) -> tuple[Scalar, Float[Array, "2"]]:
    """Return the least normal impulse in which constant friction ends a slip, and this friction.

    It is p = 1 / q with |B^-1 (a + q slip)| = mu, infinite where there is none.
    """
    b = _solve_singular(B, slip)
    square, product = b @ b, -(b @ held)
    margin = mu * mu - held @ held
    moves = square > 0
    inner = jnp.where(moves, product * product + square * margin, 1.0)
    root = jnp.sqrt(jnp.where(inner > 0, inner, 1.0)) * (inner > 0)
    q = (root - product) / jnp.where(moves, square, 1.0)
    exists = moves & (inner >= 0) & (q > 0)
    return jnp.where(exists, 1.0 / jnp.where(q > 0, q, 1.0), jnp.inf), held - q * b


def _advance(
    impact: _Impact, W: Matrix3, e: Scalar, force: Float[Array, "2"], length: Scalar
) -> _Impact:
    """Return the impact after a normal impulse `length`, or at its end.

    **Arguments:** `force`, the friction per normal impulse, constant.
    """
    rates = W[:, 0] + W[:, 1:] @ force
    rate, u = rates[0], impact.normal
    turns = (u < 0) & (rate > 0) & (-u <= rate * length)
    slope = jnp.where(turns, rate, 1.0)
    until = jnp.where(turns, -u / slope, 0.0)
    work = impact.work + 0.5 * u * until
    lowest = jnp.where(turns, jnp.minimum(impact.lowest, work), impact.lowest)
    # The first compression leaves the root of a square, which is smooth at e = 0.
    first = turns & (work <= lowest)
    energy = jnp.where(first, -lowest, 1.0)
    missing = (1.0 - e * e) * lowest - work
    again = jnp.where(turns & ~first & (missing > 0), missing, 1.0)
    rest = jnp.where(first, e * jnp.sqrt(2.0 * energy / slope), 0.0) + jnp.where(
        turns & ~first & (missing > 0), jnp.sqrt(2.0 * again / slope), 0.0
    )
    expands = u > 0
    missing = jnp.where(expands, jnp.maximum(missing, 0.0), 0.0)
    square = u * u + 2.0 * rate * missing
    reaches = expands & (square > 0)
    root = jnp.sqrt(jnp.where(reaches, square, 1.0))
    later = jnp.where(reaches, 2.0 * missing / jnp.where(reaches, u + root, 1.0), jnp.inf)
    end = jnp.where(turns, until + rest, later)
    ends = end <= length
    step = jnp.where(impact.is_done, 0.0, jnp.where(ends, end, length))
    step = jnp.where(jnp.isfinite(step), step, 0.0)
    return _Impact(
        u + rate * step,
        impact.slip + rates[1:] * step,
        impact.impulse + jnp.concatenate([jnp.ones_like(force[:1]), force]) * step,
        impact.work + (u + 0.5 * rate * step) * step,
        lowest,
        impact.is_done | ends,
    )


def _direction_with(A: Float[Array, "2 2"], c: Float[Array, "2"], tiny: float) -> Float[Array, "2"]:
    """Return the unit vector s with A s + r s = c and r > 0, by Newton's method for 1/|s(r)| = 1.

    Some unit vector if there is none, where |A^-1 c| <= 1.
    """
    one, size = jnp.eye(2, dtype=c.dtype), _norm(c)
    least = 1e-14 * size + tiny

    def improve(r, _):
        s = _solve(A + r * one, c)
        length = _norm(s)
        slope = s @ _solve(A + r * one, s)
        change = length * length * (length - 1.0) / jnp.where(slope > 0, slope, 1.0)
        return jnp.clip(r + change, least, size + tiny), None

    start = jnp.maximum(size - jnp.trace(A), least)
    r, _ = jax.lax.scan(improve, start, length=_ITERATIONS)
    return _direction(_solve(A + r * one, c))


def _solve(A: Float[Array, "2 2"], b: Float[Array, "2"]) -> Float[Array, "2"]:
    """Return the solution of a symmetric positive definite system of two equations."""
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    adjugate = jnp.stack([A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]])
    return adjugate / jnp.where(determinant > 0, determinant, 1.0)


def _solve_singular(B: Float[Array, "2 2"], b: Float[Array, "2"]) -> Float[Array, "2"]:
    """Return the solution x of B x = b in the range of a positive semidefinite matrix."""
    info = jnp.finfo(B.dtype)
    shift = _SHIFT * info.eps**0.5 * jnp.trace(B) + info.tiny**0.5
    shifted = B + shift * jnp.eye(2, dtype=B.dtype)
    x = _solve(shifted, b)
    # The second step removes the effect of the shift in the regular directions.
    return x + _solve(shifted, b - B @ x)


def _norm(x: Float[Array, "2"]) -> Scalar:
    square = x @ x
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _direction(x: Float[Array, "2"]) -> Float[Array, "2"]:
    size = _norm(x)
    return x / jnp.where(size > 0, size, 1.0)
