"""Maximisation of a criterion of a planned run over its inputs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, Int

from ...persistent_jit import persistent_jit
from ...results import RESULTS
from ..parameters import Experiment, Parameter, leaves_from_coordinates, replace_leaves
from .criteria import CRITERIA, information_factor
from .plan import RunPlan


class Designer(eqx.Module):
    """A criterion as a function of angles, whose sines are the coordinates of the inputs.

    Coordinates of `Bounded` lie between -1 and 1. A step of an angle beyond a bound returns inside,
    so that the optimiser need not handle bounds.

    **Attributes:** `plan`; `inputs`, and `references`, their given leaves; `scale`, of all
    components of the parameters; `order`, the fitted components, with the `count` ones of interest
    last; `criterion`, its name.
    """

    plan: RunPlan
    inputs: tuple[Parameter, ...]
    references: tuple[Array, ...]
    scale: Float[Array, " K"]
    order: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)
    criterion: str = eqx.field(static=True)

    def experiment(self, u: Float[Array, " q"]) -> Experiment:
        """Return the experiment with these inputs."""
        leaves = leaves_from_coordinates(self.inputs, self.references, jnp.sin(u))
        return replace_leaves(self.inputs, self.plan.experiment, leaves)

    def value(self, u: Float[Array, " q"]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """Return the criterion, and whether simulation succeeds and information is regular."""
        J, result = self.plan.jacobian(self.experiment(u), self.order)
        relative = J * self.scale[jnp.asarray(self.order)][None]
        R, regular = information_factor(relative, self.count, self.plan.resolution)
        return CRITERIA[self.criterion](R), regular & (result == RESULTS.successful)

    def value_and_gradient(
        self, u: Float[Array, " q"]
    ) -> tuple[Float[Array, ""], Float[Array, " q"], Bool[Array, ""]]:
        """Return the criterion, its gradient by forward mode, and whether both are valid."""

        def push(direction):
            value, slope, okay = jax.jvp(self.value, (u,), (direction,), has_aux=True)
            return value, slope, okay

        values, gradient, okay = jax.vmap(push)(jnp.eye(len(u), dtype=u.dtype))
        okay = okay[0] & jnp.isfinite(values[0]) & jnp.all(jnp.isfinite(gradient))
        return values[0], gradient, okay


class Maximum(eqx.Module):
    """Results of the maximisation from all starts, with a leading start axis.

    **Attributes:** `u`, angles, see `Designer`; `value`, of the criterion; `feasible`, whether
    value and gradient were valid at the start; `converged`; `iterations`; `history` of the
    criterion, `-inf` after the end.
    """

    u: Float[Array, "S q"]
    value: Float[Array, " S"]
    feasible: Bool[Array, " S"]
    converged: Bool[Array, " S"]
    iterations: Int[Array, " S"]
    history: Float[Array, "S M"]


@persistent_jit
def maximise(
    designer: Designer, starts: Float[Array, "S q"], max_iterations: int, tolerance: float
) -> Maximum:
    """Maximise from all starts at once; an infeasible start ends immediately."""
    return jax.vmap(lambda u: _maximise(designer, u, max_iterations, tolerance))(starts)


def _maximise(
    designer: Designer, start: Float[Array, " q"], max_iterations: int, tolerance: float
) -> Maximum:
    @jax.custom_jvp
    def loss(u):
        value, _, okay = designer.value_and_gradient(u)
        return jnp.where(okay, -value, jnp.inf)

    # One solve yields value and gradient; the derivative rule then only multiplies.
    @loss.defjvp
    def _(primals, tangents):
        value, gradient, okay = designer.value_and_gradient(*primals)
        gradient = jnp.where(okay, gradient, 0.0)
        return jnp.where(okay, -value, jnp.inf), -gradient @ tangents[0]

    def function(u, args):
        return loss(u), None

    solver = optx.BFGS(rtol=tolerance, atol=tolerance)
    shape, _ = jax.eval_shape(function, start, None)
    first = solver.init(function, start, None, {}, shape, None, frozenset())
    dynamic, static = eqx.partition(first, eqx.is_array)

    def is_searching(carry):
        _, _, iterations, done, _ = carry
        return ~done & (iterations < max_iterations)

    def body(carry):
        u, dynamic, iterations, _, history = carry
        state = eqx.combine(dynamic, static)
        u, state, _ = solver.step(function, u, None, {}, state, frozenset())
        done, _ = solver.terminate(function, u, None, {}, state, frozenset())
        value = -state.f_info.as_min()
        # The first step evaluates the start.
        done = done | ~jnp.isfinite(value)
        history = history.at[iterations].set(value)
        return u, eqx.filter(state, eqx.is_array), iterations + 1, done, history

    history = jnp.full(max_iterations, -jnp.inf, start.dtype)
    carry = (start, dynamic, jnp.array(0), jnp.array(False), history)
    u, dynamic, iterations, done, history = jax.lax.while_loop(is_searching, body, carry)
    value = -eqx.combine(dynamic, static).f_info.as_min()
    feasible = jnp.isfinite(value)
    return Maximum(u, value, feasible, done & feasible, iterations, history)
