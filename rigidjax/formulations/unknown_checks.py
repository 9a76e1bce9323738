"""Checks of unknowns that are given as the start of a run."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import check_all, common_dtype, finite_rule, is_traced, raise_or_collect
from ..persistent_jit import persistent_jit
from .charts import Charted, Unknowns, join_chart, split_chart

if TYPE_CHECKING:
    from .base import AbstractFormulation

# Admitted violation of the constraints of a rotation, as for quaternions of a `State`.
_TOLERANCE = 2e-6


def check_form(model: "AbstractFormulation", y: Any) -> Unknowns:
    """Return finite unknowns of the right shape and precision, in charts if the model moves them.

    **Errors:** `TypeError` and `ValueError`.
    """
    values, reference = split_chart(y)
    kind = type(model).__name__
    if not isinstance(values, jax.Array | np.ndarray):
        raise TypeError(
            f"`simulate(y0=...)` takes the unknowns of the model, such as `sol.ys[-1]`; got "
            f"{type(y).__name__}. A `State` is given as `state0`."
        )
    if values.shape != (model.num_unknowns,):
        raise ValueError(
            f"`simulate(y0=...)` must have shape ({model.num_unknowns},), the unknowns of this "
            f"`{kind}`; got shape {values.shape}. Take one of many saved times, such as "
            "`sol.ys[-1]`; for many starts use `jax.vmap`."
        )
    precision = common_dtype(model)
    if values.dtype != precision:
        raise TypeError(
            f"`simulate(y0=...)` must be {precision} as the model; got {values.dtype}. Convert it "
            f"with `y0.astype({str(precision)!r})`."
        )
    if reference is not None and not model.recharting:
        raise ValueError(
            f"`simulate(y0=...)` has references of moving charts, which this `{kind}` does not "
            "have. Take unknowns of a run with the same model."
        )
    if model.recharting:
        shape = (model.layout.num_rotations, 4)
        if reference is None:
            reference = jnp.eye(1, 4, dtype=precision).repeat(shape[0], 0)
        elif reference.shape != shape:
            raise ValueError(
                f"`simulate(y0=...)` must have references of shape {shape}, one for each rotation; "
                f"got shape {reference.shape}."
            )
    rule = finite_rule("simulate(y0=...)")
    if is_traced(values):
        bad = jnp.logical_not(rule[0](values)).any()
        values = raise_or_collect(values, bad[None], [rule[1]])
    else:
        check_all(values, [rule])
    values = jnp.asarray(values)
    return values if reference is None else Charted(values, jnp.asarray(reference))


def check_rotations(model: "AbstractFormulation", y: Unknowns) -> Unknowns:
    """Return the unknowns; an error where they violate the constraints of their rotations."""
    if not (model.rotation.num_constraints and model.layout.num_rotations):
        return y
    message = (
        f"`simulate(y0=...)` violates the constraints of `{type(model.rotation).__name__}`, such "
        f"as unit length, by more than {_TOLERANCE:g}. `model.project(t0, y0)` gives unknowns that "
        "satisfy them."
    )
    violation = _internal_violation(model, jax.lax.stop_gradient(split_chart(y)[0]))
    if is_traced(violation):
        bad = ~(violation <= _TOLERANCE)
        return join_chart(raise_or_collect(split_chart(y)[0], bad[None], [message]), y)
    if not violation <= _TOLERANCE:
        raise ValueError(f"{message} Got {float(violation):.3g}.")
    return y


@persistent_jit
def _internal_violation(model: "AbstractFormulation", values: Float[Array, " N"]) -> Array:
    """Return the largest violation of the constraints of the rotations."""
    a = model.layout.rotations(values)
    return jnp.max(jnp.abs(jax.vmap(model.rotation.constraint)(a)))
