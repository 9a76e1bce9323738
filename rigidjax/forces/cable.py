"""Cable over points of bodies."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from ..checks import ArrayInput, nonnegative_leaf, vector_leaf
from ..rotations.guarded import safe_divide, safe_sqrt
from ..rotations.so3 import dot
from ..small_arrays import vmap_rows
from .base import AbstractForce, Bodies, Kinematics, Loads
from .ends import Ends, ends_at


class Cable(AbstractForce):
    r"""An elastic cable or belt that runs over points of bodies, straight between them.

    It slides over the points without friction, as over small pulleys: the tension is the same
    everywhere. With the length $l$, the sum of the distances from point to point, the tension is

    $$T = p + \min(\max(c\,\dot l, -p), p), \qquad p = k \max(l - l_0, 0)$$

    A cable does not push, $T \ge 0$, and is slack below its length $l_0$; the damping force is
    limited to the pull of the spring, so that $T$ is continuous. It has a kink where the cable
    becomes taut. The potential energy is $p^2 / 2k$. With `tension_only=False` it is a spring and a
    damper, $T = k\,(l - l_0) + c\,\dot l$. Where two consecutive points coincide, the part between
    them has no direction and exerts no force.

    **Arguments:**

    - `points`: pairs of a body and a point in the order of the cable, at least two. The body is the
      name of a body or of a frame, `"ground"` is the inertial frame; consecutive points may be on
      one body. The point is (3,) m, space components, in the reference configuration. A name alone,
      or with `None`, stands for the origin of the frame or the centre of mass.
    - `stiffness`, $k$, of the whole cable, N/m; `damping`, $c$, N s/m.
    - `length`, $l_0$, unloaded length, m; `None` for the length in the reference configuration.
    - `closed`: whether it returns from the last point to the first, as a belt does.
    - `tension_only`: whether it can be slack.

    **Errors:** `ValueError` for fewer than two points, pairs of another form, a wrong shape, or
    negative values.
    """

    bodies: tuple[str, ...] = eqx.field(static=True)
    points: tuple[Vector3 | None, ...]
    stiffness: Scalar
    damping: Scalar
    length: Scalar | None
    closed: bool = eqx.field(static=True)
    tension_only: bool = eqx.field(static=True)

    def __init__(
        self,
        points: Sequence[str | tuple[str, ArrayInput | None]],
        stiffness: ArrayInput,
        damping: ArrayInput = 0.0,
        length: ArrayInput | None = None,
        *,
        closed: bool = False,
        tension_only: bool = True,
    ):
        pairs = [_checked_pair(pair, k) for k, pair in enumerate(points)]
        if len(pairs) < 2:
            raise ValueError(f"`Cable(points=...)` needs at least two points; got {len(pairs)}.")
        self.bodies, self.points = (tuple(part) for part in zip(*pairs, strict=True))
        self.stiffness = nonnegative_leaf(stiffness, "Cable(stiffness=...)")
        self.damping = nonnegative_leaf(damping, "Cable(damping=...)")
        self.length = None if length is None else nonnegative_leaf(length, "Cable(length=...)")
        self.closed, self.tension_only = closed, tension_only

    def body_names(self) -> tuple[str, ...]:
        return self.bodies

    @property
    def needs_different_bodies(self) -> bool:
        return False

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        ends = ends_at(self._reference_points(bodies), bodies, kinematics)
        offsets = self._offsets(ends.points)
        lengths = _norms(offsets)
        lines = vmap_rows(safe_divide, offsets, lengths)
        pull = self.stiffness * (jnp.sum(lengths) - self._free_length(bodies))
        damping = self.damping * jnp.sum(lines * self._offsets(ends.velocities))
        tension = one_sided_tension(pull, damping) if self.tension_only else pull + damping
        # Every part pulls its first point forwards and its last one backwards.
        pulls = tension * lines
        if self.closed:
            return Loads(pulls - jnp.roll(pulls, 1, axis=0), ends.arms)
        zero = jnp.zeros_like(pulls[:1])
        forces = jnp.concatenate([pulls, zero]) - jnp.concatenate([zero, pulls])
        return Loads(forces, ends.arms)

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        ends: Ends = ends_at(self._reference_points(bodies), bodies, kinematics)
        stretch = jnp.sum(_norms(self._offsets(ends.points))) - self._free_length(bodies)
        stretch = jnp.maximum(stretch, 0.0) if self.tension_only else stretch
        return 0.5 * self.stiffness * stretch**2

    def _reference_points(self, bodies: Bodies) -> Float[Array, "B 3"]:
        given = zip(self.points, bodies.positions, strict=True)
        return jnp.stack([x if point is None else point for point, x in given])

    def _offsets(self, values: Float[Array, "B 3"]) -> Float[Array, "S 3"]:
        """Return the differences from point to point."""
        following = jnp.roll(values, -1, axis=0) - values
        return following if self.closed else following[:-1]

    def _free_length(self, bodies: Bodies) -> Scalar:
        if self.length is not None:
            return self.length
        return jnp.sum(_norms(self._offsets(self._reference_points(bodies))))


def _norms(vectors: Float[Array, "S 3"]) -> Float[Array, " S"]:
    return vmap_rows(lambda v: safe_sqrt(dot(v, v)), vectors)


def _checked_pair(pair: object, k: int) -> tuple[str, Vector3 | None]:
    if isinstance(pair, str):
        return pair, None
    if not isinstance(pair, Sequence) or len(pair) != 2 or not isinstance(pair[0], str):
        raise ValueError(
            f"`Cable(points=...)` takes pairs of the name of a body and a point, (body, point); "
            f"entry {k} is {pair!r}."
        )
    name, point = pair
    return name, None if point is None else vector_leaf(point, f"Cable(points=...)[{k}]")


def one_sided_tension(pull: Scalar, damping: Scalar) -> Scalar:
    r"""Return the tension of a cord from the forces of its spring and its damper, N.

    It is zero where the cord is slack, that is, where the spring would push. The damping force is
    limited to the size of the pull, $-p \le c\,\dot l \le p$: the tension is then continuous where
    the cord becomes taut, and never negative.
    """
    pull = jnp.maximum(pull, 0.0)
    return pull + jnp.clip(damping, -pull, pull)
