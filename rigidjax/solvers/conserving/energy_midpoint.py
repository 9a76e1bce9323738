"""Geradin and Rixen's mid-point scheme for tops."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from ...annotations import Scalar, T, Vector
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...checks import check, is_traced
from ...forces.base import Kinematics
from ...formulations import Absolute, AbstractFormulation
from ...joints import Spherical
from ...mechanics import SystemMechanics, has_joints
from ...native.ops import cross, sequential_vmap_on_cpu
from ...rotations.base import AbstractRotation
from ...rotations.matrix import to_body, to_space
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import normalize
from .equations import AbstractMotionStep
from .fixed_point import Turn
from .increments import conformal, rotated, sine
from .model_checks import check_form, check_free_bodies
from .motion import BodyMotion, motion_of
from .one_step import AbstractOneStepSolver

# Largest relative difference of two moments of inertia that count as equal.
_EQUAL = 1e-9


class EnergyMidpoint(AbstractOneStepSolver):
    r"""The mid-point scheme for the top in descriptor form, $(x, R, \lambda)$.

    $R_n^T R_{n+1} = F^2$ with the half rotation $F$, $\Omega_{n+1/2} = \frac2h\mathrm{vect}(F)$,
    the balances of momentum and of angular momentum with the reaction $\lambda$ in the middle, and
    the constraint on velocities there, $x_{n+1} - x_n = h R_{n+1/2} (\Omega_{n+1/2} \times X)$,
    which with this $\Omega_{n+1/2}$ is that on positions: no drift but round-off.

    - `mean="angular-momentum"`, the scheme as printed: the mean of the angular momenta is
      $R_{n+1/2} J \Omega_{n+1/2}$, (310), and $\Omega_{n+1}$ follows from the angular momentum.
      **Energy is conserved only for a body with two equal moments of inertia, J11 = J22, and only
      without moments** (free rotation with J = (6, 8, 3), h = 0.1 is off by 1.5e-3). Under gravity
      the energy of a symmetric top is kept to second order: 2e-6 in case 1 of the paper at
      h = 0.01 s, 2e-8 at 0.001 s; (334) takes for granted what is (326) below. Other bodies are
      refused unless asked for.
    - `mean="angular-velocity"`: the mean of the angular velocities is $\Omega_{n+1/2}$, (326), as
      the proof of conservation (334) has it. Energy is conserved exactly, for every inertia.
    - left out: what the paper says of its scheme. Bodies with two equal moments take the mean of
      (334), their energy is constant, with moments too; others are refused, or, with
      `any_inertia=True`, take the scheme as printed.

    For `Absolute(index=0)` in `Quaternion()` of a `System` of one body on one `Spherical` joint to
    the ground (its unknowns have the velocity of the centre of mass, which the constraint in the
    middle does not tie to $\Omega$), and for `NullSpace` and `Absolute(index=0)` of a
    `FixedPointBody`, where no constraint is left. Rotations below pi a step. For bodies without
    joints and other potentials take `EnergyMomentum()` or `SimoWong(conserve="energy")`.

    **Arguments:** `half_rotation`: `"euler-parameters"` or `"conformal"`, the unknowns of $F$; the
    steps are the same; `mean`; `any_inertia`: admit bodies whose energy is not conserved;
    `max_iterations` of Newton's method.
    **Raises:** `ValueError` for another `half_rotation` or `mean`, three different moments, or a
    model that the scheme is not defined on.
    **Source:** Geradin-Rixen, sections 11.1 to 11.5, (306) with the sign of (301), (341).
    """

    half_rotation: Literal["euler-parameters", "conformal"] = eqx.field(
        static=True, default="euler-parameters"
    )
    mean: Literal["angular-momentum", "angular-velocity"] | None = eqx.field(
        static=True, default=None
    )
    any_inertia: bool = eqx.field(static=True, default=False)
    max_iterations: int = eqx.field(static=True, default=30)

    def __check_init__(self):
        if self.half_rotation not in ("euler-parameters", "conformal"):
            raise ValueError(
                '`EnergyMidpoint(half_rotation=...)` must be "euler-parameters" or "conformal"; '
                f"got {self.half_rotation!r}."
            )
        if self.mean not in (None, "angular-momentum", "angular-velocity"):
            raise ValueError(
                '`EnergyMidpoint(mean=...)` must be "angular-momentum" or "angular-velocity"; got '
                f"{self.mean!r}."
            )

    def check_model(self, model: AbstractFormulation) -> None:
        if has_joints(model.system):
            check_form(self, model, (Quaternion,))
            _check_top(model)
        else:
            check_free_bodies(self, model, (Quaternion,))
            if model.multibody.translates:
                raise ValueError(
                    "`EnergyMidpoint` is for one body with a fixed point; got a `System` without "
                    "joints. Use `rj.solvers.EnergyMomentum()`."
                )
        inertia = _inertia(model)
        if self._needs_symmetry and not is_traced(inertia):
            known = np.asarray(inertia)
            moments = known if known.ndim == 1 else np.linalg.eigvalsh(known)
            with eval_context():  # also where a function under trace closes over it
                check(moments, lambda moments: _difference(moments) <= _EQUAL, _SYMMETRIC)

    def checked(self, model: AbstractFormulation, value: T) -> T:
        inertia = _inertia(model)
        if not self._needs_symmetry or not is_traced(inertia):
            return value
        moments = inertia if inertia.ndim == 1 else _eigenvalues(inertia)
        return eqx.error_if(value, ~(_difference(moments) <= _EQUAL), _SYMMETRIC)

    @property
    def _needs_symmetry(self):
        return not self.any_inertia and self.mean != "angular-velocity"

    @property
    def _trapezoidal(self):
        if self.mean is None:
            return not self.any_inertia
        return self.mean == "angular-velocity"

    def first_memory(self, model, t0, y0, memory):
        return memory

    def advance(self, model, t0, t1, y0, memory):
        return self.advance_body(model, t0, t1, y0, memory)

    def step_of_body(self, model, t0, h, start) -> AbstractMotionStep:
        mechanics = model.mechanics
        arm = _arm(mechanics) if mechanics.groups else None
        return TopStep(
            mechanics, model.rotation, t0, h, start, arm,
            self.half_rotation == "conformal", self._trapezoidal,
        )  # fmt: skip

    def reaction(
        self, model: AbstractFormulation, t0: Scalar, y0: Vector, t1: Scalar, y1: Vector
    ) -> Float[Array, "3"]:
        r"""Reaction $\lambda_{n+1/2}$ on the body in the step from `y0` to `y1`, shape (3,), N.

        Space components, at the joint. **Source:** Geradin-Rixen (309).
        """
        start, end, h = motion_of(model, y0), motion_of(model, y1), t1 - t0
        assert start.position is not None and start.velocity is not None
        assert end.position is not None and end.velocity is not None
        mean = normalize(start.coordinates + end.coordinates)
        turn = Turn(
            model.rotation, 0.5 * (t0 + t1), h, mean, 0.5 * (start.omega + end.omega),
            conformal(jnp.zeros(3, y0.dtype)),
        )  # fmt: skip
        position = 0.5 * (start.position + end.position)
        velocity = (end.position - start.position) / h
        force, _ = _loads(model.mechanics, turn, position, velocity)
        gain = model.mechanics.masses[0] * (end.velocity - start.velocity) / h
        return gain - force


class TopStep(AbstractMotionStep):
    r"""$W$, with the velocity of the centre of mass and the reaction eliminated.

    **Attributes:** `mechanics`; `arm`, $X$, from the joint to the centre of mass, (3,) m, body
    components; `None` for a body with a fixed point; `conformal`, whether $h W$ is a conformal
    rotation vector, else twice the vector part of Euler parameters; `trapezoidal`, whether
    $\Omega_{n+1/2}$ is the mean of the angular velocities.
    """

    mechanics: SystemMechanics  # of one body
    rotation: AbstractRotation
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: BodyMotion
    arm: Float[Array, "3"] | None
    conformal: bool = eqx.field(static=True)
    trapezoidal: bool = eqx.field(static=True)

    def guess(self):
        return self.start.omega

    def measures(self):
        return jnp.ones_like(self.start.omega) / jnp.abs(self.h)

    def residual(self, Z):
        turn, V = self._middle(Z)
        inertia, h, omega = self.mechanics.inertias[0], self.h, self.start.omega
        before = rotated(turn.one, angular_momentum(inertia, omega), back=True)
        if self.trapezoidal:
            after = rotated(turn.one, angular_momentum(inertia, 2.0 * turn.omega - omega))
            r = 0.5 * (after - before)
        else:
            r = angular_momentum(inertia, turn.omega) - before
        start, position = self.start, None
        if start.position is not None and V is not None:
            position = start.position + 0.5 * h * V
        force, moment = _loads(self.mechanics, turn, position, V)
        if V is not None:
            assert self.arm is not None and start.velocity is not None
            # The reaction, (309), at -X from the centre of mass.
            reaction = self.mechanics.masses[0] * (2.0 / h) * (V - start.velocity)
            r = r + 0.5 * h * cross(self.arm, to_body(turn.matrix, reaction - force))
        return r - 0.5 * h * moment

    def end(self, Z):
        turn, V = self._middle(Z)
        inertia, start = self.mechanics.inertias[0], self.start
        if self.trapezoidal:
            omega = 2.0 * turn.omega - start.omega
        else:
            before = rotated(turn.one, angular_momentum(inertia, start.omega), back=True)
            after = 2.0 * angular_momentum(inertia, turn.omega) - before
            omega = solve_inertia(inertia, rotated(turn.one, after, back=True))
        if start.position is None or start.velocity is None:
            return BodyMotion(turn.last, omega)
        assert V is not None
        position, velocity = start.position + self.h * V, 2.0 * V - start.velocity
        return BodyMotion(turn.last, omega, None, position, velocity)

    def _middle(self, Z):
        """The rotation with its mean rate, and the mean velocity of the centre of mass."""
        one = (conformal if self.conformal else sine)(self.h * Z)
        mean = one.chord * Z  # 2/h vect(F)
        t, start = self.t0 + 0.5 * self.h, self.start.coordinates
        turn = Turn(self.rotation, t, self.h, start, mean, one)
        return turn, None if self.arm is None else to_space(turn.matrix, cross(mean, self.arm))


def _loads(
    mechanics: SystemMechanics, turn: Turn, position: Array | None, velocity: Array | None
) -> list[Float[Array, "3"]]:
    """Force, space components, and moment in the middle of a step; the centre of mass rests in the
    origin where there is no position."""
    rest = jnp.zeros_like(turn.omega)
    x, v = (rest if value is None else value for value in (position, velocity))
    middle = Kinematics(x[None], turn.matrix[None], v[None], turn.omega[None])
    return jnp.split(mechanics.applied(turn.t, middle)[0], 2)


_SYMMETRIC = (
    "`EnergyMidpoint` needs a body with two equal moments of inertia to conserve energy. Use "
    '`EnergyMidpoint(mean="angular-velocity")`, `EnergyMomentum()` or '
    '`SimoWong(conserve="energy")`, which do for every body, or ask for it with '
    "`EnergyMidpoint(any_inertia=True)`."
)


_eigenvalues = sequential_vmap_on_cpu(jnp.linalg.eigvalsh)


def _difference(moments):
    """Smallest difference of two of three numbers, relative to the largest."""
    a, b, c = moments[0], moments[1], moments[2]
    least = jnp.minimum(jnp.minimum(jnp.abs(a - b), jnp.abs(b - c)), jnp.abs(c - a))
    return least / jnp.max(jnp.abs(jnp.stack([a, b, c])))


def _check_top(model: AbstractFormulation) -> None:
    """Raise for a system with joints that is not a top on a ball joint."""
    system = model.multibody
    joint = system.joints[0]
    one = len(system.bodies) == 1 and len(system.joints) == 1
    if not one or not isinstance(joint, Spherical) or "ground" not in (joint.parent, joint.child):
        raise ValueError(
            "`EnergyMidpoint` is for one body on one `Spherical` joint to the ground; got "
            f"{len(system.bodies)} bodies and "
            f"{[type(joint).__name__ for joint in system.joints]}. Use `NullSpace` with "
            "`diffrax.Dopri8()` or `rj.solvers.Radau5()`."
        )
    if not isinstance(model, Absolute):
        raise ValueError(
            "`EnergyMidpoint` has the velocity of the centre of mass as an unknown, which is not a "
            "function of the joint rates. Use `rj.Absolute(system, rj.Quaternion(), index=0)`."
        )


def _inertia(model: AbstractFormulation) -> Array | np.ndarray:
    """That of the body, known if the model is."""
    built = model.gathered().built
    if built is None:
        return model.multibody.bodies[0].inertia
    return (built.inertias if is_traced(built) else np.asarray(built.inertias))[0]


def _arm(mechanics: SystemMechanics) -> Float[Array, "3"]:
    """From the joint to the centre of mass, body components."""
    (group,) = mechanics.groups
    return -(group.child_point if group.children == (0,) else group.parent_point)[0]
