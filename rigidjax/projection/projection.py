"""Projections onto the constraints, against drift and for consistent initial values."""

import abc
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..formulations import AbstractAbsolute, AbstractFormulation
from ..formulations.charts import Unknowns, join_chart, split_chart
from ..mechanics import has_joints
from ..mechanics.kinematics.constraints import violation_tolerance
from ..results import JOINTS_OPEN
from ..rotations.base import AbstractRotation


class AbstractProjection(eqx.Module):
    """A map of unknowns onto the constraints."""

    @abc.abstractmethod
    def __call__(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        """Project unknowns onto the constraints of `model` at time `t`.

        **Returns:** the projected unknowns; the result, `diffrax.RESULTS.successful` or a failure.
        """


class ConvertedProjection(AbstractProjection):
    """A projection onto the constraints of one model, traced once for all its calls.

    **Arguments:** `function` of time and unknowns, whose captured arrays are its leaves.
    """

    function: Callable[..., tuple[Unknowns, diffrax.RESULTS]]

    def __call__(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        return self.function(t, y)


def check_closed(
    model: AbstractFormulation, t: Scalar, y: Unknowns
) -> tuple[Unknowns, diffrax.RESULTS]:
    """Return projected unknowns with the result `JOINTS_OPEN` if they leave a joint open.

    Unknowns that are not finite do not change the result here; they are reported at the end of the
    run.
    """
    successful = diffrax.RESULTS.successful
    if not has_joints(model.system):
        return y, successful
    gap = jnp.max(model.gaps(t, y), initial=0.0)
    is_open = gap > violation_tolerance(gap.dtype)
    return y, diffrax.RESULTS.where(is_open, JOINTS_OPEN, successful)  # pyright: ignore[reportArgumentType]


class Explicit(AbstractProjection):
    r"""The closed-form projection of each parametrization, `model.project`; the default.

    Quaternions are normalised, Lang (63), which is the mass-metric projection too. For directors
    the attitude follows from the explicit algorithm of Lang, Section 6, and the rates from the
    closed form of the mass-metric projection, (62, V): the velocities of index-3 steps have errors
    of lower order in the direction of the constraint forces, and the projection must remove these
    without changing other components. With joints the projection makes one or two Newton steps of
    Lang (62). A joint that is still open ends the run.
    """

    def __call__(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        return check_closed(model, t, model.project(t, y))


class MassMetric(AbstractProjection):
    r"""Projection in the (semi-)metric of the mass matrix, separately for each body.

    Positions satisfy $M(q)(q - q^*) + G^T \chi = 0$, $g(q) = 0$, which is solved by Newton's method
    (optimistix, with the derivatives of the solution instead of the iteration). Velocities satisfy
    $M(v - v^*) + G^T \eta = 0$, $G v = 0$, a linear system; in null-space coordinates they are
    consistent by construction and do not change. The projection removes drift
    (`simulate(..., projection=rj.projection.MassMetric())`) and makes initial values consistent
    (`rj.projection.MassMetric()(model, t, y)`).

    **Arguments:** `tolerance`, absolute and relative tolerance of the Newton iteration, `None` for
    100 units of round-off; `max_steps`, the largest number of iterations.
    **Source:** Lang (62).
    """

    tolerance: float | None = None
    max_steps: int = eqx.field(static=True, default=20)

    def __call__(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        rotation = model.rotation
        result = diffrax.RESULTS.successful
        if has_joints(model.system):
            return self.of_system(model, t, y)
        if rotation.num_constraints == 0:
            return y, result
        from ..formulations.hamiltonian import Hamiltonian

        if isinstance(model, Hamiltonian):
            # The closed form of a quaternion is optimal in every metric (Lang, Lemma 6.1).
            return model.project(t, y), result
        values, _ = split_chart(y)
        layout, inertias = model.layout, model.prepared_system.inertias
        x, a = layout.poses(values)
        a, results = jax.vmap(lambda I, a: self.position(rotation, I, a))(inertias, a)
        result, velocities = _first_failure(results), layout.velocities(values)
        if isinstance(model, AbstractAbsolute):
            v, a_dot = layout.twists(values)
            a_dot, results = jax.vmap(lambda *row: self.velocity(rotation, *row))(
                inertias, a, a_dot
            )
            velocities = layout.join(v, a_dot)
            result = diffrax.RESULTS.where(
                diffrax.is_successful(result), _first_failure(results), result
            )
        joined = layout.join_all(x, a, velocities, layout.angles_and_states(values))
        return join_chart(jnp.concatenate([joined, values[layout.size :]]), y), result

    def of_system(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns
    ) -> tuple[Unknowns, diffrax.RESULTS]:
        """Project the unknowns of a system with joints by Newton steps of (62)."""
        for _ in range(2):
            y = model.project(t, y)
        return check_closed(model, t, y)

    def position(
        self, rotation: AbstractRotation, inertia: Vector3 | Matrix3, a_star: Vector
    ) -> tuple[Vector, diffrax.RESULTS]:
        """Return the coordinates nearest to `a_star` that satisfy the internal constraints (62, P).

        The result is that of the Newton iteration.
        """
        n, scale = rotation.num_coordinates, jnp.max(jnp.abs(inertia))
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = 100 * float(jnp.finfo(a_star.dtype).eps)

        def equations(unknowns, args):
            a_star, inertia = args
            a, chi = unknowns[:n], unknowns[n:]
            balance = rotation.mass_matrix(a, inertia) @ (a - a_star)
            balance = balance + rotation.constraint_jacobian(a).T @ chi
            return jnp.concatenate([balance, rotation.constraint(a)])

        start = jnp.concatenate([a_star, jnp.zeros(rotation.num_constraints, a_star.dtype)])
        solution = optx.root_find(
            equations,
            optx.Newton(rtol=tolerance, atol=tolerance),
            start,
            (a_star, inertia / scale),
            max_steps=self.max_steps,
            throw=False,
        )
        return solution.value[:n], diffrax.RESULTS.promote(solution.result)

    def velocity(
        self, rotation: AbstractRotation, inertia: Vector3 | Matrix3, a: Vector, a_dot_star: Vector
    ) -> tuple[Vector, diffrax.RESULTS]:
        """Return the rates nearest to `a_dot_star` that are tangent to the constraints (62, V)."""
        n, m = rotation.num_coordinates, rotation.num_constraints
        M = rotation.mass_matrix(a, inertia / jnp.max(jnp.abs(inertia)))
        G = rotation.constraint_jacobian(a)
        saddle = jnp.block([[M, G.T], [G, jnp.zeros((m, m), a.dtype)]])
        right = jnp.concatenate([M @ a_dot_star, jnp.zeros(m, a.dtype)])
        # If the iteration for `a` failed, the linear solve must not raise: the result is reported.
        solution = lx.linear_solve(lx.MatrixLinearOperator(saddle), right, lx.LU(), throw=False)
        return solution.value[:n], diffrax.RESULTS.promote(solution.result)


def _first_failure(results: diffrax.RESULTS) -> diffrax.RESULTS:
    """Return the first failure among the results, or success."""
    first = jnp.argmax(~diffrax.is_successful(results))
    return jax.tree.map(lambda value: value[first], results)
