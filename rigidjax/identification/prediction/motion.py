"""Motion from sample to sample in local coordinates of the model."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...analysis.local_motion import LocalCoordinates, unknowns_near
from ...annotations import Matrix, Scalar, Vector
from ...formulations import Relative
from ...formulations.charts import Unknowns
from ...projection import AbstractProjection
from ...rotations import Quaternion
from ...sensors import AbstractSensor
from ...simulate.integration import freeze_signals_of_steps, prepare_if_constant, wrap_solver
from ...small_arrays import inverse
from ...solvers.explicit.unrolled import unroll_stages
from .process_noise import Channel, disturb


class SampledMotion(eqx.Module):
    r"""Motion between samples, with local coordinates $\xi$ of errors of the state.

    The unknowns are joint coordinates and rates (`Relative`), whatever the formulation of the
    model. $\xi$ has the changes of independent coordinates, those of their rates, and those of the
    states of actuators, as in `linearize`.

    **Attributes:** `solver`, an explicit Runge-Kutta method; `step`, the largest length of its
    steps, s, of which an interval between samples has equal ones; `local`, the independent
    coordinates; `channels` of the process noise.
    """

    solver: diffrax.AbstractSolver
    projection: AbstractProjection | None
    step: Scalar
    local: LocalCoordinates
    channels: tuple[Channel, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def move(self, model: Relative, y: Unknowns, t0: Scalar, t1: Scalar) -> Unknowns:
        """Return the unknowns at `t1`, s, those at `t0` being `y`."""

        def make_step(k, y):
            start, end = self._step_ends(t0, t1, k)
            return self._step(model, y, start, end)

        return jax.lax.fori_loop(0, self._num_steps(t0, t1), make_step, y)

    def _num_steps(self, t0: Scalar, t1: Scalar) -> Array:
        """Return the number of equal steps of an interval, the same for intervals of equal length
        up to round-off."""
        span = jax.lax.stop_gradient(t1 - t0)
        return jnp.maximum(jnp.ceil(span / self.step * (1 - 1e-6)).astype(int), 1)

    def _step_ends(self, t0: Scalar, t1: Scalar, k: Array) -> tuple[Scalar, Scalar]:
        """Return start and end of step number `k` of an interval, s."""
        count = self._num_steps(t0, t1)
        return t0 + (t1 - t0) * (k / count), t0 + (t1 - t0) * ((k + 1) / count)

    def _step(self, model: Relative, y: Unknowns, t0: Scalar, t1: Scalar) -> Unknowns:
        """Return the unknowns after one step of the solver."""
        prepared = prepare_if_constant(model)
        field: Any = prepared.vector_field
        terms = diffrax.ODETerm(field)
        solver = freeze_signals_of_steps(
            unroll_stages(self.solver), prepared, diffrax.ConstantStepSize()
        )
        solver = wrap_solver(solver, prepared, self.projection)
        state = solver.init(terms, t0, t1, y, None)
        return solver.step(terms, t0, t1, y, None, state, True)[0]

    def shift(self, model: Relative, t: Scalar, y: Unknowns, xi: Vector) -> Unknowns:
        """Return the unknowns at a change of the local coordinates, back on the constraints."""
        return model.project(t, self._near(model, t, y)(xi))

    def _near(self, model: Relative, t: Scalar, y: Unknowns) -> Any:
        """Return the unknowns as a function of small local coordinates, exact to first order."""
        model = model.bind(t, y).prepare(t)
        at = model.configuration_prepared(t, y)
        return lambda xi: unknowns_near(model, at, y, self.local, xi)

    def _coordinates_of_change(
        self, model: Relative, t: Scalar, y: Unknowns, change: Float[Array, "N k"]
    ) -> Float[Array, "n k"]:
        """Return the local coordinates of small changes of the unknowns that joints allow."""
        D = jax.jacfwd(self._near(model, t, y))(jnp.zeros(self.size, change.dtype))
        gram = D.T @ D
        if model.multibody.has_loops:
            return inverse(gram) @ (D.T @ change)
        # The columns of joint coordinates are orthogonal.
        return (D.T @ change) / jnp.diag(gram)[:, None]

    def linearise_interval(
        self, model: Relative, y: Unknowns, t0: Scalar, t1: Scalar
    ) -> tuple[Unknowns, Matrix, Float[Array, "m n n"]]:
        r"""Return the unknowns at `t1`, and the linear motion of their local coordinates.

        **Returns:** the unknowns, the transition matrix $F$, and the covariance $Q$ that white
        noise of unit intensity in each channel causes, both products of those of the steps.
        """
        n, m = self.size, len(self.channels)
        identity = jnp.eye(n, dtype=jnp.result_type(t0))

        def make_step(k, carry):
            y, F, Q = carry
            y, F_step, G = self._linearise_step(model, y, *self._step_ends(t0, t1, k))
            Q = F_step @ Q @ F_step.T + jnp.einsum("imk,jmk->mij", G, G)
            return y, F_step @ F, Q

        zero = jnp.zeros((m, n, n), identity.dtype)
        return jax.lax.fori_loop(0, self._num_steps(t0, t1), make_step, (y, identity, zero))

    def _linearise_step(
        self, model: Relative, y: Unknowns, t0: Scalar, t1: Scalar
    ) -> tuple[Unknowns, Matrix, Float[Array, "n m 2"]]:
        """Return the unknowns after a step, their transition matrix, and the effect of the Legendre
        coefficients of white noise of unit intensity in each channel."""
        n, m, near = self.size, len(self.channels), self._near(model, t0, y)
        span = t1 - t0

        def end(z):
            xi, d = z[:n], z[n:].reshape(m, 2)
            y1 = self._step(disturb(model, self.channels, d, t0, span), near(xi), t0, t1)
            return y1, y1

        J, y1 = jax.jacfwd(end, has_aux=True)(jnp.zeros(n + 2 * m, span.dtype))
        J = self._coordinates_of_change(model, t1, y1, J)
        scale = jnp.where(span > 0, 1 / jnp.sqrt(jnp.where(span > 0, span, 1.0)), 0.0)
        return y1, J[:, :n], scale * J[:, n:].reshape(n, m, 2)

    def linearise_readings(
        self,
        model: Relative,
        sensors: tuple[AbstractSensor, ...],
        t: Scalar,
        y: Unknowns,
        values: tuple[Array, ...],
    ) -> tuple[Float[Array, " C"], Float[Array, "C n"]]:
        """Return predicted minus measured values of all sensors, and their derivatives with respect
        to the local coordinates."""
        near = self._near(model, t, y)

        def residual(xi):
            y, pairs = near(xi), zip(sensors, values, strict=True)
            e = jnp.concatenate([s.residual(s.predict(model, t, y), v) for s, v in pairs])
            return e, e

        H, e = jax.jacfwd(residual, has_aux=True)(jnp.zeros(self.size, t.dtype))
        return e, H


def joint_coordinate_model(model: Any) -> Relative:
    """Return the model in joint coordinates, with quaternions of constant reference."""
    return Relative(model.system, Quaternion(), recharting=False)
