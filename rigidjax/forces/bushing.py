"""Elastic mount between two bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar, Vector3
from ..checks import as_leaf, check_all, finite_rule, float_array, vector_leaf
from ..rotations.matrix import relative, to_body, to_space
from ..rotations.so3 import dexp_inv, log
from ..small_arrays import cross
from .base import AbstractForce, Bodies, Kinematics, Loads
from .ends import Ends, check_ends, ends_at


class Bushing(AbstractForce):
    r"""Six springs and dampers between two bodies, or between a body and the ground.

    It has a frame in each body. In the reference configuration, where it is unloaded, both frames
    are at `point`, along the axes of space. All quantities are in components of the frame of `a`:
    the displacement $d$ of the frame of `b`, the rotation vector $\psi$ of its rotation, and the
    relative twist $\tau = (\dot d, \omega)$ with the relative angular velocity $\omega$.

    The potential energy is $V = \frac12 e^T K e$ with $e = (d, \psi)$. The force and the moment on
    `b` are $(f, H(\psi)^{-T} m) - C\tau$ with $(f, m) = -K e$ and the tangent operator
    $\omega = H \dot\psi$; the opposite wrench acts at the same point on `a`. Without damping energy
    is conserved; damping dissipates the power $\tau^T C \tau$.

    The rotation must stay below pi, where the moment jumps.

    **Arguments:**

    - `a`, `b`: names of bodies or of frames on them; `"ground"` is the inertial frame. Their order
      determines only that the axes of `stiffness` and `damping` rotate with `a`.
    - `point`: (3,) m, space components, in the reference configuration.
    - `stiffness`, $K$: a scalar or (3,), N/m, for displacements alone; (6,), displacements (N/m)
      before rotations (N m/rad); or (6, 6), symmetric.
    - `damping`, $C$: likewise, N s/m and N m s/rad.

    **Errors:** `ValueError` for a wrong shape, a matrix that is not symmetric, or one body twice.
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    point: Vector3
    stiffness: Float[Array, "..."]
    damping: Float[Array, "..."]

    def __init__(
        self, a: str, b: str, point: ArrayLike, stiffness: ArrayLike, damping: ArrayLike = 0.0
    ):
        self.a, self.b = check_ends("Bushing", a, b)
        self.point = vector_leaf(point, "Bushing(point=...)")
        self.stiffness = _coefficients(stiffness, "Bushing(stiffness=...)")
        self.damping = _coefficients(damping, "Bushing(damping=...)")

    def body_names(self) -> tuple[str, ...]:
        return self.a, self.b

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        ends, offset, (d, psi) = self._deformation(bodies, kinematics)
        frame = ends.frames[0]
        f, m = _times(self.stiffness, d, psi)
        spin = ends.omegas[1] - ends.omegas[0]
        slip = ends.velocities[1] - ends.velocities[0] - cross(ends.omegas[0], offset)
        f_lost, m_lost = _times(self.damping, to_body(frame, slip), to_body(frame, spin))
        moment = jnp.zeros_like(d) if m_lost is None else m_lost
        if m is not None:
            # omega = dexp(psi, psi') in components of a. In the transposed inverse the commutator
            # has the opposite sign.
            moment = moment + dexp_inv(psi, m, "body")
        force, moment = -to_space(frame, f + f_lost), -to_space(frame, moment)
        # The opposite force acts on a at the point of b: a force at the point of a, and a couple.
        couples = jnp.stack([-moment - cross(offset, force), moment])
        moments = jax.vmap(to_body)(kinematics.rotations, couples)
        return Loads(jnp.stack([-force, force]), ends.arms, moments)

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        _, _, (d, psi) = self._deformation(bodies, kinematics)
        f, m = _times(self.stiffness, d, psi)
        energy = 0.5 * jnp.sum(f * d)
        return energy if m is None else energy + 0.5 * jnp.sum(m * psi)

    def _deformation(
        self, bodies: Bodies, kinematics: Kinematics
    ) -> tuple[Ends, Vector3, tuple[Vector3, Vector3]]:
        """Return the ends, the vector between them, and displacement and rotation vector."""
        ends = ends_at(jnp.stack([self.point, self.point]), bodies, kinematics)
        offset = ends.points[1] - ends.points[0]
        resists_rotation = self.stiffness.shape[-1:] == (6,)
        psi = log(relative(*ends.frames)) if resists_rotation else jnp.zeros_like(offset)
        return ends, offset, (to_body(ends.frames[0], offset), psi)


def _coefficients(value: ArrayLike, argument: str) -> Float[Array, "..."]:
    array = float_array(value, argument, (), (3,), (6,), (6, 6))
    rules = [finite_rule(argument)]
    if array.ndim == 2:
        rules.append(
            (
                lambda K: abs(K - K.T) <= 1e-6 * abs(K).max(),
                f"`{argument}` must be symmetric (to 1e-6 of its largest entry); take its "
                "symmetric part.",
            )
        )
    return as_leaf(check_all(array, rules))


def _times(
    coefficients: Float[Array, "..."], d: Vector3, psi: Vector3
) -> tuple[Vector3, Vector3 | None]:
    """Multiply displacement and rotation by coefficients; `None` for a moment without them."""
    if coefficients.shape[-1:] != (6,):
        return coefficients * d, None
    e = jnp.concatenate([d, psi])
    if coefficients.ndim == 1:
        product = coefficients * e
    else:
        # Only the symmetric part, so that the force agrees with the energy to round-off.
        product = jnp.sum(0.5 * (coefficients + coefficients.T) * e[None], axis=1)
    return product[:3], product[3:]
