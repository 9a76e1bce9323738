"""Sherif's forms of the rotational equations of motion in Euler parameters."""

from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix, Matrix3, Scalar, Vector, Vector3
from ..bodies.euler_equations import angular_momentum, solve_inertia
from ..bodies.fixed_point import FixedPointBody
from ..mechanics import System, check_constant_masses, check_system, has_joints, system_of
from ..mechanics.dynamics.loads import applied_wrenches, force_virials
from ..mechanics.stacked.system import PreparedSystem, StackedSystem
from ..rotations import so3
from ..rotations.quaternion import Quaternion
from ..small_arrays import block_diagonal
from .absolute_base import AbstractAbsolute
from .binding import compile_method
from .charts import Unknowns, split_chart
from .descriptor import Descriptor


class ReducedEquations(eqx.Module):
    r"""Equations of a `Descriptor` in quaternions, without joints, times $L$.

    $L$ annihilates $p$, the direction of the constraint force. The equations $L (4 L^T J L\,\ddot p
    + c - Q) = 0$ of each body, with its constraint as the fourth equation, determine $\ddot p$.
    Without a multiplier the differentiation index is one less than that of the other forms: 0 with
    the constraint on accelerations, 1 on velocities, 2 on positions.

    **Source:** Sherif (25).
    """

    descriptor: Descriptor

    @property
    def sizes(self) -> set[int]:
        """Numbers of unknowns that the methods of the model take."""
        return self.descriptor.sizes

    def separate_arrays(self) -> "ReducedEquations":
        """Return the equations of the model with separate arrays."""
        return ReducedEquations(self.descriptor.separate_arrays())

    def bind(self, t: Scalar, y: Float[Array, " N"]) -> "ReducedEquations":
        """Return the equations of the model with the values of its inputs at `(t, y)`."""
        return ReducedEquations(self.descriptor.bind(t, y))

    def prepare(self, t: Scalar | None = None) -> "ReducedEquations":
        """Return the equations of the prepared model."""
        return ReducedEquations(self.descriptor.prepare())

    @property
    def model(self) -> AbstractAbsolute:
        """The formulation."""
        return self.descriptor.model

    def reduction(self, q: Vector) -> Matrix:
        """Return the matrix that reduces the balance of each body.

        Forces stay, the rotational rows are multiplied by $L$, and the last row is zero.
        """
        _, p = self.model.layout.poses(q)

        def of_body(quaternion):
            # L = 2 T^T, on rows 1 to 3 of four.
            L = 2.0 * self.model.rotation.null_space(quaternion).T
            L = jnp.concatenate([L, jnp.zeros_like(L[:1])])
            return jax.scipy.linalg.block_diag(jnp.eye(self.model.layout.shift, dtype=q.dtype), L)

        return block_diagonal(jax.vmap(of_body)(p))

    def place_rows(self, rows: Float[Array, "m ..."]) -> Float[Array, "n ..."]:
        """Place one row of each body in the row that `reduction` leaves free."""
        layout = self.model.layout
        size = layout.num_positions // layout.num_bodies
        filled = jnp.zeros((layout.num_positions, *rows.shape[1:]), rows.dtype)
        return filled.at[size - 1 :: size].set(rows)

    @compile_method
    def mass(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, "N N"]:
        r"""Return the matrix $A$ of $A(t, y)\,\dot y = b(t, y)$, regular for index 1."""
        q, _, angles = self.descriptor.split(y)
        rates = self.reduction(q) @ self.descriptor.mass_matrix(q)
        if index == 1:
            rates = rates + self.place_rows(self.descriptor.jacobian(t, q, angles))
        return jax.scipy.linalg.block_diag(jnp.eye(q.size, dtype=y.dtype), rates)

    @compile_method
    def mass_times(
        self, t: Scalar, y: Float[Array, " N"], rate: Float[Array, " N"], index: int
    ) -> Float[Array, " N"]:
        r"""Return $A(t, y)\,\dot y$ of a rate, (N,), without the matrix."""
        q, _, angles = self.descriptor.split(y)
        v, v_dot = rate[: q.size], rate[q.size :]
        along = self.reduction(q) @ self.descriptor.momentum(q, v_dot)
        if index == 1:

            def constraint(q):
                return self.descriptor.constraint(t, q, angles)

            along = along + self.place_rows(jax.jvp(constraint, (q,), (v_dot,))[1])
        return jnp.concatenate([v, along])

    @compile_method
    def right_hand_side(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, " N"]:
        r"""Return the right-hand side $b$ of $A(t, y)\,\dot y = b(t, y)$."""
        q, v, angles = self.descriptor.split(y)
        balance = self.reduction(q) @ self.descriptor.force(t, q, v, y)
        level = self.place_rows(self.descriptor.level(t, q, v, angles, index))
        return jnp.concatenate([v, balance + level])


Form = Literal[
    "zero-multiplier", "no-multiplier", "simplified-gyroscopic", "simplified-torque", "virtual-work"
]


class EulerParameters(AbstractAbsolute):
    r"""The equations of motion in Euler parameters, in one of Sherif's forms.

    The unknowns are $(x, p, \dot x, \dot p)$ of each body. With the matrices $G$, $L$ of
    $A = G L^T$, $\Omega = 2 L \dot p$, forces $f$ at points $u$ of the body, and
    $n = u \times A^T f$, every form reads $4 L^T J L\,\ddot p + c + p\,\lambda = Q$ with

    | form | $c$ | $Q$ | $\lambda$ | Sherif |
    |---|---|---|---|---|
    | `"zero-multiplier"` | $c_1$ | $Q_1$ | 0 | (23), (37) |
    | `"no-multiplier"` | $L\,c_1$ | $L\,Q_1$ | eliminated, three equations | (25) |
    | `"simplified-gyroscopic"` | $c_2$ | $Q_1$ | $-8 p^T \dot L^T J L \dot p$ | (29), (30) |
    | `"simplified-torque"` | $c_1$ | $2 H^T G^T f$ | $2 p^T H^T G^T f$ | (82), (84) |
    | `"virtual-work"` | $c_1$ | $Q_2$ | $p^T Q_2$ | (62), (69) |

    where $c_1 = 8 L^T L \dot L^T J L \dot p$, $c_2 = 8 \dot L^T J L \dot p$, $Q_1 = 2 L^T n$,
    $Q_2 = (\partial (A u) / \partial p)^T f = 2 H^T G^T f + 2 p\,u^T f$.
    Together with $p^T \ddot p + \dot p^T \dot p = 0$ all of them have the same solution
    $\ddot p$, (38), (40) and (84), which is what `vector_field` returns, and therefore the same
    motion. The forms differ in $\lambda$, and methods behave differently where $\lambda$ is an
    unknown, `index` 1 to 3. Sherif admits forces alone; a pure moment counts as the couple whose
    $\sum f \otimes u$ has no symmetric part.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (whose unknowns are $p$, $\dot p$ alone).
    - `form`: one of the names in the table.
    - `index`: 0, the ordinary differential equation; 1, 2, 3, the equations of the form with
      $\lambda$ as unknown and $p^T p = 1$ on accelerations, velocities or positions, for
      `rj.solvers.Radau5()` and `BDF()`. The fourth equation of `"no-multiplier"` is the constraint.
    - `printed`: for index 0, the solution $\ddot p$ of the equations as they stand also off the
      sphere, where stages of a method are, instead of (38), which takes $|p| = 1$. With
      `"simplified-gyroscopic"` that is Terze's Formulation I.

    **Raises:** `ValueError` for another form or index.
    **Source:** Sherif, Sections 3 and 4; Terze (C.1) to (C.8).
    """

    system: System | FixedPointBody
    arrays: PreparedSystem | StackedSystem | None
    form: Form = eqx.field(static=True)
    index: int = eqx.field(static=True)
    printed: bool = eqx.field(static=True)
    stabilized: ClassVar[bool] = False  # no further multipliers
    takes_controllers: ClassVar[bool] = False

    def __init__(
        self,
        system: System | FixedPointBody,
        form: Form = "zero-multiplier",
        index: int = 0,
        printed: bool = False,
    ):
        if form not in get_args(Form):
            names = ", ".join(f'"{name}"' for name in get_args(Form))
            raise ValueError(f"`EulerParameters(form=...)` must be one of {names}; got {form!r}.")
        if index not in (0, 1, 2, 3):
            raise ValueError(f"`EulerParameters(index=...)` must be 0, 1, 2 or 3; got {index!r}.")
        check_system(system)
        check_constant_masses("`EulerParameters`", system_of(system))
        if has_joints(system):
            raise ValueError(
                "`EulerParameters` writes the equations of single bodies; for a system with joints "
                "use `NullSpace` or `Absolute`, both with `rj.Quaternion()`."
            )
        self.system = system
        self.arrays = None
        self.form = form
        self.index = index
        self.printed = printed

    @property
    def num_algebraic(self) -> int:
        return 0 if self.index == 0 or self.form == "no-multiplier" else self.num_multipliers

    @property
    def equations(self) -> Descriptor | ReducedEquations:
        """The equations of index 1 to 3."""
        descriptor = Descriptor(self, law=EulerParameters.generalised_force)
        return ReducedEquations(descriptor) if self.form == "no-multiplier" else descriptor

    @property
    def baumgarte(self) -> None:
        """`None`: constraints are not stabilised."""
        return None

    @property
    def rotation(self) -> Quaternion:
        """The quaternion: Euler parameters are its components."""
        return Quaternion()

    @property
    def recharting(self) -> bool:
        """False: there is no singularity."""
        return False

    def multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        r"""Return the multiplier $\lambda$ of $p^T p = 1$ of each body in this `form`, J.

        Unknowns for index 1 to 3.
        **Returns:** shape (L,), or (0,) for `"no-multiplier"`.
        **Source:** Sherif (30), (37), (84), and $p^T Q_{p,2}$ of (69).
        """
        values, _ = split_chart(y)
        if self.num_algebraic and values.size == self.num_unknowns:
            return values[self.layout.size :]
        prepared, kinematics = self.prepared_system, self.kinematics(t, y)
        p, p_dot = self.split_coordinates(y)
        if self.form == "no-multiplier":
            return jnp.zeros(0, p.dtype)
        if self.form == "zero-multiplier":
            return jnp.zeros(len(p), p.dtype)
        if self.form == "simplified-gyroscopic":
            return jax.vmap(gyroscopic_multiplier)(p, p_dot, prepared.inertias)
        moments = applied_wrenches(prepared, t, kinematics)[:, 3:]
        virials = force_virials(prepared, t, kinematics)
        return jax.vmap(self._along)(jnp.asarray(kinematics.rotations), moments, virials)

    def ordinary_field(self, t: Scalar, y: Unknowns) -> Unknowns:
        return self.printed_field(t, y) if self.printed else self.index_0_field(t, y)

    def printed_field(self, t: Scalar, y: Unknowns) -> Unknowns:
        r"""Return the right-hand side $\dot y$ of the printed equations, on and off the sphere.

        The inverse (35) has $p / |p|^2$ and $\frac14 L^T J^{-1} L / |p|^4$ there, so that
        $\ddot p = \frac14 L^T J^{-1} L\,(Q - c) / |p|^4 - |\dot p|^2 p / |p|^2$.

        **Source:** Terze (C.1); Sherif (34), (39).
        """
        values, _ = split_chart(y)
        layout, prepared = self.layout, self.prepared_system
        q, v = values[: layout.num_positions], layout.velocities(values)
        forces = self.generalised_force(t, q, v, values).reshape(layout.num_bodies, -1)

        def turning(p, p_dot, inertia, load):
            square = jnp.sum(p * p)
            across = solve_inertia(inertia, so3.multiply(so3.conjugate(p), load)[1:])
            radial = jnp.sum(p_dot * p_dot) / square
            return 0.25 * so3.multiply(p, so3.pure(across)) / square**2 - radial * p

        p_ddot = jax.vmap(turning)(*self.split_coordinates(y), prepared.inertias, forces[:, -4:])
        shifts = forces[:, :-4] / prepared.masses[:, None]
        return jnp.concatenate([v, jnp.concatenate([shifts, p_ddot], axis=1).ravel()])

    def _along(self, R: Matrix3, moment: Vector3, virial: Matrix3) -> Scalar:
        """Return the part of the generalised force along $p$, which determines the multiplier."""
        value = jnp.zeros((), R.dtype)
        if self.form in ("simplified-torque", "virtual-work"):
            value = value + torque_multiplier(virial)
        if self.form == "virtual-work":
            value = value + gradient_multiplier(R, moment, virial)
        return value

    def generalised_force(self, t: Scalar, q: Vector, v: Vector, y0: Float[Array, " N"]) -> Vector:
        r"""Return forces and $Q - c$ of each body, shape (n,), in the order of the velocities.

        $L^T w$ is the quaternion $p\,w$, $\dot L^T w$ is $\dot p\,w$ and $L \dot p$ the vector
        part of $\bar p\,\dot p$; $2 H^T G^T f$ is $Q_1$ and its part along $p$ (for $|p| = 1$).

        **Source:** Sherif (23), (29), (69), (82).
        """
        prepared, kinematics = self.prepared_system, self.kinematics(t, y0)
        _, p = self.layout.poses(q)
        _, p_dot = self.layout.twists(y0)
        wrenches, virials = (
            applied_wrenches(prepared, t, kinematics),
            force_virials(prepared, t, kinematics),
        )

        def on_body(p, p_dot, inertia, R, moment, virial):
            h = so3.multiply(so3.conjugate(p), p_dot)[1:]
            gyroscopic = 8.0 * so3.multiply(p_dot, so3.pure(angular_momentum(inertia, h)))
            if self.form != "simplified-gyroscopic":
                turned = so3.multiply(so3.conjugate(p), gyroscopic)[1:]
                gyroscopic = so3.multiply(p, so3.pure(turned))
            load = self._along(R, moment, virial) * p - gyroscopic
            return load + 2.0 * so3.multiply(p, so3.pure(moment))

        rotations = jnp.asarray(kinematics.rotations)
        loads = jax.vmap(on_body)(p, p_dot, prepared.inertias, rotations, wrenches[:, 3:], virials)
        return self.layout.join(wrenches[:, :3], loads)


def gyroscopic_multiplier(
    p: Float[Array, "4"], p_dot: Float[Array, "4"], inertia: Vector3 | Matrix3
) -> Scalar:
    r"""Return $-8 p^T \dot L^T J L \dot p = 8 h \cdot J h$, $h = L \dot p$.

    It is four times the kinetic energy, by $p^T \dot L^T v = -(L \dot p) \cdot v$.
    **Source:** Sherif (30).
    """
    h = 0.5 * Quaternion().angular_velocity(p, p_dot)
    return 8.0 * so3.dot(h, angular_momentum(inertia, h))


def torque_multiplier(virial: Matrix3) -> Scalar:
    r"""Return $2 p^T H^T G^T f = 2 u \cdot A^T f$, twice the trace of the virial.

    As quaternions $G^T f = p f_b$ with $f_b = A^T f$, and $H^T q = -q u$, so that
    $H^T G^T f = -p f_b u = p\,(f_b \cdot u,\; u \times f_b)$. **Source:** Sherif (84).
    """
    return 2.0 * jnp.trace(virial)


def gradient_multiplier(R: Matrix3, moment: Vector3, virial: Matrix3) -> Scalar:
    r"""Return $2 u^T f$ with $u$ in body and $f$ in space components, as in Sherif (69).

    Summed over the forces it is $2\,\mathrm{tr}(A D)$, $D = \sum f_b \otimes u$; the symmetric part
    of $D$ is the virial, its skew part half the skew matrix of the moment. The value depends on
    how $A$ is continued to $|p| \ne 1$, Sherif (5), and has no mechanical meaning.
    """
    return 2.0 * jnp.sum(R * virial) - 2.0 * so3.dot(so3.unskew(R), moment)
