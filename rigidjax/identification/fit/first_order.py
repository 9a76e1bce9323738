"""Descent along the gradient, for many parameters or many runs."""

import dataclasses
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ...adjoints.any_mode import AnyMode
from .losses import AbstractLoss
from .problem import Problem


class FirstOrder(eqx.Module):
    """Steps of an optimiser of optax before the least-squares iterations.

    Gradients by reverse mode, whose cost does not grow with the number of parameters; of some runs
    drawn at random in each step if `batch` says so. It leads near a minimum. The iterations that
    follow find it, and need the Jacobian that the covariance needs anyway.

    **Arguments:** `optimizer`, such as `optax.adam(1e-2)`, on the coordinates of the parameters
    (logarithms, angles); `steps`; `batch`, how many runs count in a step, `None` for all; `seed`.
    **Errors:** `TypeError` and `ValueError` for arguments of the wrong kind.
    """

    optimizer: Any = eqx.field(static=True)
    steps: int = eqx.field(static=True, default=200)
    batch: int | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if not isinstance(self.optimizer, optax.GradientTransformation):
            raise TypeError(
                "`FirstOrder(optimizer=...)` must be an optimiser of optax such as "
                f"`optax.adam(1e-2)`; got {self.optimizer!r}."
            )
        if self.steps < 1 or (self.batch is not None and self.batch < 1):
            raise ValueError(
                "`FirstOrder(steps=..., batch=...)` must be positive; got "
                f"{self.steps} and {self.batch}."
            )


def descend(problem: Problem, loss: AbstractLoss, how: FirstOrder) -> tuple[Problem, str]:
    """The problem with its start where the descent ended, and what happened, in words.

    A step whose gradient is not finite, or whose simulation failed, is left out.

    **Errors:** `ValueError` for a batch of more runs than there are.
    """
    batch = problem.num_runs if how.batch is None else how.batch
    if batch > problem.num_runs:
        raise ValueError(
            f"`FirstOrder(batch=...)` must be at most the number of runs, {problem.num_runs}; got "
            f"{batch}."
        )
    reverse = problem
    if isinstance(problem.simulation.adjoint, diffrax.ForwardMode | None):
        simulation = dataclasses.replace(problem.simulation, adjoint=AnyMode())
        reverse = dataclasses.replace(problem, simulation=simulation)
    leaves, first, last, left_out = _descended(reverse, loss, how, batch)
    note = f"{how.steps} steps of the first order took the loss from {first:.4g} to {last:.4g}"
    return problem.starting(leaves), note + (
        f"; {int(left_out)} of them were left out." if left_out else "."
    )


@eqx.filter_jit
def _descended(problem, loss, how, batch):
    def cost(coordinates, rows):
        shared, own = coordinates
        chosen = jax.tree.map(lambda leaf: leaf[rows], problem.runs)
        value, okay = jax.vmap(lambda own, run: _loss_of(problem, loss, shared, own, run))(
            own[rows], chosen
        )
        total = jnp.sum(value) * (problem.num_runs / batch) + _prior_of(problem, shared, own)
        return total, jnp.all(okay)

    def step(carry, key):
        coordinates, state, left_out = carry
        rows = jax.random.permutation(key, problem.num_runs)[:batch]
        (value, okay), gradient = jax.value_and_grad(cost, has_aux=True)(coordinates, rows)
        finite = [jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves((value, gradient))]
        good = okay & jnp.all(jnp.stack(finite))
        gradient = jax.tree.map(lambda g: jnp.where(good, g, 0.0), gradient)
        change, new_state = how.optimizer.update(gradient, state, coordinates)
        shared, own = (x + dx for x, dx in zip(coordinates, change, strict=True))
        moved = problem.clip(shared, own)
        kept = jax.tree.map(
            lambda new, old: jnp.where(good, new, old), (moved, new_state), (coordinates, state)
        )
        return (*kept, left_out + ~good), value

    start = problem.start()
    keys = jax.random.split(jax.random.key(how.seed), how.steps)
    carry = (start, how.optimizer.init(start), jnp.array(0))
    (end, _, left_out), values = jax.lax.scan(step, carry, keys)
    return problem.all_leaves(*end), values[0], values[-1], left_out


def _prior_of(problem: Problem, shared: Any, own: Any):
    """Half the sum of squares of all priors, of all runs."""

    def squares(own, run):
        experiment = problem.experiment(problem.leaves(shared, own, run), run)
        return [jnp.sum(part.prior()[0] ** 2) for part in problem.varied(experiment)]

    of_all, of_runs = jax.vmap(squares)(own, problem.runs)
    return 0.5 * (of_all[0] + jnp.sum(of_runs))


def _loss_of(problem: Problem, loss: AbstractLoss, shared: Any, own: Any, run: Any):
    """Loss of one run, half the sum of squares without a robust one, and success."""
    r, okay = problem.residuals(problem.leaves(shared, own, run), run)
    return 0.5 * jnp.sum(loss.root(r) ** 2), okay
