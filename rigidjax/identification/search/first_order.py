"""Gradient descent, for many parameters or many runs."""

import dataclasses
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...adjoints.any_mode import AnyMode
from ...persistent_jit import persistent_jit
from .losses import AbstractLoss
from .problem import FitProblem


class FirstOrder(eqx.Module):
    """Steps of an optax optimiser before the least-squares iterations.

    Gradients are computed in reverse mode, whose cost does not grow with the number of parameters,
    from `batch` runs drawn at random in each step. The descent only approaches a minimum; the
    least-squares iterations that follow converge to it and provide the Jacobian for the covariance.

    **Arguments:** `optimizer`, such as `optax.adam(1e-2)`, on the coordinates of the parameters
    (logarithms, angles); `steps`, their number; `batch`, the number of runs per step, `None` for
    all; `seed`, of the drawn runs.
    **Errors:** `TypeError` and `ValueError` for arguments of the wrong kind.
    """

    optimizer: Any = eqx.field(static=True)
    steps: int = eqx.field(static=True, default=200)
    batch: int | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if not (hasattr(self.optimizer, "init") and hasattr(self.optimizer, "update")):
            raise TypeError(
                "`FirstOrder(optimizer=...)` must be an optimiser of optax such as "
                f"`optax.adam(1e-2)`; got {self.optimizer!r}."
            )
        if self.steps < 1 or (self.batch is not None and self.batch < 1):
            raise ValueError(
                "`FirstOrder(steps=..., batch=...)` must be positive; got "
                f"{self.steps} and {self.batch}."
            )


def descend(problem: FitProblem, loss: AbstractLoss, method: FirstOrder) -> tuple[FitProblem, str]:
    """Return the problem with its start at the end of the descent, and a note.

    A step is skipped if its gradient is not finite or its simulation fails.

    **Errors:** `ValueError` for a batch of more runs than there are.
    """
    batch = problem.num_runs if method.batch is None else method.batch
    if batch > problem.num_runs:
        raise ValueError(
            f"`FirstOrder(batch=...)` must be at most the number of runs, {problem.num_runs}; got "
            f"{batch}."
        )
    reverse_problem = problem
    if isinstance(problem.simulation.adjoint, diffrax.ForwardMode | None):
        simulation = dataclasses.replace(problem.simulation, adjoint=AnyMode())
        reverse_problem = dataclasses.replace(problem, simulation=simulation)
    leaves, first, last, num_skipped = _descend(reverse_problem, loss, method, batch)
    note = f"{method.steps} steps of the first order took the loss from {first:.4g} to {last:.4g}"
    return problem.with_starts(leaves), note + (
        f"; {int(num_skipped)} of them were left out." if num_skipped else "."
    )


@persistent_jit
def _descend(
    problem: FitProblem, loss: AbstractLoss, method: FirstOrder, batch: int
) -> tuple[list[Array], Float[Array, ""], Float[Array, ""], Int[Array, ""]]:
    def cost(coordinates, rows):
        shared, per_run = coordinates
        run_data = jax.tree.map(lambda leaf: leaf[rows], problem.runs)
        residuals, okay = jax.vmap(
            lambda per_run, run: problem.residuals(problem.run_leaves(shared, per_run, run), run)
        )(per_run[rows], run_data)
        value = 0.5 * jnp.sum(loss.root(residuals) ** 2)
        total = value * (problem.num_runs / batch) + _prior_loss(problem, shared, per_run)
        return total, jnp.all(okay)

    def step(carry, key):
        coordinates, state, num_skipped = carry
        rows = jax.random.permutation(key, problem.num_runs)[:batch]
        (value, okay), gradient = jax.value_and_grad(cost, has_aux=True)(coordinates, rows)
        finite = [jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves((value, gradient))]
        is_finite = okay & jnp.all(jnp.stack(finite))
        gradient = jax.tree.map(lambda g: jnp.where(is_finite, g, 0.0), gradient)
        change, new_state = method.optimizer.update(gradient, state, coordinates)
        shared, per_run = (x + dx for x, dx in zip(coordinates, change, strict=True))
        clipped = problem.clip(shared, per_run)
        updated = jax.tree.map(
            lambda new, old: jnp.where(is_finite, new, old),
            (clipped, new_state),
            (coordinates, state),
        )
        return (*updated, num_skipped + ~is_finite), value

    start = problem.start_coordinates()
    keys = jax.random.split(jax.random.key(method.seed), method.steps)
    carry = (start, method.optimizer.init(start), jnp.array(0))
    (end, _, num_skipped), values = jax.lax.scan(step, carry, keys)
    return problem.all_leaves(*end), values[0], values[-1], num_skipped


def _prior_loss(
    problem: FitProblem, shared: Float[Array, " S"], per_run: Float[Array, "B P"]
) -> Float[Array, ""]:
    """Return half the sum of squares of the residuals of all priors."""

    def squares(per_run, run):
        experiment = problem.experiment(problem.run_leaves(shared, per_run, run), run)
        return [jnp.sum(part.prior()[0] ** 2) for part in problem.parametrise(experiment)]

    shared_squares, run_squares = jax.vmap(squares)(per_run, problem.runs)
    return 0.5 * (shared_squares[0] + jnp.sum(run_squares))
