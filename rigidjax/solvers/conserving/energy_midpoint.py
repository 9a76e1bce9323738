"""Mid-point scheme of Geradin and Rixen for tops."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array

from ...annotations import Scalar, T, Vector, Vector3
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...checks import check, is_traced
from ...forces.base import Kinematics
from ...formulations import Absolute, AbstractFormulation
from ...joints import Spherical
from ...mechanics import has_joints
from ...mechanics.dynamics.loads import applied_wrenches
from ...mechanics.stacked.system import PreparedSystem
from ...rotations.base import AbstractRotation
from ...rotations.matrix import to_body, to_space
from ...rotations.quaternion import Quaternion
from ...rotations.so3 import normalize
from ...small_arrays import cross, sequential_vmap_on_cpu
from .base import check_form, check_free_bodies
from .equations import AbstractMotionStep, Root
from .fixed_point import StepRotation
from .increments import conformal, rotate_by_half, sine
from .motion import BodyMotion, decode_motion
from .one_step import AbstractOneStepSolver, StepMemory

# Largest relative difference of two moments of inertia that count as equal.
_EQUAL = 1e-9


class EnergyMidpoint(AbstractOneStepSolver):
    r"""The mid-point scheme for the top in descriptor form, $(x, R, \lambda)$.

    The half rotation $F$ satisfies $R_n^T R_{n+1} = F^2$, and the mean angular velocity is
    $\Omega_{n+1/2} = \frac2h\mathrm{vect}(F)$. The balances of momentum and of angular momentum are
    written at the mid-point with the reaction $\lambda$. The velocity constraint at the mid-point,
    $x_{n+1} - x_n = h R_{n+1/2} (\Omega_{n+1/2} \times X)$, is with this $\Omega_{n+1/2}$
    equivalent to the position constraint, so that positions do not drift.

    - `mean="angular-momentum"`: the scheme as printed. The mean of the angular momenta is
      $R_{n+1/2} J \Omega_{n+1/2}$, (310), and $\Omega_{n+1}$ follows from the angular momentum.
      **Energy is conserved only for a body with two equal moments of inertia, J11 = J22, and only
      without moments.** Under gravity the energy error of a symmetric top is of second order in the
      step, because (334) assumes (326) instead of (310). Other bodies need `any_inertia=True`.
    - `mean="angular-velocity"`: $\Omega_{n+1/2}$ is the mean of the angular velocities, (326), as
      in the proof of conservation (334). Energy is conserved exactly for every inertia.
    - `mean=None`: the claims of the paper hold. A body with two equal moments of inertia uses
      `"angular-velocity"`, and its energy is conserved, with moments too. Other bodies raise an
      error; with `any_inertia=True` all bodies use `"angular-momentum"`.

    The scheme takes `Absolute(index=0)` in `Quaternion()` of a `System` of one body on one
    `Spherical` joint to the ground (its unknowns contain the velocity of the centre of mass, which
    the constraint at the mid-point does not determine from $\Omega$), and `NullSpace` and
    `Absolute(index=0)` of a `FixedPointBody`, which has no constraint. Rotations per step are below
    pi. For bodies without joints use `EnergyMomentum()` or `SimoWong(conserve="energy")`.

    **Arguments:** `half_rotation`, the unknowns of $F$, `"euler-parameters"` or `"conformal"`, with
    equal steps; `mean`, see above; `any_inertia`, whether to accept bodies whose energy is not
    conserved; `max_iterations`, of Newton's method.
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
        inertia = _inertia_of_body(model)
        if self._needs_symmetry and not is_traced(inertia):
            concrete = np.asarray(inertia)
            moments = concrete if concrete.ndim == 1 else np.linalg.eigvalsh(concrete)
            with eval_context():  # the check is concrete also while a function is traced
                check(moments, lambda moments: _smallest_difference(moments) <= _EQUAL, _SYMMETRIC)

    def check_traced_model(self, model: AbstractFormulation, value: T) -> T:
        inertia = _inertia_of_body(model)
        if not self._needs_symmetry or not is_traced(inertia):
            return value
        moments = inertia if inertia.ndim == 1 else _eigenvalues(inertia)
        return eqx.error_if(value, ~(_smallest_difference(moments) <= _EQUAL), _SYMMETRIC)

    @property
    def _needs_symmetry(self) -> bool:
        return not self.any_inertia and self.mean != "angular-velocity"

    @property
    def _trapezoidal(self) -> bool:
        if self.mean is None:
            return not self.any_inertia
        return self.mean == "angular-velocity"

    def initial_memory(
        self, model: AbstractFormulation, t0: Scalar, y0: Vector, memory: StepMemory
    ) -> StepMemory:
        return memory

    def advance(
        self, model: AbstractFormulation, t0: Scalar, t1: Scalar, y0: Vector, memory: StepMemory
    ) -> tuple[Vector, Array | None, StepMemory, Root]:
        return self.advance_body(model, t0, t1, y0, memory)

    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        prepared = model.prepared_system
        arm = _arm_of_joint(prepared) if prepared.groups else None
        return TopStep(
            prepared, model.rotation, t0, h, start, arm,
            self.half_rotation == "conformal", self._trapezoidal,
        )  # fmt: skip

    def reaction(
        self, model: AbstractFormulation, t0: Scalar, y0: Vector, t1: Scalar, y1: Vector
    ) -> Vector3:
        r"""Return the reaction $\lambda_{n+1/2}$ of the joint on the body in a step, shape (3,), N.

        **Arguments:** `model`; `t0`, `t1`, start and end of the step, s; `y0`, `y1`, unknowns at
        these times.
        **Returns:** space components.
        **Source:** Geradin-Rixen (309).
        """
        start, end, h = decode_motion(model, y0), decode_motion(model, y1), t1 - t0
        assert start.position is not None and start.velocity is not None
        assert end.position is not None and end.velocity is not None
        mean = normalize(start.coordinates + end.coordinates)
        step_rotation = StepRotation(
            model.rotation, 0.5 * (t0 + t1), h, mean, 0.5 * (start.omega + end.omega),
            conformal(jnp.zeros(3, y0.dtype)),
        )  # fmt: skip
        position = 0.5 * (start.position + end.position)
        velocity = (end.position - start.position) / h
        force, _ = _loads(model.prepared_system, step_rotation, position, velocity)
        gain = model.prepared_system.masses[0] * (end.velocity - start.velocity) / h
        return gain - force


class TopStep(AbstractMotionStep):
    r"""Equations for $W$, with the velocity of the centre of mass and the reaction eliminated.

    **Attributes:** `prepared`, of one body; `rotation`, the parametrization; `t0`, start of the
    step, and `h`, its length, s; `start`, the motion at its start; `arm`, $X$, from the joint to
    the centre of mass, (3,) m, body components, `None` for a body with a fixed point; `conformal`,
    whether $h W$ is a conformal rotation vector instead of twice the vector part of Euler
    parameters; `trapezoidal`, whether $\Omega_{n+1/2}$ is the mean of the angular velocities.
    """

    prepared: PreparedSystem
    rotation: AbstractRotation
    t0: Scalar
    h: Scalar
    start: BodyMotion
    arm: Vector3 | None
    conformal: bool = eqx.field(static=True)
    trapezoidal: bool = eqx.field(static=True)

    def guess(self) -> Vector3:
        return self.start.omega

    def unknown_scales(self) -> Vector3:
        return jnp.ones_like(self.start.omega) / jnp.abs(self.h)

    def residual(self, Z: Vector3) -> Vector3:
        step_rotation, V = self._rotation_and_velocity(Z)
        inertia, h, omega = self.prepared.inertias[0], self.h, self.start.omega
        before = rotate_by_half(
            step_rotation.increment, angular_momentum(inertia, omega), inverse=True
        )
        if self.trapezoidal:
            after = rotate_by_half(
                step_rotation.increment,
                angular_momentum(inertia, 2.0 * step_rotation.omega - omega),
            )
            r = 0.5 * (after - before)
        else:
            r = angular_momentum(inertia, step_rotation.omega) - before
        start, position = self.start, None
        if start.position is not None and V is not None:
            position = start.position + 0.5 * h * V
        force, moment = _loads(self.prepared, step_rotation, position, V)
        if V is not None:
            assert self.arm is not None and start.velocity is not None
            # The reaction, (309), acts at -X from the centre of mass.
            reaction = self.prepared.masses[0] * (2.0 / h) * (V - start.velocity)
            r = r + 0.5 * h * cross(self.arm, to_body(step_rotation.matrix, reaction - force))
        return r - 0.5 * h * moment

    def end(self, Z: Vector3) -> BodyMotion:
        step_rotation, V = self._rotation_and_velocity(Z)
        inertia, start = self.prepared.inertias[0], self.start
        if self.trapezoidal:
            omega = 2.0 * step_rotation.omega - start.omega
        else:
            before = rotate_by_half(
                step_rotation.increment, angular_momentum(inertia, start.omega), inverse=True
            )
            after = 2.0 * angular_momentum(inertia, step_rotation.omega) - before
            omega = solve_inertia(
                inertia, rotate_by_half(step_rotation.increment, after, inverse=True)
            )
        if start.position is None or start.velocity is None:
            return BodyMotion(step_rotation.last, omega)
        assert V is not None
        position, velocity = start.position + self.h * V, 2.0 * V - start.velocity
        return BodyMotion(step_rotation.last, omega, None, position, velocity)

    def _rotation_and_velocity(self, Z: Vector3) -> tuple[StepRotation, Vector3 | None]:
        """Return the rotation of the step and the mean velocity of the centre of mass."""
        increment = (conformal if self.conformal else sine)(self.h * Z)
        mean = increment.chord * Z  # 2/h vect(F)
        t, start = self.t0 + 0.5 * self.h, self.start.coordinates
        step_rotation = StepRotation(self.rotation, t, self.h, start, mean, increment)
        return step_rotation, None if self.arm is None else to_space(
            step_rotation.matrix, cross(mean, self.arm)
        )


def _loads(
    prepared: PreparedSystem,
    step_rotation: StepRotation,
    position: Array | None,
    velocity: Array | None,
) -> list[Vector3]:
    """Return the force, space components, and the moment, body components, at the mid-point.

    `position` and `velocity` are those of the centre of mass, `None` for zero.
    """
    rest = jnp.zeros_like(step_rotation.omega)
    x, v = (rest if value is None else value for value in (position, velocity))
    middle = Kinematics(x[None], step_rotation.matrix[None], v[None], step_rotation.omega[None])
    return jnp.split(applied_wrenches(prepared, step_rotation.t, middle)[0], 2)


_SYMMETRIC = (
    "`EnergyMidpoint` needs a body with two equal moments of inertia to conserve energy. Use "
    '`EnergyMidpoint(mean="angular-velocity")`, `EnergyMomentum()` or '
    '`SimoWong(conserve="energy")`, which conserve it for every body, or accept the loss with '
    "`EnergyMidpoint(any_inertia=True)`."
)


_eigenvalues = sequential_vmap_on_cpu(jnp.linalg.eigvalsh)


def _smallest_difference(moments: Array | np.ndarray) -> Scalar:
    """Return the smallest difference of two moments, relative to the largest moment."""
    a, b, c = moments[0], moments[1], moments[2]
    least = jnp.minimum(jnp.minimum(jnp.abs(a - b), jnp.abs(b - c)), jnp.abs(c - a))
    return least / jnp.max(jnp.abs(jnp.stack([a, b, c])))


def _check_top(model: AbstractFormulation) -> None:
    """Raise `ValueError` unless the system is one body on a ball joint to the ground."""
    system = model.multibody
    joint = system.joints[0]
    is_single = len(system.bodies) == 1 and len(system.joints) == 1
    if (
        not is_single
        or not isinstance(joint, Spherical)
        or "ground" not in (joint.parent, joint.child)
    ):
        raise ValueError(
            "`EnergyMidpoint` is for one body on one `Spherical` joint to the ground; got "
            f"{len(system.bodies)} bodies and "
            f"{[type(joint).__name__ for joint in system.joints]}. Use `NullSpace` with "
            "`diffrax.Dopri8()` or `rj.solvers.Radau5()`."
        )
    if not isinstance(model, Absolute):
        raise ValueError(
            "`EnergyMidpoint` needs the velocity of the centre of mass as an unknown that is not a "
            f"function of the joint rates; got `{type(model).__name__}`. Use "
            "`rj.Absolute(system, rj.Quaternion(), index=0)`."
        )


def _inertia_of_body(model: AbstractFormulation) -> Array | np.ndarray:
    """Return the inertia of the body, as a NumPy array unless the model is traced."""
    arrays = model.separate_arrays().arrays
    if arrays is None:
        return model.multibody.bodies[0].inertia
    return (arrays.inertias if is_traced(arrays) else np.asarray(arrays.inertias))[0]


def _arm_of_joint(prepared: PreparedSystem) -> Vector3:
    """Return the vector from the joint to the centre of mass, m, body components."""
    (group,) = prepared.groups
    return -(group.child_point if group.children == (0,) else group.parent_point)[0]
